"""Analyses as their users see them: what is written where, and what is refused."""

from __future__ import annotations

import csv
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from taco_cli.analysis import analyze
from taco_cli.analysis.run import MEASURES
from taco_cli.analysis.subjects import find_subjects
from taco_cli.config.analyze import AnalyzeConfig, Measure
from taco_cli.config.checks import ConfigError
from taco_cli.config.compose import restored
from taco_cli.config.schema import RunConfig
from taco_cli.tracking import plain, read_manifest
from tests.conftest import tiny_config

SMALL: dict[str, Any] = {"sequences": 16, "batch_size": 8, "probe_sequences": 32, "probe_tokens": 20, "device": "cpu"}


@pytest.fixture
def copied(experiment: Path, tmp_path: Path) -> Path:
    """Return a copy of both runs that a test may write into."""
    return Path(shutil.copytree(experiment, tmp_path / "outputs" / "tiny"))


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_every_measure_of_every_run_and_side_by_side(copied: Path) -> None:
    analyses = analyze(AnalyzeConfig(run=str(copied), steps="last", **SMALL))
    assert [analysis.subject.label for analysis in analyses] == ["mlm", "taco"]
    for measure in Measure:
        for label in ("mlm", "taco"):
            folder = copied / label / "seed_1" / "analysis"
            rows = read(folder / f"{measure}.csv")
            assert tuple(rows[0]) == MEASURES[measure].COLUMNS
            assert {row["step"] for row in rows} == {"12"}
            assert all(row["value"] for row in rows)
            assert {f"{measure}.png", f"{measure}.svg"} <= {path.name for path in folder.iterdir()}
        assert (copied / "analysis" / f"{measure}.svg").is_file()
    assert {row["term"] for row in read(copied / "mlm" / "seed_1" / "analysis" / "gradients.csv")} == {"mlm"}
    assert {row["term"] for row in read(copied / "taco" / "seed_1" / "analysis" / "gradients.csv")} == {"mlm", "tc"}


def test_same_analysis_same_table(copied: Path) -> None:
    config = AnalyzeConfig(
        run=str(copied / "taco"), measures=[Measure.similarity, Measure.shortcut], steps=[12], **SMALL
    )
    written = []
    for _ in range(2):
        analyze(config)
        written.append([(copied / "taco/seed_1/analysis" / f"{m}.csv").read_bytes() for m in config.measures])
    assert written[0] == written[1]
    assert not (copied / "taco" / "analysis").exists()  # one run is not compared


def test_only_what_is_missing_is_measured(copied: Path, caplog: pytest.LogCaptureFixture) -> None:
    run, folder = str(copied / "taco"), copied / "taco/seed_1/analysis"

    def measured(**changes: Any) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.INFO):
            analyze(AnalyzeConfig(run=run, measures=[Measure.similarity, Measure.alignment], **SMALL | changes))
        told = [record.message for record in caplog.records if " step " in record.message and "(" in record.msg]
        return [message.split(" (")[0] for message in told]

    assert measured(steps=[12]) == ["taco seed 1 step 12: similarity", "taco seed 1 step 12: alignment"]
    figure, rows = (folder / "similarity.svg").read_bytes(), read(folder / "similarity.csv")
    assert measured(steps=[12]) == []
    assert (folder / "similarity.svg").read_bytes() == figure  # drawn from the table as it was from the values
    assert measured(steps=[0, 12]) == ["taco seed 1 step 0: similarity", "taco seed 1 step 0: alignment"]
    assert [row for row in read(folder / "similarity.csv") if row["step"] == "12"] == rows
    assert {row["step"] for row in read(folder / "similarity.csv")} == {"0", "12"}
    assert measured(steps=[12], probe_tokens=10) == []  # what does not decide them
    assert len(measured(steps=[12], sequences=12)) == 2
    assert len(list((folder / "earlier").iterdir())) == 2


def test_steps_begin_with_the_initial_encoder(run_folder: Path) -> None:
    (subject,) = find_subjects(AnalyzeConfig(run=str(run_folder), steps="all"))
    steps = [step for step, _ in subject.checkpoints]
    assert steps[0] == 0
    assert steps[-1] == 12
    assert steps == sorted(set(steps))
    assert subject.checkpoints[0][1] == subject.config.encoder
    asked = find_subjects(AnalyzeConfig(run=str(run_folder), steps=[0, 12]))[0]
    assert [step for step, _ in asked.checkpoints] == [0, 12]


def test_configuration_of_the_manifest_comes_back(run_folder: Path) -> None:
    manifest = read_manifest(run_folder / "manifest.json")
    assert manifest is not None
    config = restored(manifest["config"])
    assert isinstance(config, RunConfig)
    assert plain(config) == manifest["config"]
    del manifest["config"]["encoder"]["word_embeddings"]  # a run of an earlier version
    assert restored(manifest["config"]) == config


def test_initial_encoder_is_the_one_that_the_run_started_with(run_folder: Path) -> None:
    """Its similarity is what the run's own validation wrote at step 0."""
    rows = read(run_folder / "metrics.csv")
    at_start = {row["metric"]: float(row["value"]) for row in rows if row["step"] == "0"}
    config = AnalyzeConfig(run=str(run_folder), measures=[Measure.similarity], steps=[0], **SMALL)
    (analysis,) = analyze(config)
    for name in ("intra", "inter"):
        (value,) = (
            row["value"]
            for row in analysis.tables[Measure.similarity]
            if (row["layer"], row["vector"], row["distance"], row["measure"]) == (2, "h", "", name)
        )
        assert value == pytest.approx(at_start[f"val/similarity_{name}"], abs=1e-4)


def test_hugging_face_folder(experiment: Path, corpus_file: Path, cache_dir: Path, tmp_path: Path) -> None:
    exports = sorted((experiment / "taco" / "seed_1" / "hf").glob("step-*"))
    corpus = tiny_config(corpus_file, cache_dir, tmp_path).corpus
    config = AnalyzeConfig(
        model=[str(path) for path in exports[-2:]],
        output=str(tmp_path / "out"),
        measures=[Measure.similarity],
        sequence_length=16,
        corpus=corpus,
        **SMALL,
    )
    analyses = analyze(config)
    assert [list(dict.fromkeys(row["step"] for row in a.tables[Measure.similarity])) for a in analyses] == [
        [int(path.name[5:])] for path in exports[-2:]
    ]
    assert (tmp_path / "out" / exports[-1].name / "similarity.csv").is_file()
    assert (tmp_path / "out" / "similarity.png").is_file()
    as_run = AnalyzeConfig(run=str(experiment / "taco"), measures=[Measure.similarity], steps="last", **SMALL)
    expected = {tuple(row.items()) for row in analyze(as_run)[0].tables[Measure.similarity]}
    assert {tuple(row.items()) for row in analyses[1].tables[Measure.similarity]} == expected


def test_what_is_not_there_is_refused(copied: Path, tmp_path: Path) -> None:
    def refusal(**changes: Any) -> str:
        with pytest.raises(ValueError, match=r".") as refused:
            analyze(AnalyzeConfig(**{"run": str(copied), **SMALL, **changes}))
        return str(refused.value)

    assert "no such folder" in refusal(run=str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    assert "no manifest.json" in refusal(run=str(tmp_path / "empty"))
    assert "steps=[7]" in refusal(steps=[0, 7])
    shutil.rmtree(copied / "mlm" / "seed_1" / "hf")
    assert "no exported checkpoints" in refusal()


def test_rules_of_the_configuration() -> None:
    for changes, message in (
        ({}, "give one of run="),
        ({"run": "a", "model": "b"}, "give one of run="),
        ({"run": "a", "output": "b"}, "output=b"),
        ({"run": "a", "measures": []}, "measures is empty"),
        ({"run": "a", "steps": "first"}, "steps=first"),
        ({"run": "a", "steps": ["x"]}, "steps="),
        ({"run": "a", "conllu_train": "x"}, "give both"),
        ({"run": "a", "sequences": 1}, "sequences=1"),
        ({"run": "a", "device": "tpu"}, "device=tpu"),
    ):
        with pytest.raises(ConfigError, match=message):
            analyze(AnalyzeConfig(**changes))


def test_another_tokenizer_is_refused_and_another_text_is_said(copied: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = copied / "taco" / "seed_1" / "manifest.json"
    manifest = json.loads(path.read_text())
    config = AnalyzeConfig(run=str(copied / "taco"), measures=[Measure.similarity], steps="last", **SMALL)
    manifest["corpus"]["fingerprint"] = "another"
    path.write_text(json.dumps(manifest))
    with caplog.at_level(logging.WARNING):
        analyze(config)
    assert "the text has changed" in caplog.text
    manifest["tokenizer"]["fingerprint"] = "another"
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="its token ids mean other words"):
        analyze(config)


def test_frozen_table_has_a_gradient_in_the_analysis(run_folder: Path, tmp_path: Path) -> None:
    """Step 0 of such a run is rebuilt with its table frozen; where the gradient would go is asked all the same."""
    copy = Path(shutil.copytree(run_folder, tmp_path / "seed_1"))
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["config"]["encoder"]["word_embeddings"] = "frozen"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    (analysis,) = analyze(AnalyzeConfig(run=str(copy), measures=[Measure.gradients], steps=[0], **SMALL))
    assert any(row["at"] == "words" and row["value"] for row in analysis.tables[Measure.gradients])


def test_nothing_global_changes(run_folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run_folder, tmp_path / "seed_1"))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    analyze(AnalyzeConfig(run=str(copy), steps="last", **SMALL))
    assert torch.equal(torch.get_rng_state(), before)
