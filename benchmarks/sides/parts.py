"""Where the time of a training step goes, through everything that `taco-train` has."""

from __future__ import annotations

import contextlib
import functools
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.case import Case, Results
from benchmarks.material import run_config
from benchmarks.observe import replaced, timed
from taco_cli.data.loader import StepDataset
from taco_cli.encoder import Encoder
from taco_cli.objectives import Objective
from taco_cli.objectives.masked_lm import MaskedLM
from taco_cli.objectives.token_contrast import TokenContrast
from taco_cli.tracking import RunFolder
from taco_cli.training import train
from taco_cli.training.module import Pretraining

# Part -> the method that is it. No one calls another of them.
METHODS: dict[str, tuple[type, str]] = {
    "loader": (StepDataset, "__getitem__"),
    "masking": (Objective, "corrupt"),
    "encoder, forward": (Encoder, "forward"),
    "head and cross-entropy, with their gradients": (MaskedLM, "sum"),
    "TC, with its gradients": (TokenContrast, "sum"),
    "backward": (Pretraining, "manual_backward"),
    "clipping and optimizer": (Pretraining, "_update"),
}
TOOL = "tool: Lightning, callbacks, logging, the rest"
STEP = "step"
PARTS = (*METHODS, TOOL, STEP)


def measure(case: Case, folder: Path) -> Results:
    """Return seconds per part of each step after the warm-up; ``step`` is from one step's end to the next one's."""
    config = run_config(folder, case, case.objectives[0], budget=case.warm_up + case.steps)
    shutil.rmtree(RunFolder.of(config).path, ignore_errors=True)
    watch = _Watch()
    with contextlib.ExitStack() as stack:
        for part, (owner, name) in METHODS.items():
            stack.enter_context(timed(owner, name, functools.partial(watch.add, part)))
        stack.enter_context(replaced(Pretraining, "training_step", watch.step))
        train(config)
    found: Results = defaultdict(list)
    for parts in watch.steps[case.warm_up :]:
        for part in PARTS:
            found[part].append(parts[part])
    return dict(found)


class _Watch:
    """Collects the parts of each step: what comes between two steps belongs to the second one."""

    def __init__(self) -> None:
        self.steps: list[Counter[str]] = []
        self._parts: Counter[str] = Counter()
        self._ended = time.perf_counter()

    def add(self, part: str, seconds: float) -> None:
        self._parts[part] += seconds  # type: ignore[assignment]

    def step(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> None:
            method(*arguments)
            now = time.perf_counter()
            self._parts[STEP] = now - self._ended  # type: ignore[assignment]
            self._parts[TOOL] = self._parts[STEP] - sum(self._parts[part] for part in METHODS)
            self.steps.append(self._parts)
            self._parts, self._ended = Counter(), now

        return call
