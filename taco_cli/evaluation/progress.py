"""One progress bar over all measurements of an evaluation, where there is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

_REFRESH_SECONDS = 0.2


class Progress:
    """Counts measurements; parts of one move the bar as well."""

    def __init__(self, total: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        hidden = not sys.stderr.isatty()
        self._bar = Bar(*columns, console=Console(stderr=True), disable=hidden, transient=True)
        self._task = self._bar.add_task("", total=total)
        self._done, self._shown = 0, 0.0

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def within(self, description: str, share: float) -> None:
        """Show how far the present measurement is, a few times a second at most."""
        now = time.monotonic()
        if now - self._shown >= _REFRESH_SECONDS:
            self._shown = now
            self._bar.update(self._task, description=description, completed=self._done + share)

    def advance(self) -> None:
        """Count one measurement as done."""
        self._done += 1
        self._bar.update(self._task, completed=self._done)
