from __future__ import annotations

import logging
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from taco_cli.evaluation.metrics import CONSTANT, NOT_FINITE, f1, matthews, measure, pearson, spearman
from taco_cli.evaluation.tasks import TASKS

CLASSES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)
NUMBERS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30)


@settings(deadline=None, max_examples=60)
@given(CLASSES)
def test_classes_agree_with_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    predicted, gold = map(list, zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert matthews(predicted, gold) == pytest.approx(matthews_corrcoef(gold, predicted), abs=1e-12)
        expected = f1_score(gold, predicted, labels=["a"], average="macro", zero_division=0.0)
    assert f1(predicted, gold, "a") == pytest.approx(expected)


@settings(deadline=None, max_examples=60)
@given(NUMBERS)
def test_correlations_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.float64).T
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert pearson(a, b) == spearman(a, b) == 0.0
    else:
        assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-9)
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)


def test_constant_prediction_is_zero_and_flagged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        values, flag = measure(TASKS["cola"], "", ["acceptable"] * 4, ["acceptable", "unacceptable"] * 2)
    assert values == {"matthews": 0.0}
    assert flag == CONSTANT
    assert CONSTANT in caplog.text
    values, flag = measure(TASKS["stsb"], "", [2.5] * 3, [1.0, 2.0, 3.0])
    assert values == {"pearson": 0.0, "spearman": 0.0}
    assert flag == CONSTANT


def test_diverged_prediction_is_zero_and_flagged() -> None:
    values, flag = measure(TASKS["stsb"], "", [math.nan, 1.0, 2.0], [1.0, 2.0, 3.0])
    assert values == {"pearson": 0.0, "spearman": 0.0}
    assert flag == NOT_FINITE


def test_metrics_are_in_points_and_named_after_the_dev_set() -> None:
    values, flag = measure(TASKS["mnli"], "mismatched", ["neutral", "entailment"], ["neutral", "neutral"])
    assert values == {"accuracy_mismatched": 50.0}
    assert flag == ""
    values, _ = measure(TASKS["mrpc"], "", ["equivalent", "equivalent"], ["equivalent", "not_equivalent"])
    assert values == {"f1": pytest.approx(200 / 3), "accuracy": 50.0}
