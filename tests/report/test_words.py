from __future__ import annotations

import math

import pytest

from taco_cli.config.compare import Axis
from taco_cli.report import words
from taco_cli.report.statistics import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.51349, "2.513"),
        (0.080214, "0.08021"),
        (12345.6, "12,346"),
        (-0.5, "−0.5000"),
        (0.0, "0"),
        (math.nan, "–"),
        (None, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_four_digits(value: float | None, text: str) -> None:
    assert words.number(value) == text


def test_ratio_is_a_sentence() -> None:
    estimate = Estimate(0.21, 0.17, 0.28, 5)
    assert words.ratio(estimate, Axis.steps, 0.95) == "0.21 × the steps, 95 % interval 0.17 to 0.28, 5 seeds"


def test_ratio_says_what_it_cannot() -> None:
    assert words.ratio(Estimate(math.inf, math.inf, math.inf, 3), Axis.steps, 0.95) == "not reached, 3 seeds"
    assert "0.90 to not reached" in words.ratio(Estimate(0.95, 0.9, math.inf, 3), Axis.tokens, 0.9)
    assert "cannot be said with one seed" in words.ratio(Estimate(0.5, None, None, 1), Axis.steps, 0.95)
    nothing = Estimate(math.nan, None, None, 3, "the baseline's final value is not a number")
    assert words.ratio(nothing, Axis.steps, 0.95).startswith("cannot be said: the baseline's final value")


@pytest.mark.parametrize(
    ("value", "axis", "text"),
    [
        (1200, Axis.steps, "1,200 steps"),
        (3.14e6, Axis.tokens, "3.14 M tokens"),
        (1.2e10, Axis.tokens, "12 B tokens"),
        (45, Axis.seconds, "45 s"),
        (600, Axis.seconds, "10 min"),
        (9000, Axis.seconds, "2.5 h"),
    ],
)
def test_quantities_have_units(value: float, axis: Axis, text: str) -> None:
    assert words.quantity(value, axis) == text
