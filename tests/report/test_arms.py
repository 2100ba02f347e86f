from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from taco_cli.report.arms import group
from taco_cli.report.runs import Run, read_runs

MakeRun = Callable[..., Path]


def runs(root: Path) -> list[Run]:
    return read_runs([root]).runs


def test_runs_of_one_label_are_replicates(tmp_path: Path, make_run: MakeRun) -> None:
    for label in ("mlm", "taco"):
        for seed in (3, 1, 2):
            make_run(tmp_path, label, seed, output_root=f"out{seed}")
    arms = group(runs(tmp_path))
    assert [(arm.name, arm.seeds) for arm in arms] == [("mlm", [1, 2, 3]), ("taco", [1, 2, 3])]


def test_other_settings_are_refused_with_their_names(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "mlm", 1)
    make_run(tmp_path, "taco", 1, encoder__layers=6)
    with pytest.raises(ValueError, match=r"encoder\.layers: 4 in mlm/seed_1; 6 in taco/seed_1") as error:
        group(runs(tmp_path))
    assert "across=[encoder.layers]" in str(error.value)


@pytest.mark.parametrize("across", ["encoder.layers", "encoder", "scale"])
def test_differences_that_are_meant_are_allowed(tmp_path: Path, make_run: MakeRun, across: str) -> None:
    make_run(tmp_path, "mlm", 1)
    make_run(tmp_path, "taco", 1, encoder__layers=6)
    assert [arm.name for arm in group(runs(tmp_path), [across])] == ["mlm", "taco"]


def test_a_meant_difference_splits_a_label(tmp_path: Path, make_run: MakeRun) -> None:
    for layers in (4, 6):
        for seed in (1, 2):
            make_run(tmp_path / str(layers), "mlm", seed, encoder__layers=layers)
    arms = group(runs(tmp_path), ["encoder"])
    assert [(arm.name, arm.seeds) for arm in arms] == [
        ("mlm encoder.layers=4", [1, 2]),
        ("mlm encoder.layers=6", [1, 2]),
    ]


def test_other_objectives_under_one_label_are_no_replicates(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "taco", 1, objective__tc={"weight": 1.0})
    make_run(tmp_path, "taco", 2, objective__tc={"weight": 0.5})
    with pytest.raises(ValueError, match=r"labelled taco are not replicates.*\n.*objective\.tc\.weight"):
        group(runs(tmp_path))


def test_another_corpus_under_the_same_settings_is_refused(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "mlm", 1)
    make_run(tmp_path, "taco", 1, manifest={"corpus": {"fingerprint": "other"}})
    with pytest.raises(ValueError, match=r"corpus data: c0ffee in mlm/seed_1"):
        group(runs(tmp_path))
    assert len(group(runs(tmp_path), ["corpus data"])) == 2


def test_what_is_read_follows_from_the_key_that_says_what_to_read(tmp_path: Path, make_run: MakeRun) -> None:
    for label, data, fraction in (("mlm", "half", 0.5), ("taco", "whole", 1.0)):
        corpus = {"name": "text", "fraction": fraction}
        make_run(tmp_path, label, 1, manifest={"corpus": {"fingerprint": data}}, corpus=corpus)
    with pytest.raises(ValueError, match=r"across=\[corpus\.fraction\]$"):
        group(runs(tmp_path))
    assert len(group(runs(tmp_path), ["corpus.fraction"])) == 2


@pytest.mark.parametrize("labels", [("mlm", "taco"), ("taco", "taco")])
def test_advice_for_data_alone_is_a_key_that_works(tmp_path: Path, make_run: MakeRun, labels: tuple[str, str]) -> None:
    for seed, label in enumerate(labels):
        corpus = {"corpus": {"fingerprint": str(seed)}}
        make_run(tmp_path, label, seed, manifest=corpus, corpus={"name": "text"}, masking={"rate": 0.1 * seed})
    with pytest.raises(ValueError, match=r"across=\[masking\.rate,corpus\]$"):
        group(runs(tmp_path))
    assert len(group(runs(tmp_path), ["masking.rate", "corpus"])) == 2


def test_the_same_seed_twice_is_refused(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path / "a", "mlm", 1)
    make_run(tmp_path / "b", "mlm", 1)
    with pytest.raises(ValueError, match="two runs of arm mlm have seed 1"):
        group(runs(tmp_path))


def test_unknown_key_is_refused_with_the_nearest(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path)
    with pytest.raises(ValueError, match=r"across=encoder\.layer: no such key.*encoder\.layers"):
        group(runs(tmp_path), ["encoder.layer"])


def test_replicates_share_one_grid(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "mlm", 1, {"a": float}, range(10, 51, 10))
    make_run(tmp_path, "mlm", 2, {"a": float}, range(20, 41, 20))
    make_run(tmp_path, "mlm", 3, {"b": float})
    found = group(runs(tmp_path))[0].replicates("a")
    assert found is not None
    assert found.seeds == [1, 2]
    assert found.steps.tolist() == [10, 20, 30, 40, 50]
    assert found.present.tolist() == [[True] * 5, [False, True, False, True, False]]
    np.testing.assert_equal(found.values[1], [np.nan, 20, np.nan, 40, np.nan])
    assert found.common().steps.tolist() == [20, 40]
    # Beyond step 40 seed 2 has ended, so that the mean is seed 1's; at 10 and 30 it would be of one seed by chance.
    assert found.settled().steps.tolist() == [20, 40, 50]
    assert found.select([2]).values.shape == (1, 5)


def test_a_metric_that_no_seed_has_gives_nothing(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path)
    assert group(runs(tmp_path))[0].replicates("val/tc") is None
