from __future__ import annotations

import pytest
from scipy import stats

from taco_cli.evaluation.summary import welch_interval


@pytest.mark.parametrize(("mine", "others"), [([1.0, 2.0], [2.5, 2.0]), ([60.0, 62.0, 61.0, 59.0], [70.0, 61.0])])
def test_interval_is_scipys(mine: list[float], others: list[float]) -> None:
    theirs = stats.ttest_ind(mine, others, equal_var=False).confidence_interval(0.95)
    assert welch_interval(mine, others) == pytest.approx((theirs.low, theirs.high))


def test_two_seeds_say_little() -> None:
    low, high = welch_interval([80.21, 79.75], [80.73, 81.15])
    assert low < 0 < high
    assert high - low > 4 * 0.31  # what two standard errors would claim


def test_constant_values_have_no_spread() -> None:
    assert welch_interval([0.0, 0.0], [0.0, 0.0]) == (0.0, 0.0)
    assert welch_interval([1.0, 1.0], [0.0, 0.0]) == (1.0, 1.0)
