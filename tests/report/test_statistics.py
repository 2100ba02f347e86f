from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from taco_cli.config.compare import Axis, Direction
from taco_cli.report.arms import Replicates
from taco_cli.report.statistics import (
    direction_of,
    mean_interval,
    paired_difference,
    percentile,
    resampled,
    spread,
    steps_to_match,
)

STEPS = np.arange(100, 1001, 100)


def replicates(
    curves: dict[int, Callable[[float], float]],
    steps: np.ndarray = STEPS,
    seconds_per_step: float = 0.5,
    missing: dict[int, int] | None = None,
) -> Replicates:
    """Seeds with these curves; `missing` maps a seed to the step from which it has no values."""
    values = np.array([[curve(step) for step in steps.tolist()] for curve in curves.values()])
    clock = np.broadcast_to(steps.astype(float), values.shape)
    ends = [(missing or {}).get(seed, math.inf) for seed in curves]
    present = clock < np.array(ends)[:, None]
    values = np.where(present, values, np.nan)
    flops = np.full(len(curves), np.nan)
    return Replicates(list(curves), steps, clock * 64.0, clock * seconds_per_step, values, present, flops)


def line(start: float, slope: float) -> Callable[[float], float]:
    return lambda step: start + slope * step


def test_mean_interval_is_students() -> None:
    values = np.array([[1.0, 2.0], [2.0, 4.0], [6.0, 3.0]])
    mean, low, high, n = mean_interval(values, np.ones((3, 2), dtype=bool), 0.9)
    for point in range(2):
        expected = stats.t.interval(0.9, 2, values[:, point].mean(), stats.sem(values[:, point]))
        assert (low[point], high[point]) == pytest.approx(expected)
    np.testing.assert_allclose(mean, [3, 3])
    assert n.tolist() == [3, 3]


def test_mean_interval_leaves_out_missing_but_not_diverged() -> None:
    values = np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, 7.0]])
    present = np.array([[True, True], [True, True], [False, True]])
    mean, low, _, n = mean_interval(values, present)
    assert mean[0] == 2
    assert np.isnan(mean[1])
    assert n.tolist() == [2, 3]
    assert np.isfinite(low[0])


def test_one_seed_has_no_interval() -> None:
    estimate = spread(np.array([4.2]))
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (4.2, None, None, 1)
    assert estimate.note == "cannot be said with one seed"


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("val/mlm", Direction.down),
        ("train/loss", Direction.down),
        ("val/tc", Direction.down),
        ("val/mlm_accuracy", Direction.up),
        ("val/tc_accuracy", Direction.up),
        ("glue/CoLA/matthews", Direction.up),
        ("val/similarity_intra", None),
        ("throughput/tokens_per_second", None),
    ],
)
def test_direction_is_known_by_name(metric: str, expected: Direction | None) -> None:
    assert direction_of(metric) == expected
    assert direction_of(metric, Direction.up) is Direction.up


def test_resamples_are_all_multisets_with_their_probabilities() -> None:
    counts, weights = resampled(3, 20_000)
    assert len(counts) == 10
    assert weights.sum() == pytest.approx(1)
    for row, weight in zip(counts, weights, strict=True):
        ways = math.factorial(3) / math.prod(math.factorial(int(count)) for count in row)
        assert weight == pytest.approx(ways / 27, abs=0.01)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.floats(0.01, 0.99),
)
def test_percentile_is_the_smallest_value_with_enough_weight(values: list[float], share: float) -> None:
    weights = np.full(len(values), 1 / len(values))
    found = percentile(np.array(values), weights, share)
    assert np.mean(np.array(values) <= found) >= share - 1e-9
    assert np.mean(np.array(values) < found) < share + 1e-9


def test_paired_difference_takes_out_what_seeds_share() -> None:
    base = replicates({1: line(5, 0), 2: line(9, 0), 3: line(7, 0)})
    arm = replicates({3: line(6.5, 0), 1: line(4.5, 0), 2: line(8.5, 0)})
    found = paired_difference(arm, base)
    assert found is not None
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == pytest.approx((-0.5,) * 3)
    assert "75 %" in (found.estimate.note or "")


def test_paired_difference_agrees_with_all_resamples() -> None:
    changes = [0.1, -0.3, 0.7, 0.2]
    base = replicates({seed: line(seed, 0) for seed in range(4)})
    arm = replicates({seed: line(seed + change, 0) for seed, change in enumerate(changes)})
    found = paired_difference(arm, base, resamples=40_000)
    assert found is not None
    means = np.sort([np.mean(draw) for draw in itertools.product(changes, repeat=4)])
    low, high = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    assert found.estimate.low == pytest.approx(low, abs=0.03)
    assert found.estimate.high == pytest.approx(high, abs=0.03)
    assert found.estimate.note is None


def test_paired_difference_is_at_the_last_step_in_common() -> None:
    base = replicates({1: line(10, -0.01), 2: line(10, -0.01)}, missing={2: 700})
    arm = replicates({1: line(9, -0.01), 2: line(9, -0.01)})
    found = paired_difference(arm, base)
    assert found is not None
    assert found.step == 600
    assert found.estimate.value == pytest.approx(-1)


def test_paired_difference_of_one_seed_says_so() -> None:
    found = paired_difference(replicates({1: line(1, 0)}), replicates({1: line(2, 0), 2: line(2, 0)}))
    assert found is not None
    assert (found.seeds, found.estimate.low) == ([1], None)
    assert found.estimate.note == "cannot be said with one seed"


def test_no_common_seed_gives_nothing() -> None:
    arm, base = replicates({4: line(1, 0)}), replicates({1: line(2, 0)})
    assert paired_difference(arm, base) is None
    assert steps_to_match(arm, base, Direction.down) is None


@pytest.mark.parametrize("direction", [Direction.down, Direction.up])
def test_crossing_is_where_the_lines_meet(direction: Direction) -> None:
    sign = -1 if direction is Direction.down else 1
    base = replicates({1: line(0, sign * 0.01), 2: line(0, sign * 0.01)})  # ends at 10
    arm = replicates({1: line(0, sign * 0.04), 2: line(0, sign * 0.04)}, seconds_per_step=1.0)
    found = steps_to_match(arm, base, direction)
    assert found is not None
    assert found.target == pytest.approx(sign * 10)
    assert found.at[Axis.steps] == pytest.approx(250)
    assert found.at[Axis.tokens] == pytest.approx(250 * 64)
    assert found.at[Axis.seconds] == pytest.approx(250)
    assert found.ratio[Axis.steps].value == pytest.approx(0.25)
    assert found.ratio[Axis.seconds].value == pytest.approx(0.5)
    assert found.reached == 2
    assert Axis.flops not in found.ratio


def brute_force_ratio(arm: Replicates, base: Replicates, draw: tuple[int, ...]) -> float:
    target = np.mean([base.values[row, -1] for row in draw])
    curve = np.mean([arm.values[row] for row in draw], axis=0)
    for i, value in enumerate(curve):
        if value <= target + 1e-12:
            if i == 0:
                return float(arm.steps[0] / base.steps[-1])
            part = (curve[i - 1] - target) / (curve[i - 1] - value)
            return float((arm.steps[i - 1] + part * (arm.steps[i] - arm.steps[i - 1])) / base.steps[-1])
    return math.inf


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000))
def test_interval_agrees_with_brute_force_over_all_resamples(seed: int) -> None:
    noise = np.random.default_rng(seed)
    starts = noise.uniform(9, 11, size=(2, 3))
    base = replicates({s: line(float(starts[0, s]), -0.005) for s in range(3)})
    arm = replicates({s: line(float(starts[1, s]), -0.012) for s in range(3)})
    found = steps_to_match(arm, base, Direction.down)
    assert found is not None
    ratios = np.array([brute_force_ratio(arm, base, draw) for draw in itertools.product(range(3), repeat=3)])
    assert found.ratio[Axis.steps].value == pytest.approx(brute_force_ratio(arm, base, (0, 1, 2)))
    # Of 27 equally likely resamples, 2.5 % and 97.5 % are the least and the greatest.
    assert found.ratio[Axis.steps].low == pytest.approx(ratios.min())
    if found.reached == 3:
        assert found.ratio[Axis.steps].high == pytest.approx(ratios.max())
    else:
        assert found.ratio[Axis.steps].high == math.inf


def test_seed_that_does_not_reach_leaves_the_interval_open() -> None:
    base = replicates({seed: line(10, -0.005) for seed in range(5)})  # ends at 5
    arm = replicates({seed: line(10, -0.02 if seed else -0.004) for seed in range(5)})
    found = steps_to_match(arm, base, Direction.down)
    assert found is not None
    assert found.reached == 4
    estimate = found.ratio[Axis.steps]
    assert estimate.value < 0.5
    assert estimate.low is not None
    assert estimate.low < estimate.value
    assert estimate.high == math.inf
    assert "4 of 5" in (estimate.note or "")


def test_not_reached_by_any_seed() -> None:
    base = replicates({1: line(10, -0.01), 2: line(10, -0.01)})
    found = steps_to_match(replicates({1: line(10, -0.001), 2: line(10, -0.001)}), base, Direction.down)
    assert found is not None
    assert found.reached == 0
    assert found.ratio[Axis.steps].value == found.ratio[Axis.steps].low == math.inf


def test_one_seed_has_a_ratio_but_no_interval() -> None:
    found = steps_to_match(replicates({1: line(10, -0.02)}), replicates({1: line(10, -0.01)}), Direction.down)
    assert found is not None
    estimate = found.ratio[Axis.steps]
    assert (estimate.value, estimate.low, estimate.high) == (pytest.approx(0.5), None, None)
    assert "cannot be said with one seed" in (estimate.note or "")


def test_baseline_matches_itself_at_its_end() -> None:
    noise = np.random.default_rng(1)
    base = replicates({s: line(10 + float(noise.normal()), -0.004) for s in range(4)})
    found = steps_to_match(base, base, Direction.down)
    assert found is not None
    assert found.ratio[Axis.steps].value == pytest.approx(1)


def test_diverged_baseline_gives_no_ratio() -> None:
    base = replicates({1: line(10, -0.01), 2: line(math.nan, 0)})
    found = steps_to_match(replicates({1: line(9, -0.01), 2: line(9, -0.01)}), base, Direction.down)
    assert found is not None
    assert math.isnan(found.ratio[Axis.steps].value)
    assert "not a number" in (found.ratio[Axis.steps].note or "")


def test_reached_at_the_first_point() -> None:
    found = steps_to_match(replicates({1: line(0, 0)}), replicates({1: line(10, -0.01)}), Direction.down)
    assert found is not None
    assert found.at[Axis.steps] == 100


def test_long_curves_are_resampled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    base = replicates({s: line(10 + s, -0.01) for s in range(4)})
    arm = replicates({s: line(10 + s * 0.5, -0.02) for s in range(4)})
    whole = steps_to_match(arm, base, Direction.down)
    monkeypatch.setattr("taco_cli.report.statistics.CHUNK", 25)
    assert steps_to_match(arm, base, Direction.down) == whole
