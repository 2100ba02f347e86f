"""Measures of the frozen encoder during training: the numbers of taco-glue, and training unchanged by them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

from taco_cli.config.schema import RunConfig
from taco_cli.evaluation import evaluate, load_zero_shot
from taco_cli.evaluation.during import ZeroShotMeasures
from taco_cli.machine import choose_machine
from taco_cli.tracking import RunFolder
from taco_cli.training import train
from taco_cli.training.checkpoint import list_checkpoints, load
from tests.conftest import MakeConfig
from tests.evaluation.conftest import Ask

MEASURED = {"val/blimp_accuracy", "val/sts_zero_shot_spearman"}


def ask_for(make_config: MakeConfig, data_dir: Path, tasks: list[str], **changes: object) -> RunConfig:
    return make_config(zero_shot__tasks=tasks, zero_shot__data_dir=str(data_dir), **changes)


def rows(config: RunConfig) -> list[dict[str, str]]:
    return list(csv.DictReader(RunFolder.of(config).metrics_csv.read_text().splitlines()))


def test_values_are_those_of_taco_glue(make_config: MakeConfig, data_dir: Path, ask: Ask) -> None:
    config = ask_for(make_config, data_dir, ["blimp", "sts_zero_shot"])
    result = train(config, load_measures=load_zero_shot)
    measured = [row for row in rows(config) if row["metric"] in MEASURED]
    assert [row["step"] for row in measured if row["metric"] == "val/blimp_accuracy"] == ["0", "5", "10"]
    assert {row["metric"] for row in measured} == MEASURED  # no layers, no paradigms
    [found] = evaluate(ask(run=str(result.folder), tasks=["blimp", "sts_zero_shot"]))
    glue = {f"val/{row['task']}_{row['metric']}": float(row["value"]) for row in found.rows}
    assert {name: result.metrics[name] for name in MEASURED} == pytest.approx(
        {name: glue[name] for name in MEASURED}, abs=1e-3
    )


def test_training_is_the_same_bits_and_the_same_run(make_config: MakeConfig, data_dir: Path) -> None:
    plain = make_config(label="plain")
    judged = ask_for(make_config, data_dir, ["sts_zero_shot", "sst2_probe"], label="judged", zero_shot__every=3)
    weights = []
    for config in (plain, judged):
        train(config, load_measures=load_zero_shot if config.zero_shot.tasks else None)
        weights.append(load(list_checkpoints(RunFolder.of(config).checkpoints)[-1][1])["state_dict"])
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert [row["step"] for row in rows(judged) if row["metric"] == "val/sst2_probe_accuracy"] == [
        *("0", "3", "6", "9", "10")
    ]
    judged.zero_shot.tasks = []  # the finished run is the same one without the measures
    assert train(judged).status == "finished"


def test_encoder_is_left_in_its_mode_and_compiled_call(
    make_config: MakeConfig, data_dir: Path, model: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ask_for(make_config, data_dir, ["blimp"])
    measures = load_zero_shot(config, choose_machine(config.trainer))
    assert isinstance(measures, ZeroShotMeasures)
    encoder, tokenizer = model.encoder, model.tokenizer  # type: ignore[attr-defined]

    def compiled(*_: object) -> None:
        raise AssertionError("each length of text would be compiled")

    monkeypatch.setattr(encoder, "_body", compiled)
    encoder.train()
    assert set(measures(encoder, tokenizer)) == {"val/blimp_accuracy"}
    assert encoder.training
    assert encoder._body is compiled
    encoder.eval()


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (["cola"], r"zero_shot\.tasks: cola is learnt by fine-tuning.*cola_probe"),
        (["blimpp"], r"zero_shot\.tasks: blimpp is none of .*did you mean blimp"),
    ],
)
def test_wrong_task_is_refused_before_anything_is_written(
    make_config: MakeConfig, data_dir: Path, tasks: list[str], message: str
) -> None:
    config = ask_for(make_config, data_dir, tasks)
    with pytest.raises(ValueError, match=message):
        train(config, load_measures=load_zero_shot)
    assert not RunFolder.of(config).metrics_csv.exists()


def test_missing_files_are_named(make_config: MakeConfig, tmp_path: Path) -> None:
    config = ask_for(make_config, tmp_path, ["blimp"])
    with pytest.raises(ValueError, match=r"task blimp: no file matches .*blimp"):
        train(config, load_measures=load_zero_shot)
