from __future__ import annotations

from pathlib import Path

import pytest

from taco_cli.config.glue import GlueConfig
from taco_cli.evaluation.checkpoints import find_checkpoints

from .conftest import MakeRun


def test_steps_of_all_runs_below_a_folder(make_run: MakeRun, tmp_path: Path) -> None:
    make_run(tmp_path, "mlm", 1, (10, 200))
    make_run(tmp_path, "taco", 2, (10, 200))

    def found(steps: object) -> list[tuple[str, int | None, int]]:
        return [(c.label, c.seed, c.step) for c in find_checkpoints(GlueConfig(run=str(tmp_path), steps=steps))]

    assert found("last") == [("mlm", 1, 200), ("taco", 2, 200)]
    assert found("all") == [("mlm", 1, 10), ("mlm", 1, 200), ("taco", 2, 10), ("taco", 2, 200)]
    assert found([10]) == [("mlm", 1, 10), ("taco", 2, 10)]
    with pytest.raises(ValueError, match=r"steps=\[30\].*there are 10, 200"):
        found([30])


def test_what_is_no_run_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        find_checkpoints(GlueConfig(run=str(tmp_path / "nothing")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"neither a run nor .*model="):
        find_checkpoints(GlueConfig(run=str(tmp_path / "empty")))
    with pytest.raises(ValueError, match="no exported checkpoints"):
        find_checkpoints(GlueConfig(run=str(make_run(tmp_path, steps=()))))


def test_a_model_has_results_of_its_own(run_folder: Path, tmp_path: Path) -> None:
    folder = run_folder / "hf" / "step-000010"
    found = find_checkpoints(GlueConfig(model=str(folder)))[0]
    assert (found.step, found.label, found.results) == (10, "step-000010", Path("outputs/glue/step-000010"))
    found = find_checkpoints(GlueConfig(model="google-bert/bert-tiny", output=str(tmp_path)))[0]
    assert (found.step, found.label, found.results) == (0, "google-bert/bert-tiny", tmp_path)


def test_fingerprint_follows_the_weights_and_not_the_place(make_run: MakeRun, tmp_path: Path) -> None:
    one, same, other = (make_run(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    prints = [find_checkpoints(GlueConfig(run=str(run)))[0].fingerprint() for run in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
    assert find_checkpoints(GlueConfig(run=str(one)))[0].place == "hf/step-000010"
