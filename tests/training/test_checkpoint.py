from __future__ import annotations

import errno
import os
import resource
import signal
import time
from contextlib import contextmanager
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.training import checkpoint
from taco_cli.training.checkpoint import (
    MILESTONES,
    checkpoint_path,
    list_checkpoints,
    load,
    load_latest,
    milestone_crossed,
    milestones,
    prune,
    record_milestone,
    save,
)


def _state(step: int, size: int = 100) -> dict:
    generator = torch.Generator().manual_seed(step)
    return {"step": step, "weights": {"w": torch.randn(size, generator=generator)}, "done": [0.25, (1, "a")]}


def _same(one: dict, other: dict) -> bool:
    return (
        one["step"] == other["step"]
        and one["done"] == other["done"]
        and torch.equal(one["weights"]["w"], other["weights"]["w"])
    )


def _save_steps(folder: Path, *steps: int) -> None:
    for step in steps:
        save(checkpoint_path(folder, step), _state(step))


@contextmanager
def _file_size_limit(size: int):
    """Let writes beyond `size` bytes fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_saved_comes_back(tmp_path):
    _save_steps(tmp_path / "checkpoints", 3)
    found = load_latest(tmp_path / "checkpoints")
    assert found is not None
    assert found[0] == 3
    assert _same(found[1], _state(3))
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000003.ckpt"]


def test_order_is_by_step_whatever_the_digits(tmp_path):
    _save_steps(tmp_path, 1_000_000, 20, 999_999)
    (tmp_path / "step-12.ckpt").touch()  # not a name that is ever written
    assert [step for step, _ in list_checkpoints(tmp_path)] == [20, 999_999, 1_000_000]
    assert load_latest(tmp_path)[0] == 1_000_000


@pytest.mark.parametrize("make", [True, False])
def test_no_checkpoint_is_none(tmp_path, make):
    folder = tmp_path / "checkpoints"
    if make:
        folder.mkdir()
    assert load_latest(folder) is None
    assert list_checkpoints(folder) == []


class _Word(StrEnum):
    a = "a"


@pytest.mark.parametrize(
    ("state", "where"),
    [({"x": [Path("a")]}, r"state\['x'\]\[0\] is a "), ({"x": _Word.a}, r"state\['x'\] is a _Word")],
)
def test_what_could_not_be_read_back_is_refused_before_writing(tmp_path, state, where):
    with pytest.raises(TypeError, match=where):
        save(checkpoint_path(tmp_path, 1), state)
    assert list(tmp_path.iterdir()) == []


@given(st.floats(0, 1, exclude_max=True), st.booleans())
@settings(max_examples=60, deadline=None)
def test_damage_never_goes_unnoticed(tmp_path_factory, place, truncate):
    path = checkpoint_path(tmp_path_factory.mktemp("damage"), 1)
    save(path, _state(1))
    good = path.read_bytes()
    at = int(place * len(good))
    path.write_bytes(good[:at] if truncate else good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :])
    if truncate:
        with pytest.raises(ValueError, match=path.name):
            load(path)
        return
    try:
        state = load(path)
    except ValueError:
        return
    assert _same(state, _state(1))  # a byte that means nothing, such as padding


def test_falls_back_past_damaged_files_and_names_them(tmp_path, caplog):
    _save_steps(tmp_path, 1, 2, 3)
    checkpoint_path(tmp_path, 2).write_bytes(b"")
    newest = checkpoint_path(tmp_path, 3)
    newest.write_bytes(newest.read_bytes()[:500])
    step, state = load_latest(tmp_path)
    assert step == 1
    assert _same(state, _state(1))
    assert "step-000003.ckpt" in caplog.text
    assert "step-000002.ckpt" in caplog.text
    # Set aside, so that neither retention nor the next start counts on them.
    assert [step for step, _ in list_checkpoints(tmp_path)] == [1]
    assert (tmp_path / "step-000003.ckpt.damaged").exists()


def test_all_damaged_says_what_to_do_every_time(tmp_path):
    folder = tmp_path / "run" / "checkpoints"
    _save_steps(folder, 1, 2)
    for _, path in list_checkpoints(folder):
        path.write_bytes(b"nothing")
    for _ in range(2):  # a second start must not take the run for a new one
        with pytest.raises(ValueError, match=r"step-000002\.ckpt, step-000001\.ckpt.*delete the run folder"):
            load_latest(folder)


def test_leftovers_of_a_killed_save_are_ignored_and_cleaned_up(tmp_path, caplog):
    _save_steps(tmp_path, 1)
    (tmp_path / "step-000002.ckpt.tmp").write_bytes(b"half")
    assert load_latest(tmp_path)[0] == 1
    assert "step-000002.ckpt.tmp" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001.ckpt"]


def test_a_full_disk_leaves_the_old_files_and_a_clear_message(tmp_path):
    _save_steps(tmp_path, 1)
    with _file_size_limit(100_000), pytest.raises(OSError, match="step-000002") as caught:
        save(checkpoint_path(tmp_path, 2), _state(2, size=1_000_000))
    message = str(caught.value)
    assert str(tmp_path) in message
    assert "4.0 MB" in message
    assert os.strerror(errno.EFBIG) in message
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001.ckpt"]
    assert load_latest(tmp_path)[0] == 1


def test_a_full_disk_at_the_last_moment_is_no_different(tmp_path, monkeypatch):
    _save_steps(tmp_path, 1)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(checkpoint_path(tmp_path, 1), _state(2))
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001.ckpt"]
    assert _same(load(checkpoint_path(tmp_path, 1)), _state(1))


def _save_forever(folder: Path, weights: torch.Tensor) -> None:
    step = len(list_checkpoints(folder))
    while True:
        step += 1
        save(checkpoint_path(folder, step), {"step": step, "w": weights})


def test_kills_in_mid_save_leave_whole_files(tmp_path):
    weights = torch.randn(300_000)
    for round_ in range(3):
        writer = os.fork()
        if writer == 0:
            try:
                _save_forever(tmp_path, weights)
            finally:
                os._exit(1)
        while len(list_checkpoints(tmp_path)) <= round_ or not list(tmp_path.glob("*.tmp")):
            time.sleep(0.001)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        checkpoints = list_checkpoints(tmp_path)
        assert len(checkpoints) > round_
        for step, path in checkpoints:
            state = load(path)
            assert state["step"] == step
            assert torch.equal(state["w"], weights)
        assert load_latest(tmp_path)[0] == checkpoints[-1][0]


def test_milestones_are_the_first_steps_at_or_past_a_share():
    steps = 1000
    crossed = {s + 1: milestone_crossed(s / steps, (s + 1) / steps) for s in range(steps)}
    assert {step: share for step, share in crossed.items() if share} == {
        63: 0.0625, 125: 0.125, 250: 0.25, 500: 0.5, 1000: 1.0
    }  # fmt: skip


@given(st.lists(st.floats(0, 1), max_size=30))
@settings(max_examples=100, deadline=None)
def test_every_milestone_is_crossed_once_or_within_a_larger_one(points):
    path = [0.0, *sorted(points), 1.0]
    crossed = [milestone_crossed(before, after) for before, after in pairwise(path)]
    found = [share for share in crossed if share is not None]
    assert found == sorted(set(found))
    assert found[-1] == MILESTONES[-1]


def test_a_step_over_several_milestones_counts_for_the_largest():
    assert milestone_crossed(0.0, 0.3) == 0.25
    assert milestone_crossed(0.25, 0.3) is None


def test_milestones_are_remembered_across_restarts(tmp_path):
    assert milestones(tmp_path / "checkpoints") == set()
    for step in (63, 125, 63):
        record_milestone(tmp_path / "checkpoints", step)
    assert milestones(tmp_path / "checkpoints") == {63, 125}
    assert list_checkpoints(tmp_path / "checkpoints") == []


@given(st.sets(st.integers(1, 30), min_size=1), st.sets(st.integers(1, 30)), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_prune_keeps_the_newest_and_the_milestones(tmp_path_factory, steps, kept_for_good, keep):
    folder = tmp_path_factory.mktemp("prune")
    for step in steps:
        checkpoint_path(folder, step).touch()
    deleted = prune(folder, keep, kept_for_good)
    left = {step for step, _ in list_checkpoints(folder)}
    assert left == set(sorted(steps)[-keep:]) | (steps & kept_for_good)
    assert set(deleted) == steps - left


def test_exports_go_with_their_checkpoints(tmp_path):
    exports = tmp_path / "hf"
    _save_steps(tmp_path / "checkpoints", 1, 2, 3)
    for step in (1, 3):
        (exports / f"step-{step:06d}").mkdir(parents=True)
        (exports / f"step-{step:06d}" / "config.json").touch()
    assert prune(tmp_path / "checkpoints", 1, {2}, exports) == [1]
    assert [path.name for path in exports.iterdir()] == ["step-000003"]
