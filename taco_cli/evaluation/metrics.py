"""The official metrics, by label name, defined for every prediction: a constant one scores 0 and is flagged."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from taco_cli.config.glue import Score, TaskConfig
from taco_cli.evaluation.tasks import metric_name

logger = logging.getLogger(__name__)

Array = npt.NDArray[np.float64]
CONSTANT = "constant prediction"
NOT_FINITE = "prediction is not finite"


def measure(
    task: TaskConfig, suffix: str, predicted: Sequence[str | float], gold: Sequence[str | float]
) -> tuple[dict[str, float], str]:
    """Score the predictions for one dev set.

    Args:
        task: decides the metrics.
        suffix: of the dev set, appended to the metrics' names.
        predicted: label names, or scores.
        gold: of the same kind and number.

    Returns:
        metric name -> points (100 is perfect), and a flag, empty if all is well. Never NaN.
    """
    assert len(predicted) == len(gold) > 0
    flag = _flag(predicted)
    if flag:
        logger.warning("%s %s: %s for all %d examples", task.name, suffix or "dev", flag, len(gold))
    values = {}
    for score in task.metrics:
        if score in (Score.pearson, Score.spearman):
            numbers = np.array(predicted, dtype=np.float64), np.array(gold, dtype=np.float64)
            value = pearson(*numbers) if score is Score.pearson else spearman(*numbers)
        else:
            value = _of_classes(score, task, [str(p) for p in predicted], [str(g) for g in gold])
        values[metric_name(score, suffix)] = 100.0 * value
    return values, flag


def _of_classes(score: Score, task: TaskConfig, predicted: list[str], gold: list[str]) -> float:
    if score is Score.accuracy:
        return sum(p == g for p, g in zip(predicted, gold, strict=True)) / len(gold)
    if score is Score.f1:
        assert task.positive is not None
        return f1(predicted, gold, task.positive)
    return matthews(predicted, gold)


def _flag(predicted: Sequence[str | float]) -> str:
    if any(isinstance(value, float) and not np.isfinite(value) for value in predicted):
        return NOT_FINITE
    return CONSTANT if len(predicted) > 1 and len(set(predicted)) == 1 else ""


def f1(predicted: Sequence[str], gold: Sequence[str], positive: str) -> float:
    """Return F1 of one class; 0 if it is neither predicted nor there."""
    hits = sum(p == g == positive for p, g in zip(predicted, gold, strict=True))
    total = sum(p == positive for p in predicted) + sum(g == positive for g in gold)
    return 2 * hits / total if total else 0.0


def matthews(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return the Matthews correlation, for any number of classes (Gorodkin 2004); 0 if one side is constant."""
    names = sorted({*predicted, *gold})
    index = {name: i for i, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for p, g in zip(predicted, gold, strict=True):
        table[index[g], index[p]] += 1
    total, hits = table.sum(), np.trace(table)
    golds, predictions = table.sum(1), table.sum(0)
    spread = (total**2 - (predictions**2).sum()) * (total**2 - (golds**2).sum())
    return float((hits * total - golds @ predictions) / np.sqrt(spread)) if spread > 0 else 0.0


def pearson(predicted: Array, gold: Array) -> float:
    """Return Pearson's correlation; 0 if one side is constant or not finite."""
    if not (np.isfinite(predicted).all() and np.isfinite(gold).all()):
        return 0.0
    if np.ptp(predicted) == 0 or np.ptp(gold) == 0:
        return 0.0
    a, b = predicted - predicted.mean(), gold - gold.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()  # squares of tiny numbers would vanish
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def spearman(predicted: Array, gold: Array) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; 0 if one side is constant or not finite."""
    if not (np.isfinite(predicted).all() and np.isfinite(gold).all()):
        return 0.0
    return pearson(rankdata(predicted), rankdata(gold))
