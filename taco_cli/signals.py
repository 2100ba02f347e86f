"""Signals that ask a run to stop: SIGINT (Ctrl-C), SIGTERM and SIGUSR1 (schedulers).

While nothing is worth saving, a signal ends the job at once; during training it is noted, the step is
finished, a checkpoint is written, and then the job ends. The exit status is 128 + signal either way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(BaseException):
    """A stop signal ended the job. Not an Exception: nothing that handles failures may swallow it."""

    def __init__(self, number: int) -> None:
        """Remember the signal's number."""
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number

    @property
    def exit_status(self) -> int:
        """The status shells and schedulers expect of a process that a signal ended."""
        return 128 + self.number


class StopRequest:
    """Handler of the stop signals; ``number`` is the last one noted, or None."""

    def __init__(self) -> None:
        """Begin in the state in which a signal ends the job at once."""
        self.number: int | None = None
        self._noting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise, or note the signal while :meth:`noting`; a second Ctrl-C always raises."""
        impatient = number == signal.SIGINT and self.number == signal.SIGINT
        self.number = number
        if not self._noting or impatient:
            raise Interrupted(number)

    def install(self) -> None:
        """Handle the stop signals (again: libraries put in handlers of their own)."""
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                signal.signal(number, self)

    @contextmanager
    def noting(self) -> Iterator[StopRequest]:
        """Note signals instead of raising, for as long as the block runs."""
        self._noting = True
        try:
            yield self
        finally:
            self._noting = False


@contextmanager
def handled() -> Iterator[StopRequest]:
    """Handle the stop signals for as long as the block runs, then put the former handlers back."""
    request = StopRequest()
    former = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    request.install()
    try:
        yield request
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in former.items():
                signal.signal(number, handler)
