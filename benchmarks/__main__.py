"""Measure ratios, both sides in turn, and print and save them beside their targets."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import table
from benchmarks.case import Case
from benchmarks.rows import rows
from benchmarks.runner import Runner

RESULTS = Path(__file__).parent / "results"
BUSY = 0.5  # load before the first measurement


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="bert_mini alone: two minutes instead of fifteen")
    parser.add_argument("--data_dir", help="folder of GLUE's official files: fine-tune on SST-2 itself")
    asked = parser.parse_args()
    chosen, about, start = rows(asked.quick, asked.data_dir), _about(), time.perf_counter()
    for name, value in about.items():
        print(f"{name}: {value}", flush=True)
    measured: list[table.Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder))
        for section in dict.fromkeys(row.section for row in chosen):
            here = [row for row in chosen if row.section == section]
            print(f"\n{section}", flush=True)
            runner.measure([case for row in here for case in row.cases])
            found = [table.fill(row, runner.done, runner.failed) for row in here]
            print("\n".join(table.lines(found)), flush=True)
            measured += found
            about["took"] = f"{(time.perf_counter() - start) / 60:.1f} min"
            # After each section, so that a run that is stopped leaves what it has.
            text, data = table.markdown(measured, about), table.plain_data(measured, about)
            paths = table.save(RESULTS, "quick" if asked.quick else "bench", text, data)
    print(f"\n{about['took']}; saved in {' and '.join(map(str, paths))}")
    return 1 if runner.failed else 0


def _about() -> dict[str, str]:
    """Say what was measured on what, for whoever reads the table alone."""
    from importlib.metadata import version

    load, case = os.getloadavg()[0], Case("steps")
    step = f"{case.batch_size} x {case.length} tokens"
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": f"Python {platform.python_version()}, torch {version('torch')}",
        "load before": f"{load:.1f}" + (" (the machine is busy: times are not to be trusted)" if load > BUSY else ""),
        "a step": f"{step}; vocabulary {case.vocab_size:,}, K = 50, dropout 0 unless said",
        "plain": "stock Hugging Face model in float32, head on all positions, all negatives gathered at once",
        "tool": "the same module as in taco-train, in a bare loop: compiled, bf16 where the processor multiplies it",
        "values": "median of the rounds (lowest to highest); one round is both sides one after the other",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    sys.exit(main())
