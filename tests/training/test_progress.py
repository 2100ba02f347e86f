"""The clock of training time."""

from __future__ import annotations

import time

import pytest

from taco_cli.training.progress import Clock, Progress


def test_seconds_change_at_a_reading_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    progress = Progress(seconds=5.0)
    clock = Clock(progress)
    clock.read()
    assert progress.seconds == 5
    clock.start()
    now += 1
    with clock.paused():
        now += 10
    assert progress.seconds == 5
    now += 2
    clock.read()
    assert progress.seconds == 5 + 1 + 2
    clock.read()
    assert progress.seconds == 8


def test_what_all_agree_on_is_everyones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    progress = Progress()
    clock = Clock(progress, agree=lambda mine: 2 * mine)
    clock.start()
    now = 3.0
    clock.read()
    assert progress.seconds == 6
