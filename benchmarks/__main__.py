"""Measure each pair in alternating processes and print ratios; saved as JSON and as a Markdown table."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
VOCAB = {"bert_mini": 30522, "bert_small": 30522, "modernbert_mini": 8192}


class Bench:
    """Runs cases in processes of their own and remembers what they gave."""

    def __init__(self, folder: str, quick: bool) -> None:
        self.quick = quick
        self._base = {
            "folder": folder,
            "words": 400_000,
            "steps": 60 if quick else 150,
            "plain_steps": 2 if quick else 5,
            "dropout": 0.0,
            "objective": "taco",
            "encoder": "bert_mini",
            "vocab_size": 30522,
        }
        self._done: dict[str, dict[str, Any]] = {}

    def __call__(self, side: str, **changes: Any) -> dict[str, Any]:
        """Return the measurement of a case, made once."""
        case = self._base | changes | {"side": side}
        key = json.dumps(case, sort_keys=True)
        if key not in self._done:
            command = [sys.executable, "-m", "benchmarks.case", json.dumps(case)]
            printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
            self._done[key] = json.loads(printed.splitlines()[-1])
        return self._done[key]


def ceilings() -> Iterator[tuple[str, str]]:
    """Measure what the machine can do: matrix products and copies."""
    import torch

    from taco_cli.config.schema import Precision
    from taco_cli.machine import Machine, peak_flops

    for precision in (Precision.float32, Precision.bf16):
        flops = peak_flops(Machine("cpu", 1, precision, ""))
        yield f"matrix product, {precision}", f"{flops / 1e12:.2f} TFLOP/s"
    source = torch.ones(2**27)
    start = time.perf_counter()
    source.clone()
    yield "memory copy", f"{2 * source.nbytes / (time.perf_counter() - start) / 1e9:.1f} GB/s"


def speed(bench: Bench) -> Iterator[tuple[str, str]]:
    """Compare steps through taco-train with the plain side, and arms with each other."""
    for encoder in ("bert_mini", "modernbert_mini") if bench.quick else VOCAB:
        shape = {"encoder": encoder, "vocab_size": VOCAB[encoder]}
        arms = {arm: bench("tool", objective=arm, **shape) for arm in ("mlm", "taco")}
        for arm, ours in arms.items():
            theirs = bench("plain", objective=arm, **shape)
            yield f"{encoder}, {arm}: plain / tool, time of a step", _ratio(theirs["seconds"], ours["seconds"])
        yield f"{encoder}, mlm: share of the bf16 matrix ceiling", f"{statistics.median(arms['mlm']['mfu']):.0%}"
        yield f"{encoder}: taco / mlm, time of a step", _ratio(arms["taco"]["seconds"], arms["mlm"]["seconds"])
        yield f"{encoder}: taco / mlm, peak memory", _memory(arms["taco"], arms["mlm"])
    if bench.quick:
        return
    tp, mlm = bench("tool", objective="mlm_tp"), bench("tool", objective="mlm")
    yield "bert_mini: mlm_tp / mlm, time of a step", _ratio(tp["seconds"], mlm["seconds"])
    yield "bert_mini: mlm_tp / mlm, peak memory", _memory(tp, mlm)
    theirs, ours = bench("plain", encoder="bert_small", dropout=0.1), bench("tool", encoder="bert_small", dropout=0.1)
    yield "bert_small, taco, dropout 0.1: plain / tool", _ratio(theirs["seconds"], ours["seconds"])


def tool(bench: Bench) -> Iterator[tuple[str, str]]:
    """Measure what the tool itself costs."""
    through, bare = bench("tool"), bench("bare")
    yield "bert_mini, taco: taco-train / bare loop, time of a step", _ratio(through["seconds"], bare["seconds"])
    yield "loader / training, tokens per second", _ratio(through["seconds"], bench("loader")["seconds"])
    words = 1_000_000 if bench.quick else 5_000_000
    ours, theirs = (bench("blocks", way=way, words=words)["tokens_per_second"] for way in ("tool", "datasets"))
    yield "corpus to blocks: tool / datasets.map, tokens per second", f"{ours / theirs:.2f} ({ours / 1e6:.2f} M/s)"


def _ratio(left: list[float], right: list[float]) -> str:
    """Return the ratio of medians, with that of the quartiles."""
    ratio = statistics.median(left) / statistics.median(right)
    if min(len(left), len(right)) < 4:
        return f"{ratio:.2f}"
    low, _, high = statistics.quantiles(right, n=4)
    return f"{ratio:.2f} ({statistics.median(left) / high:.2f} to {statistics.median(left) / low:.2f})"


def _memory(left: dict[str, Any], right: dict[str, Any]) -> str:
    return f"{left['peak_bytes'] / right['peak_bytes']:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer encoders and steps")
    quick = parser.parse_args().quick
    from benchmarks.plain import check_same_loss

    difference = check_same_loss()
    assert difference < 1e-5, difference
    rows: list[tuple[str, str]] = [("plain and tool, contrast on the same draws", f"relative {difference:.0e}")]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, quick)
        for part in (ceilings(), speed(bench), tool(bench)):
            for row in part:
                rows.append(row)
                print(f"{row[0]:<60} {row[1]}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench.json").write_text(json.dumps(dict(rows), indent=2) + "\n")
    table = "\n".join(f"| {what} | {value} |" for what, value in rows)
    (RESULTS / "bench.md").write_text(f"| what | measured |\n|---|---|\n{table}\n")
    print(f"saved in {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")


if __name__ == "__main__":
    main()
