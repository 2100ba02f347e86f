"""Runs cases in processes of their own, those of a section in turn, and remembers what they gave."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.case import Case, Results

ROOT = Path(__file__).parents[1]


class Runner:
    """Measures cases, each once.

    Args:
        folder: for corpora, caches and run folders; begun empty, so that compilation is measured from a cold cache.
        command: what is called with the folder and a case as JSON and prints its results as JSON.
    """

    def __init__(self, folder: Path, command: Sequence[str] = (sys.executable, "-m", "benchmarks.case")) -> None:
        self._folder, self._command = folder, list(command)
        self._environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
        self.done: dict[Case, Results] = {}
        self.failed: dict[Case, str] = {}

    def measure(self, cases: Sequence[Case]) -> None:
        """Run what has not been run: A B C, and again A B C for those with repeats."""
        new = [case for case in dict.fromkeys(cases) if case not in self.done and case not in self.failed]
        for turn in range(max((case.repeats for case in new), default=0)):
            for case in new:
                if turn < case.repeats and case not in self.failed:
                    self._run(case)

    def _run(self, case: Case) -> None:
        arguments = [str(self._folder), json.dumps(dataclasses.asdict(case))]
        ended = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, cwd=ROOT, env=self._environment
        )
        if ended.returncode:
            last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            self.failed[case] = f"exit status {ended.returncode}: {last}"
            return
        results: Results = json.loads(ended.stdout.splitlines()[-1])
        before = self.done.setdefault(case, {})
        for name, values in results.items():
            before[name] = [*before.get(name, []), *values]
