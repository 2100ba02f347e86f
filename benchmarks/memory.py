"""Memory of a process: with its children, and what the C library keeps of it."""

from __future__ import annotations

import ctypes
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taco_cli.machine import keep_freed_memory

EVERY = 0.05  # seconds
# What glibc's thresholds rise to by themselves; to set them is the only way back to them.
USUAL = {-3: 32 << 20, -1: 64 << 20}


@contextmanager
def given_back() -> Iterator[None]:
    """Inside the block, freed memory goes back to the kernel as in any program; afterwards it is kept, as in ours."""
    if keep_freed_memory():
        library = ctypes.CDLL(None)
        for option, value in USUAL.items():
            library.mallopt(option, value)
        library.malloc_trim(0)  # what was kept so far would serve the block too
    try:
        yield
    finally:
        keep_freed_memory()


class Watch:
    """Samples inside a `with` block; afterwards ``peak`` is the highest sum of resident bytes.

    Where there is no `/proc`: the peaks of the process and of its largest child, added.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.peak = max(self.peak, resident(os.getpid()) or _highest())
            if self._ended.wait(EVERY):
                return


def resident(process: int) -> int:
    """Return the resident bytes of a process and all below it; 0 if it is gone."""
    folder = Path("/proc") / str(process)
    try:
        pages = int((folder / "statm").read_text().split()[1])
        children = [child for task in (folder / "task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return 0
    return pages * resource.getpagesize() + sum(resident(int(child)) for child in children)


def _highest() -> int:
    return 1024 * sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
