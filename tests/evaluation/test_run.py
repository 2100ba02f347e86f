"""Whole evaluations of tiny checkpoints."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from taco_cli.config.glue import Score, TaskConfig
from taco_cli.config.schema import TrackingKind
from taco_cli.evaluation import evaluate, summarise, track
from taco_cli.evaluation import run as module
from taco_cli.evaluation.tasks import TASKS

from .conftest import Ask, MakeRun


def rows_of(folder: Path, name: str = "glue.csv") -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(make_run: MakeRun, tmp_path: Path) -> Path:
    return make_run(tmp_path / "outputs")


def test_all_nine_tasks_with_predictions(ask: Ask, run: Path) -> None:
    found = evaluate(ask(run=str(run), tasks="all", predictions=True, protocol__epochs=1))
    assert len(found) == 1
    rows = rows_of(run)
    metrics = {(row["task"], row["metric"]) for row in rows}
    assert {task for task, _ in metrics} == set(TASKS)
    assert {("mnli", "accuracy_matched"), ("mnli", "accuracy_mismatched"), ("cola", "matthews")} <= metrics
    assert all(row["step"] == "10" and row["precision"] == "float32" and row["checkpoint_hash"] for row in rows)
    folder = run / "glue" / "predictions" / "step-000010" / "seed_1"
    names = {"CoLA", "SST-2", "MRPC", "STS-B", "RTE", "MNLI-m", "MNLI-mm", "QQP", "QNLI", "WNLI"}
    assert {path.name for path in folder.glob("[!.]*")} == {f"{name}.tsv" for name in names}
    allowed = {"CoLA": {"0", "1"}, "RTE": {"entailment", "not_entailment"}}
    for name in names:
        lines = [line.split("\t") for line in (folder / f"{name}.tsv").read_text().splitlines()]
        assert lines[0] == ["index", "prediction"]
        assert [index for index, _ in lines[1:]] == [str(i) for i in range(5)]
        assert {value for _, value in lines[1:]} <= allowed.get(name, {value for _, value in lines[1:]})
    assert all(0 <= float(line.split("\t")[1]) <= 5 for line in (folder / "STS-B.tsv").read_text().splitlines()[1:])
    summary = summarise(found, ask(run=str(run)))
    assert "plain mean of 9 numbers" in summary.sentences[0]
    assert "two MNLI sets counted apart" in summary.sentences[0]
    assert "wnli" not in summary.sentences[0]


def test_only_what_is_missing_is_computed(ask: Ask, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(ask(run=str(run), tasks=["cola", "rte"], seeds=[1, 2]))
    before = (run / "glue.csv").read_text()
    assert first[0].computed == 4
    monkeypatch.setattr(module, "load_model", lambda *a: pytest.fail("the weights are not needed"))
    again = evaluate(ask(run=str(run), tasks=["cola", "rte"], seeds=[1, 2]))
    assert again[0].computed == 0
    assert again[0].rows == first[0].rows
    assert (run / "glue.csv").read_text() == before
    monkeypatch.undo()
    assert evaluate(ask(run=str(run), tasks=["cola", "rte"], seeds=[1, 2, 3]))[0].computed == 2
    assert evaluate(ask(run=str(run), tasks=["cola"], protocol__epochs=1))[0].computed == 1


def test_killed_and_started_again(
    ask: Ask, run: Path, monkeypatch: pytest.MonkeyPatch, make_run: MakeRun, tmp_path: Path
) -> None:
    original, calls = module.fine_tune, []

    def dies_at_the_third(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(module, "fine_tune", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        evaluate(ask(run=str(run), tasks=["cola", "rte"], seeds=[1, 2]))
    assert evaluate(ask(run=str(run), tasks=["cola", "rte"], seeds=[1, 2]))[0].computed == 2
    untouched = make_run(tmp_path / "other")
    evaluate(ask(run=str(untouched), tasks=["cola", "rte"], seeds=[1, 2]))

    def values(folder: Path) -> list[tuple[str, ...]]:
        return [tuple(row[c] for c in ("task", "seed", "metric", "value", "key")) for row in rows_of(folder)]

    assert values(run) == values(untouched)


def test_grid_reports_the_best_learning_rate(ask: Ask, run: Path) -> None:
    config = ask(run=str(run), tasks=["sst2"], protocol__lr=[1e-6, 2e-2], protocol__epochs=6)
    found = evaluate(config)
    candidates = {row["lr"]: float(row["value"]) for row in rows_of(run, "glue_candidates.csv")}
    (reported,) = rows_of(run)
    assert len(candidates) == 2
    assert float(reported["value"]) == max(candidates.values())
    assert reported["lr_grid"] == "1e-06 0.02"
    assert evaluate(config)[0].computed == 0
    assert any("optimistic" in sentence for sentence in summarise(found, config).sentences)


def test_constant_prediction_survives_selection(ask: Ask, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "predict", lambda model, tokens, machine: [(model.labels or [2.5])[0]] * len(tokens))
    config = ask(run=str(run), tasks=["cola", "stsb"], protocol__lr=[1e-9, 2e-9])
    found = evaluate(config)
    assert [(row["metric"], row["value"]) for row in found[0].rows] == [
        ("matthews", "0"),
        ("pearson", "0"),
        ("spearman", "0"),
    ]
    assert {row["flag"] for row in found[0].rows} == {"constant prediction"}
    assert {row["lr"] for row in found[0].rows} == {"1e-09"}
    assert any("cola seed 1: constant prediction" in sentence for sentence in summarise(found, config).sentences)


def test_frozen_measures(ask: Ask, run: Path) -> None:
    tasks = ["blimp", "sts_zero_shot", "sst2_probe", "pos_probe"]
    found = evaluate(ask(run=str(run), tasks=tasks))
    by_task = {task: [row["metric"] for row in found[0].rows if row["task"] == task] for task in tasks}
    assert by_task["blimp"] == ["accuracy", "accuracy_of_made_one", "accuracy_of_made_two"]
    assert by_task["pos_probe"] == ["accuracy", *(f"accuracy_of_layer_{k}" for k in range(3))]
    pos = next(
        float(row["value"])
        for row in found[0].rows
        if row["metric"] == "accuracy_of_layer_0" and row["task"] == "pos_probe"
    )
    assert pos == 100.0  # the made-up tags are a function of the word
    assert evaluate(ask(run=str(run), tasks=tasks))[0].computed == 0
    assert [(cell.task, cell.metric) for cell in summarise(found, ask(run=str(run))).cells] == [
        (task, "spearman" if task == "sts_zero_shot" else "accuracy") for task in tasks
    ]


def test_task_of_ones_own(ask: Ask, run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for split in ("train", "dev"):
        lines = [f'{{"a": "the cat", "b": "{word}", "says": "{word}"}}\n' for word in ("good", "bad") * 10]
        (tmp_path / "mine" / f"{split}.jsonl").write_text("".join(lines))
    own = TaskConfig("mine", str(tmp_path / "mine"), ["a", "b"], label="says", labels=["bad", "good"])
    rows = evaluate(ask(run=str(run), task=own, data_dir=None, protocol__epochs=8))[0].rows
    assert [(row["task"], row["metric"]) for row in rows] == [("mine", "accuracy")]
    assert float(rows[0]["value"]) == 100.0


def test_what_a_task_measures_decides_what_is_missing(ask: Ask, run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for split in ("train", "dev"):
        lines = [f'{{"a": "the {word}", "label": "{word}"}}\n' for word in ("good", "bad", "bad") * 5]
        (tmp_path / "mine" / f"{split}.jsonl").write_text("".join(lines))
    folder, labels = str(tmp_path / "mine"), ["bad", "good"]

    def measured(**of_the_task: Any) -> dict[str, float]:
        own = TaskConfig("mine", folder, ["a"], labels=labels, **of_the_task)
        rows = evaluate(ask(run=str(run), task=own, data_dir=None, protocol__lr=[1e-9]))[0].rows
        return {row["metric"]: float(row["value"]) for row in rows}

    good, bad = (measured(metrics=[Score.f1], positive=label)["f1"] for label in ("good", "bad"))
    assert good != bad
    assert set(measured(metrics=[Score.f1, Score.accuracy], positive="bad")) == {"f1", "accuracy"}


@pytest.mark.parametrize("kind", ["predictions", "save_models"])
def test_files_of_another_protocol_are_not_taken_for_those_asked_for(
    kind: str, ask: Ask, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(ask(run=str(run), tasks=["rte"]))
    evaluate(ask(run=str(run), tasks=["rte"], protocol__epochs=1, **{kind: True}))
    assert evaluate(ask(run=str(run), tasks=["rte"], **{kind: True}))[0].computed == 1
    monkeypatch.setattr(module, "load_model", lambda *a: pytest.fail("all is there"))
    assert evaluate(ask(run=str(run), tasks=["rte"], **{kind: True}))[0].computed == 0


def test_saved_models_are_starting_points(ask: Ask, run: Path, tmp_path: Path) -> None:
    evaluate(ask(run=str(run), tasks=["sst2"], save_models=True))
    saved = run / "glue" / "fine_tuned" / "step-000010" / "sst2-seed_1"
    assert evaluate(ask(model=str(saved), output=str(tmp_path / "out"), tasks=["cola"]))[0].computed == 1
    assert (tmp_path / "out" / "glue.csv").is_file()


def test_missing_files_stop_it_before_anything_is_computed(ask: Ask, run: Path, tmp_path: Path, data_dir: Path) -> None:
    (tmp_path / "CoLA").symlink_to(data_dir / "glue" / "CoLA")
    with pytest.raises(ValueError, match=r"(?s)task rte: no file for 'train'.*The others are complete: tasks=\[cola\]"):
        evaluate(ask(run=str(run), tasks=["cola", "rte"], data_dir=str(tmp_path)))
    assert not (run / "glue.csv").exists()


def test_scores_go_to_wandb_over_steps(
    ask: Ask, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taco_cli.tracking import wandb_evaluation
    from taco_cli.tracking.evaluations import Job

    calls: list[Any] = []
    monkeypatch.setattr(wandb_evaluation, "log_evaluation", lambda *arguments: calls.append(arguments))
    run = make_run(tmp_path / "outputs", steps=(10, 20))
    config = ask(run=str(run), tasks=["rte"], steps="all", seeds=[1, 2])
    found = evaluate(config)
    track(found, config)
    assert not calls
    config.tracking.kind = TrackingKind.wandb
    track(found, config)
    ((_, job, scores),) = calls
    assert (job, scores.group, scores.name, scores.folder) == (Job.glue, "made", "taco seed 1", run)
    assert list(scores.by_step) == [10, 20]
    values = [float(row["value"]) for row in found[1].rows]
    assert scores.by_step[20] == {"glue/rte/accuracy": pytest.approx(sum(values) / 2)}


def test_differences_inside_the_noise_are_called_so(ask: Ask, make_run: MakeRun, tmp_path: Path) -> None:
    for label, seed in (("mlm", 1), ("taco", 2)):
        make_run(tmp_path / "outputs", label, seed)
    config = ask(run=str(tmp_path / "outputs"), tasks=["rte"], seeds=[1, 2, 3])
    found = evaluate(config)
    for one, values in zip(found, ([60.0, 62.0, 61.0], [61.0, 63.0, 60.0]), strict=True):
        for row, value in zip(one.rows, values, strict=True):
            row["value"] = str(value)
    (verdict,) = (s for s in summarise(found, config).sentences if "taco - mlm" in s)
    assert "+0.33, inside the noise" in verdict
    for row in found[1].rows:
        row["value"] = str(float(row["value"]) + 20)
    assert any("+20.33, more than the noise" in s for s in summarise(found, config).sentences)
    for one in found:
        del one.rows[1:]
    assert any("cannot be told from noise" in s for s in summarise(found, config).sentences)


def test_one_pre_training_run_against_several_is_no_verdict(ask: Ask, make_run: MakeRun, tmp_path: Path) -> None:
    for label, seed in (("mlm", 1), ("taco", 1), ("taco", 2)):
        make_run(tmp_path / "outputs", label, seed)
    config = ask(run=str(tmp_path / "outputs"), tasks=["rte"], seeds=[1, 2])
    found = evaluate(config)
    for one, value in zip(found, (60.0, 70.0, 70.1), strict=True):
        for row in one.rows:
            row["value"] = str(value + 0.01 * int(row["seed"]))
    (verdict,) = (s for s in summarise(found, config).sentences if "taco - mlm" in s)
    assert "cannot be told from noise" in verdict
    (verdict,) = (s for s in summarise(found[:2], config).sentences if "taco - mlm" in s)
    assert "one pre-training run each" in verdict


def test_runs_of_the_same_label_in_two_experiments_stay_apart(ask: Ask, make_run: MakeRun, tmp_path: Path) -> None:
    for name in ("wiki", "docs"):
        folder = make_run(tmp_path / name, "taco")
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(manifest | {"name": name}))
    config = ask(run=[str(tmp_path / "wiki"), str(tmp_path / "docs")], tasks=["rte", "cola"], seeds=[1])
    found = evaluate(config)
    for one, value in zip(found, ("40", "80"), strict=True):
        for row in one.rows:
            row["value"] = value
    summary = summarise(found, config)
    assert summary.averages == {("wiki/taco", 10): 40.0, ("docs/taco", 10): 80.0}
    assert len(summary.metrics()) == 4
    assert any("docs/taco - wiki/taco = +40.00" in sentence for sentence in summary.sentences)


@pytest.mark.parametrize("names", [("same", "same"), ("one", "two")])
def test_models_in_one_folder_stay_apart(
    names: tuple[str, str], ask: Ask, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taco_cli.tracking import wandb_evaluation

    calls: list[Any] = []
    monkeypatch.setattr(wandb_evaluation, "log_evaluation", lambda tracking, job, scores: calls.append(scores))
    models = []
    for seed, name in enumerate(names, start=1):
        export = make_run(tmp_path, "taco", seed) / "hf" / "step-000010"
        models.append(str(export.rename(export.with_name(name))))
    config = ask(model=models, output=str(tmp_path / "out"), tasks=["rte", "cola"], seeds=[1])
    config.tracking.kind = TrackingKind.wandb
    found = evaluate(config)
    told = models if names[0] == names[1] else list(names)
    assert list(summarise(found, config).averages) == [(name, 0) for name in told]
    track(found, config)
    assert [scores.name for scores in calls] == told
