"""Which values go to W&B, by what names, and over which steps."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from taco_cli.analysis import analyze, track
from taco_cli.analysis.curves import curves
from taco_cli.config.analyze import AnalyzeConfig, Measure
from taco_cli.config.schema import TrackingConfig, TrackingKind
from taco_cli.tracking import wandb_evaluation
from taco_cli.tracking.evaluations import Job


def test_last_layer_of_every_step_and_no_number_that_is_none() -> None:
    rows = [
        {"step": step, "layer": layer, "vector": "h", "distance": distance, "measure": what, "value": value}
        for step in (0, 10)
        for layer in (1, 2)
        for distance in ("", 4)
        for what, value in (("gap", step + layer), ("inter", math.nan))
    ]
    expected = {0: {"analysis/similarity/layer_2/h/gap": 2.0}, 10: {"analysis/similarity/layer_2/h/gap": 12.0}}
    assert curves({Measure.similarity: rows}) == expected


def test_runs_go_to_wandb_over_steps(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Path(shutil.copytree(run_folder, tmp_path / "seed_1"))
    calls: list[Any] = []
    monkeypatch.setattr(wandb_evaluation, "log_evaluation", lambda *arguments: calls.append(arguments))
    tracking = TrackingConfig(kind=TrackingKind.wandb)
    settings: dict[str, Any] = {"sequences": 16, "batch_size": 8, "probe_sequences": 32, "probe_tokens": 20}
    config = AnalyzeConfig(run=str(run), steps=[0, 12], tracking=tracking, device="cpu", **settings)
    (analysis,) = analyses = analyze(config)
    track(analyses, config)
    ((sent, job, scores),) = calls
    assert (sent, job) == (tracking, Job.analysis)
    assert (scores.group, scores.name, scores.folder) == ("tiny", "taco seed 1", run)
    assert list(scores.by_step) == [0, 12]
    assert {name.split("/")[1] for name in scores.by_step[12]} == set(Measure)
    names = (
        "similarity/layer_2/h/intra",
        "alignment/states/effective_rank",
        "gradients/mlm/states/layer_0/unmasked/share",
        "probes/layer_2/identity/untouched/accuracy",
        "shortcut/g/matched_minus_uniform",
    )
    assert {f"analysis/{name}" for name in names} <= scores.by_step[12].keys()
    (gap,) = (
        row["value"]
        for row in analysis.tables[Measure.similarity]
        if (row["step"], row["layer"], row["vector"], row["measure"]) == (12, 2, "h", "gap")
    )
    assert scores.by_step[12]["analysis/similarity/layer_2/h/gap"] == gap
    config.tracking.kind = TrackingKind.csv
    track(analyses, config)
    assert len(calls) == 1
