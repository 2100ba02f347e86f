"""How far a run has come, and running means of what it measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass
class Progress:
    """Work done across restarts; `seconds` is training time, without validation and checkpoints."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Clock:
    """Adds the time that passes while it runs to ``progress.seconds``, which changes at a reading only."""

    def __init__(self, progress: Progress, agree: Callable[[float], float] = float) -> None:
        """`agree` turns the seconds of this rank into those of all ranks; every rank reads at the same places."""
        self._progress, self._agree = progress, agree
        self._since: float | None = None
        self._unread = 0.0

    def start(self) -> None:
        """Begin to count."""
        self._since = time.perf_counter()

    def read(self) -> None:
        """Bring ``progress.seconds`` up to date."""
        if self._since is not None:
            self._stop()
            self._progress.seconds = self._agree(self._progress.seconds + self._unread)
            self._unread = 0.0
            self.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time spent inside the block."""
        self._stop()
        try:
            yield
        finally:
            self.start()

    def _stop(self) -> None:
        if self._since is not None:
            self._unread += time.perf_counter() - self._since
            self._since = None


class Means:
    """Means of named quantities since the last reading, each as sum / count over everything added.

    Sums stay on the device, so that adding never waits for it.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}

    def add(self, name: str, total: Tensor, count: Tensor) -> None:
        """Add ``total``, the sum over ``count`` items (both scalars)."""
        total, count = total.detach().double(), count.double()
        self._sums[name] = self._sums[name] + total if name in self._sums else total
        self._counts[name] = self._counts[name] + count if name in self._counts else count

    def read(self) -> dict[str, float]:
        """Return the means and start over; what was never counted is left out."""
        counts = {name: float(count) for name, count in self._counts.items()}
        means = {name: float(self._sums[name]) / count for name, count in counts.items() if count > 0}
        self._sums, self._counts = {}, {}
        return means

    def state_dict(self) -> dict[str, Any]:
        """Return plain containers of tensors."""
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
