from __future__ import annotations

from pathlib import Path

import pytest

from taco_cli.config.compose import label, restored, sweep_arguments


@pytest.mark.parametrize(
    ("swept", "name"),
    [
        ("", "taco"),
        ("objective=taco,seed=2", "taco"),
        ("objective.tc.temperature=0.05", "taco_tc.temperature-0.05"),
        ("+trainer.compile=false,seed=1", "taco_trainer.compile-false"),
        ("corpus.files=[a/b.txt]", "taco_corpus.files-a-b.txt-"),
    ],
)
def test_label_is_the_objective_and_what_is_swept(swept: str, name: str) -> None:
    assert label("taco", swept) == name


def test_dashes_of_sweep_agents_are_dropped_and_flags_are_not() -> None:
    assert sweep_arguments(["--cfg=job", "--seed=1,2", "-m"]) == ["--cfg=job", "-m", "seed=1,2"]


def test_what_is_set_but_not_swept_does_not_name_the_job() -> None:
    *others, excluded = sweep_arguments(["-m", "seed=1,2", "budget=10steps", "objective=mlm,taco", "name=x"])
    assert others == ["-m", "seed=1,2", "budget=10steps", "objective=mlm,taco", "name=x"]
    assert excluded == "hydra.job.config.override_dirname.exclude_keys=[budget,name]"


def test_home_at_the_beginning_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    arguments = ["zero_shot.data_dir=~/data", "corpus.files=[~/a.txt,~/b.txt]", "name=a~/b", "~tracking"]
    found = sweep_arguments(arguments)
    for expected in ("zero_shot.data_dir=/home/me/data", "corpus.files=[/home/me/a.txt,/home/me/b.txt]", "name=a~/b"):
        assert expected in found
    assert "~tracking" in found


def test_a_manifest_of_an_earlier_version_gets_the_defaults_of_later_keys(tmp_path: Path) -> None:
    config = restored({"seed": 7, "objective": {"name": "mlm"}})
    assert (config.seed, config.objective.name, config.zero_shot.tasks) == (7, "mlm", [])
