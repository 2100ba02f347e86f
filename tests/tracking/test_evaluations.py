"""When scores are sent, and that a failure costs nothing but a warning."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from taco_cli.config.schema import TrackingConfig, TrackingKind
from taco_cli.tracking import wandb_evaluation
from taco_cli.tracking.evaluations import Job, Scores, send_scores

RUNS = [Scores("made", f"taco seed {seed}", Path(f"seed_{seed}"), {3: {"x": 1.0}}) for seed in (1, 2)]


def test_to_wandb_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(wandb_evaluation, "log_evaluation", lambda *arguments: calls.append(arguments))
    send_scores(TrackingConfig(), Job.analysis, RUNS)
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        send_scores(TrackingConfig(kind=TrackingKind.tensorboard), Job.analysis, RUNS)
    assert "tracking=tensorboard: taco-analyze writes analysis/*.csv and knows W&B" in caplog.text
    assert not calls
    tracking = TrackingConfig(kind=TrackingKind.wandb)
    send_scores(tracking, Job.glue, RUNS)
    assert calls == [(tracking, Job.glue, run) for run in RUNS]


def test_what_wandb_does_not_take_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken = []

    def fails_once(tracking: TrackingConfig, job: Job, scores: Scores) -> None:
        if scores is RUNS[0]:
            raise OSError("no server")
        taken.append(scores)

    monkeypatch.setattr(wandb_evaluation, "log_evaluation", fails_once)
    with caplog.at_level(logging.WARNING):
        send_scores(TrackingConfig(kind=TrackingKind.wandb), Job.glue, RUNS)
    assert "W&B did not take the scores of seed_1 (no server); glue.csv has them" in caplog.text
    assert taken == RUNS[1:]
