"""taco-analyze as a command."""

from __future__ import annotations

from pathlib import Path

from taco_cli import cli
from tests.cli.conftest import Command

SMALL = "sequences=16 batch_size=8 probe_sequences=32 device=cpu"


def test_run_is_analysed_where_it_lies(command: Command, tmp_path: Path) -> None:
    assert command("label=taco").status == 0
    ended = command(f"run=outputs measures=[similarity,shortcut] steps=last {SMALL}", tiny=False, entry=cli.analyze)
    assert ended.status == 0, ended.err
    folder = tmp_path / "outputs" / "pretrain" / "taco" / "seed_1" / "analysis"
    assert {path.name for path in folder.iterdir()} == {
        f"{measure}.{kind}" for measure in ("similarity", "shortcut") for kind in ("csv", "png", "svg")
    } | {"computed.json"}
    assert "warning" not in ended.err.lower()


def test_tracking_is_asked_for_as_in_training(command: Command) -> None:
    assert command("label=taco").status == 0
    asked = f"run=outputs measures=[shortcut] steps=last tracking=tensorboard {SMALL}"
    ended = command(asked, tiny=False, entry=cli.analyze)
    assert ended.status == 0, ended.err
    assert "tracking=tensorboard: taco-analyze writes analysis/*.csv" in ended.err


def test_model_with_a_corpus(command: Command, tmp_path: Path, corpus_file: Path, cache_dir: Path) -> None:
    assert command("label=taco").status == 0
    export = max((tmp_path / "outputs" / "pretrain" / "taco" / "seed_1" / "hf").glob("step-*"))
    ended = command(
        f"model={export} measures=[similarity] sequence_length=16 corpus=text corpus.files=[{corpus_file}] "
        f"corpus.validation_fraction=0.1 corpus.processes=1 corpus.cache_dir={cache_dir} {SMALL}",
        tiny=False,
        entry=cli.analyze,
    )
    assert ended.status == 0, ended.err
    assert (tmp_path / "outputs" / "analysis" / export.name / "similarity.csv").is_file()


def test_settings_of_a_run_are_not_given_again(command: Command) -> None:
    ended = command("run=outputs corpus=text sequence_length=16", tiny=False, entry=cli.analyze)
    assert ended.status == 1
    assert "corpus=text, sequence_length=16: a run is analysed with its own settings" in ended.err


def test_misspelt_measure_and_key(command: Command) -> None:
    ended = command("run=outputs measures=[similarities]", tiny=False, entry=cli.analyze)
    assert ended.status == 1
    assert "similarities" in ended.err
    ended = command("run=outputs measure=[similarity]", tiny=False, entry=cli.analyze)
    assert ended.status == 1
    assert "did you mean measures" in ended.err
