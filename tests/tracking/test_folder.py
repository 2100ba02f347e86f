from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taco_cli.config.schema import RunConfig
from taco_cli.tracking import RunFolder, slug


def test_path_is_root_name_label_seed():
    assert RunFolder.of(RunConfig(name="a", label="b", seed=7, output_root="o")).path == Path("o/a/b/seed_7")


def test_without_a_label_the_objective_names_the_arm():
    assert RunFolder.of(RunConfig()).path == Path("outputs/pretrain/taco/seed_1")


def test_files_are_where_they_are_promised(folder):
    inside = [folder.manifest, folder.metrics_csv, folder.checkpoints, folder.exports, folder.log]
    assert [str(path.relative_to(folder.path)) for path in inside] == [
        "manifest.json", "metrics.csv", "checkpoints", "hf", "train.log"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mlm", "mlm"),
        ("objective.tc.temperature=0.05", "objective.tc.temperature-0.05"),
        ("files=[a b.txt,c]", "files-a-b.txt-c"),
        ("(x)", "x"),
        ("../../etc", "etc"),
        ("Müller", "Muller"),
        ("lr=1e-3+x_y", "lr-1e-3+x_y"),
    ],
)
def test_slug(text, expected):
    assert slug(text) == expected


@pytest.mark.parametrize("text", ["", "..", "//", "中文"])
def test_nothing_left_is_an_error(text):
    with pytest.raises(ValueError, match="cannot name a folder"):
        slug(text)


@given(st.text(min_size=1, max_size=300))
def test_slug_is_one_safe_part_of_a_path(text):
    try:
        result = slug(text)
    except ValueError:
        return
    assert re.fullmatch(r"[A-Za-z0-9._+-]{1,100}", result)
    assert not result.startswith(".")
    assert slug(result) == result


def test_long_names_that_differ_at_the_end_stay_apart():
    assert slug("x" * 200 + "a") != slug("x" * 200 + "b")


def test_lock_is_free_again_afterwards(folder):
    for _ in range(2):
        with folder.lock():
            pass


def test_lock_refuses_a_second_run_in_this_process(folder):
    with folder.lock(), pytest.raises(ValueError, match="in progress"), folder.lock():
        pass
    with folder.lock():
        pass


_HOLD = """
import sys
from taco_cli.tracking.folder import RunFolder
with RunFolder(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock_refuses_a_second_process_until_the_first_is_gone(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match=rf"seed_3.*process {holder.pid} on"), folder.lock():
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with folder.lock():
        pass


def test_a_forked_child_does_not_keep_the_lock(folder):
    """Loader workers are forked and may outlive a killed run for a moment."""
    script = (
        "import os, sys, time\n"
        "from taco_cli.tracking.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).lock():\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        time.sleep(60)\n"
        "    print(child, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(folder.path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    holder.wait()
    try:
        with folder.lock():
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()
