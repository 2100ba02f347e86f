from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


def write(file: Path, header: str, *rows: str) -> Path:
    file.write_text("\n".join([f"task,step,seed,metric,value,{header}", *rows, ""]))
    return file


def test_settings_have_curves_of_their_own(tmp_path: Path) -> None:
    rows = (
        "rte,9,1,accuracy,50,quick,2",
        "cola,9,1,matthews,1,quick,2",
        "rte,9,1,accuracy,60,taco,4",
        "rte,9,2,accuracy,70,taco,4",
        "rte,18,1,accuracy,55,quick,2",
        "rte,18,1,accuracy,65,taco,4",
    )
    scores = read_glue(write(tmp_path / "glue.csv", "protocol,epochs", *rows), {})
    assert {name: curve.values.tolist() for name, curve in scores.curves.items()} == {
        "glue/rte/accuracy": [65, 65],
        "glue_quick/rte/accuracy": [50, 55],
        "glue/cola/matthews": [1],
    }
    assert scores.samples["glue/rte/accuracy"] == {9: [60, 70], 18: [65]}
    assert scores.settings["glue/rte"] == (("protocol", "taco"), ("epochs", "4"))
    assert scores.protocol("glue_quick/rte/accuracy") == "quick"


def test_settings_of_one_protocol_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    rows = (
        "rte,9,1,accuracy,50,quick,2,0.1,",
        "rte,9,1,accuracy,51,quick,4,0.1,100",
        "rte,9,1,accuracy,52,taco,4,0.1,",
        "rte,9,1,accuracy,53,quick,4,0.1,",
    )
    scores = read_glue(write(tmp_path / "glue.csv", "protocol,epochs,lr,train_limit", *rows), {})
    assert {name: curve.values.tolist() for name, curve in scores.curves.items()} == {
        "glue_quick_epochs_2_train_limit_none/rte/accuracy": [50],
        "glue_quick_epochs_4_train_limit_100/rte/accuracy": [51],
        "glue_taco/rte/accuracy": [52],
        "glue/rte/accuracy": [53],
    }


def test_settings_without_a_protocol_and_with_odd_values_have_names_too(tmp_path: Path) -> None:
    rows = ("rte,9,1,accuracy,50,a/b c", "rte,9,1,accuracy,51,a/b+c", "rte,9,1,accuracy,52,d")
    scores = read_glue(write(tmp_path / "glue.csv", "head", *rows), {})
    names = ["glue_head_a%2Fb+c/rte/accuracy", "glue_head_a%2Fb%2Bc/rte/accuracy", "glue/rte/accuracy"]
    assert list(scores.curves) == names


def test_a_seed_measured_on_two_machines_counts_once(tmp_path: Path) -> None:
    rows = ("rte,9,1,accuracy,50,cpu", "rte,9,1,accuracy,52,cuda", "rte,9,2,accuracy,61,cuda")
    scores = read_glue(write(tmp_path / "glue.csv", "device", *rows), {})
    assert scores.samples["glue/rte/accuracy"] == {9: [51, 61]}
    assert scores.curves["glue/rte/accuracy"].values.tolist() == [56]


def test_a_learning_rate_chosen_from_a_grid_is_no_setting(tmp_path: Path) -> None:
    rows = ("rte,9,1,accuracy,50,0.1,0.1 0.2", "rte,9,2,accuracy,60,0.2,0.1 0.2")
    file = write(tmp_path / "glue.csv", "lr,lr_grid", *rows)
    assert read_glue(file, {}).curves["glue/rte/accuracy"].values.tolist() == [55]


def test_runs_that_were_measured_otherwise_are_said(tmp_path: Path, make_run: MakeRun) -> None:
    for label, epochs in (("mlm", 4), ("taco", 6)):
        write(make_run(tmp_path, label) / "glue.csv", "epochs", f"rte,9,1,accuracy,50,{epochs}")
    found = evaluate(read_runs([tmp_path]), CompareConfig(runs=str(tmp_path)))
    assert any("glue/rte was not measured alike" in caution for caution in found.notices)


def test_other_protocols_are_on_the_page_and_get_better_upwards(tmp_path: Path, make_run: MakeRun) -> None:
    for label in ("mlm", "taco"):
        rows = ("rte,9,1,accuracy,50,quick", "rte,9,1,accuracy,51,taco")
        write(make_run(tmp_path, label) / "glue.csv", "protocol", *rows)
    found = evaluate(read_runs([tmp_path]), CompareConfig(runs=str(tmp_path)))
    assert list(found.results) == ["val/mlm", "glue/rte/accuracy", "glue_quick/rte/accuracy"]
    assert found.results["glue_quick/rte/accuracy"][1].match is not None
    assert found.notices == []


def test_scores_of_single_layers_are_shown_if_asked_for(tmp_path: Path, make_run: MakeRun) -> None:
    file = make_run(tmp_path) / "glue.csv"
    file.write_text("task,step,seed,metric,value\nsts,9,1,spearman,50\nsts,9,1,spearman_layer_3,40\n")
    outputs = read_runs([tmp_path])
    assert list(evaluate(outputs, CompareConfig(runs="x")).results) == ["val/mlm", "glue/sts/spearman"]
    name = "glue/sts/spearman_layer_3"
    assert name in evaluate(outputs, CompareConfig(runs="x", metrics=[name])).results
