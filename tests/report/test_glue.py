from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from taco_cli.config.compare import CompareConfig
from taco_cli.report.curves import read_metrics
from taco_cli.report.glue import read_glue
from taco_cli.report.results import evaluate
from taco_cli.report.runs import read_runs

MakeRun = Callable[..., Path]


def test_glue_is_averaged_over_fine_tuning_seeds(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,tokens,seconds,metric,value\n0,0,0,a,1\n100,6400,50,a,1\n")
    (tmp_path / "glue.csv").write_text(
        "task,step,seed,metric,value,extra\nCoLA,50,1,matthews,20,x\nCoLA,50,2,matthews,30,x\nCoLA,100,1,matthews,40,x\n"
    )
    curve = read_glue(tmp_path / "glue.csv", read_metrics(tmp_path / "metrics.csv")).curves["glue/CoLA/matthews"]
    assert curve.steps.tolist() == [50, 100]
    assert curve.values.tolist() == [25, 40]
    assert curve.tokens.tolist() == [3200, 6400]
    assert curve.seconds.tolist() == [25, 50]


def test_other_settings_are_not_pooled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "glue.csv"
    rows = [
        "rte,9,1,accuracy,50,0.1,4",
        "rte,9,1,accuracy,60,0.2,4",
        "rte,9,2,accuracy,70,0.2,4",
        "cola,9,1,matthews,1,0.1,4",
    ]
    file.write_text("\n".join(["task,step,seed,metric,value,lr,epochs", *rows, ""]))
    with caplog.at_level(logging.WARNING):
        scores = read_glue(file, {})
    assert scores.curves["glue/rte/accuracy"].values.tolist() == [65]
    assert scores.settings == {"rte": "lr 0.2, epochs 4", "cola": "lr 0.1, epochs 4"}
    assert "1 rows of earlier settings are left out" in caplog.text


def test_a_learning_rate_chosen_from_a_grid_is_no_setting(tmp_path: Path) -> None:
    file = tmp_path / "glue.csv"
    header = "task,step,seed,metric,value,lr,lr_grid\n"
    file.write_text(header + "rte,9,1,accuracy,50,0.1,0.1 0.2\nrte,9,2,accuracy,60,0.2,0.1 0.2\n")
    assert read_glue(file, {}).curves["glue/rte/accuracy"].values.tolist() == [55]


def test_runs_that_were_measured_otherwise_are_said(tmp_path: Path, make_run: MakeRun) -> None:
    for label, epochs in (("mlm", 4), ("taco", 6)):
        file = make_run(tmp_path, label) / "glue.csv"
        file.write_text(f"task,step,seed,metric,value,epochs\nrte,9,1,accuracy,50,{epochs}\n")
    found = evaluate(read_runs([tmp_path]), CompareConfig(runs=str(tmp_path)))
    assert any("glue/rte was not measured alike" in caution for caution in found.notices)


def test_scores_of_single_layers_are_shown_if_asked_for(tmp_path: Path, make_run: MakeRun) -> None:
    file = make_run(tmp_path) / "glue.csv"
    file.write_text("task,step,seed,metric,value\nsts,9,1,spearman,50\nsts,9,1,spearman_layer_3,40\n")
    outputs = read_runs([tmp_path])
    assert list(evaluate(outputs, CompareConfig(runs="x")).results) == ["val/mlm", "glue/sts/spearman"]
    name = "glue/sts/spearman_layer_3"
    assert name in evaluate(outputs, CompareConfig(runs="x", metrics=[name])).results
