"""Memory of a process: with its children, and what the C library keeps of it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from mmap import mmap

import pytest

from benchmarks.memory import EVERY, Watch, resident

MEGABYTES = 64
CHILD = f"held = bytearray(b'x') * {MEGABYTES << 20}; print('ready', flush=True); input()"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def test_peak_remembers_what_was_freed() -> None:
    before = resident(os.getpid())
    with Watch() as watch, mmap(-1, MEGABYTES << 20) as held:  # not from what the C library keeps
        held.write(b"x" * len(held))
        time.sleep(4 * EVERY)
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


FAULTS = """
import resource, torch
from benchmarks.memory import given_back
from taco_cli.machine import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        tensors = [torch.ones(12_000_000) for _ in range(2)]
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
keep_freed_memory()
faults()
kept = faults()
with given_back():
    usual = faults()
faults()
print(kept, usual, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_is_given_back_inside_the_block_alone() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], env={}, capture_output=True, text=True, check=True)
    kept, usual, again = map(int, done.stdout.split())
    assert max(kept, again) < 0.1 * usual
