"""Memory of a process with its children."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks.memory import EVERY, Watch, resident

MEGABYTES = 64
CHILD = f"held = bytearray(b'x') * {MEGABYTES << 20}; print('ready', flush=True); input()"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def test_peak_remembers_what_was_freed() -> None:
    before = resident(os.getpid())
    with Watch() as watch:
        held = np.ones(MEGABYTES << 17)
        time.sleep(4 * EVERY)
        del held
    assert watch.peak >= before + (MEGABYTES << 20) * 0.9


def test_children_count() -> None:
    before = resident(os.getpid())
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert resident(os.getpid()) >= before + (MEGABYTES << 20)
        child.communicate(b"\n")


def test_process_that_is_gone_holds_nothing() -> None:
    assert resident(2**30) == 0
