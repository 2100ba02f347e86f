"""One progress bar with loss terms, tokens per second and time left, where there is a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

import lightning as L
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from taco_cli.training.callbacks import Record

_REFRESH_SECONDS = 0.2


class ProgressBar(L.Callback):
    """Shows what :class:`Record` read last; it never waits for the device itself."""

    def __init__(self, record: Record, label: str) -> None:
        self._record, self._label = record, label
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._shown = 0.0

    def on_train_start(self, trainer: L.Trainer, module: Any) -> None:
        """Begin, on the first rank of a terminal."""
        if module.global_rank != 0 or not sys.stderr.isatty():
            return
        from rich.console import Console

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[terms]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            expand=True,
        )
        self._task = self._bar.add_task(self._label, total=1.0, completed=module.budget_progress(), terms="")
        self._bar.start()

    def on_train_batch_end(self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Refresh, a few times a second at most."""
        now = time.monotonic()
        if self._bar is None or (now - self._shown < _REFRESH_SECONDS and not module.done()):
            return
        self._shown = now
        self._bar.update(self._task, completed=module.budget_progress(), terms=self._terms(module.progress.step))

    def teardown(self, trainer: L.Trainer, module: Any, stage: str) -> None:
        """Leave the terminal as it was, also after a failure."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _terms(self, step: int) -> str:
        latest = self._record.latest
        losses = [f"{name.removeprefix('train/')} {latest[name]:.3f}" for name in latest if name.startswith("train/")]
        speed = latest.get("throughput/tokens_per_second")
        return "  ".join([f"step {step:,}", *losses, *([f"{speed:,.0f} tokens/s"] if speed else [])])
