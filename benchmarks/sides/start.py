"""From the command `taco-train` to its first optimizer step, on a corpus that is in the cache, uncompiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.case import Case, Results
from benchmarks.material import write_corpus, write_vocabulary


def measure(case: Case, folder: Path) -> Results:
    """Return seconds: ``total``, and of it ``imports`` and ``validation`` (of the untrained encoder)."""
    command = [sys.executable, "-m", "benchmarks.sides.start"]
    overrides = _overrides(case, folder)
    starts = [_start(command, overrides) for _ in range(case.rounds + 1)]
    return {name: [start[name] for start in starts[1:]] for name in starts[0]}  # the first one fills the cache


def _overrides(case: Case, folder: Path) -> list[str]:
    corpus, vocabulary = write_corpus(folder, case.vocab_size, case.words), write_vocabulary(folder, case.vocab_size)
    return [
        f"encoder={case.encoder}",
        f"objective={case.objectives[0]}",
        f"batch_size={case.batch_size}",
        f"sequence_length={case.length}",
        "micro_batch_size=null",
        "corpus=text",
        f'corpus.files=["{corpus}"]',
        f'corpus.cache_dir="{folder / "cache"}"',
        "corpus.validation_fraction=0.02",
        "tokenizer=pretrained",
        f'tokenizer.path="{vocabulary}"',
        "trainer=cpu",
        "trainer.compile=false",
        "budget=1000steps",
    ]


def _start(command: list[str], overrides: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as outputs:
        arguments = [str(time.time()), f'output_root="{outputs}"', *overrides]
        ended = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if not ended.stdout.strip():
        raise RuntimeError((ended.stderr.strip().splitlines() or ["taco-train said nothing"])[-1])
    times: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return times


def _report(began: float, times: Counter[str]) -> Callable[[Any], None]:
    def report(_: Any) -> None:
        print(json.dumps({**times, "total": time.time() - began}), flush=True)
        os._exit(0)  # training goes no further

    return report


def main() -> None:
    began = float(sys.argv[1])  # when the parent started this process
    sys.argv = ["taco-train", *sys.argv[2:]]
    times: Counter[str] = Counter()
    start = time.perf_counter()
    from taco_cli.training.module import Pretraining
    from taco_cli.training.validation import Validation

    times["imports"] = time.perf_counter() - start
    from benchmarks.observe import after, timed
    from taco_cli import cli

    with (
        timed(Validation, "__call__", lambda seconds: times.update(validation=seconds)),
        after(Pretraining, "training_step", _report(began, times)),
    ):
        sys.exit(cli.train())


if __name__ == "__main__":
    main()
