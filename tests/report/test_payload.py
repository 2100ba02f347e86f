from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.config.compare import CompareConfig
from taco_cli.report.payload import MOST_VALUES, as_json, envelope, payload, points_per_curve
from taco_cli.report.results import Comparison, evaluate
from taco_cli.report.runs import read_runs

MakeRun = Callable[..., Path]


def comparison(root: Path, **config: object) -> Comparison:
    return evaluate(read_runs([root]), CompareConfig(runs=str(root), **config))  # type: ignore[arg-type]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), st.integers(1, 300), st.integers(4, 60), st.integers(0, 1000))
def test_envelope_keeps_ends_and_extremes(seeds: int, points: int, most: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(seeds, points))
    kept = envelope(values, most)
    assert len(kept) <= max(most, 2)
    assert kept[0] == 0
    assert kept[-1] == points - 1
    assert np.all(np.diff(kept) > 0)
    assert values[:, kept].min() == values.min()
    assert values[:, kept].max() == values.max()


def test_envelope_survives_gaps() -> None:
    values = np.full((2, 100), np.nan)
    values[0, 50] = 1.0
    assert 50 in envelope(values, 10)


def test_points_shrink_with_the_number_of_curves(experiment: Path) -> None:
    found = comparison(experiment)
    curves = sum(len(result.replicates.seeds) for results in found.results.values() for result in results)
    assert points_per_curve(found) == 400
    found.config.points = 10**9
    assert points_per_curve(found) * curves <= MOST_VALUES


def test_curves_of_the_page_are_those_of_the_runs(tmp_path: Path, make_run: MakeRun) -> None:
    for seed in (1, 2):
        make_run(tmp_path, "mlm", seed, {"val/mlm": lambda step, seed=seed: seed + step / 1000})
    data = payload(comparison(tmp_path))
    series = data["metrics"][0]["series"][0]
    assert series["steps"] == list(range(100, 1001, 100))
    assert series["tokens"] == 4096
    assert series["values"][1][0] == pytest.approx(2.1)
    assert data["t"][2] == pytest.approx(12.7062, abs=1e-4)


def test_json_cannot_end_the_script_element() -> None:
    text = as_json({"name": "</script><!--\u2028&"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": "</script><!--\u2028&"}
