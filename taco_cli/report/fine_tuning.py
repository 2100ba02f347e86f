"""The page's section of fine-tuning scores: means over pre-training seeds of means over fine-tuning seeds."""

from __future__ import annotations

from html import escape

import numpy as np

from taco_cli.report import words
from taco_cli.report.arms import Arm
from taco_cli.report.glue import FROZEN, LAST, OTHERS
from taco_cli.report.markup import arm_names, fine, grid, row, section
from taco_cli.report.results import Comparison, Result
from taco_cli.report.statistics import Estimate, spread


def glue(comparison: Comparison) -> str:
    """Fine-tuning scores at the last checkpoint that all seeds of an arm share."""
    metrics = [metric for metric in comparison.results if metric.startswith((LAST, OTHERS))]
    if not metrics:
        return ""
    rows = [_row(comparison, metric) for metric in metrics]
    percent = words.percent(comparison.config.confidence)
    text = (
        "GLUE: mean over pre-training seeds; each one's value is the mean over its fine-tuning seeds, as many as the "
        f"row says. ± is half the {percent} interval over pre-training seeds; of an arm with one, it is over "
        "fine-tuning seeds and leaves open what another pre-training would give. The highest mean of a row is in "
        "bold, which says nothing about whether it differs from the others."
    )
    names = [arm.name for arm in comparison.arms]
    return section("Fine-tuning", text, grid(["Task", *arm_names(comparison, names)], rows))


def _row(comparison: Comparison, metric: str) -> str:
    results = {result.arm: result for result in comparison.results[metric]}
    best = max((result.final.value for result in results.values() if result.final), default=None)
    cells = [
        _score(results[arm.name], arm, best, comparison.config.confidence) if arm.name in results else "–"
        for arm in comparison.arms
    ]
    _, task, name = [*metric.split("/", 2), ""][:3]
    return row(escape(task) + fine(", ".join(filter(None, [name, *_how(comparison, metric)]))), cells)


def _how(comparison: Comparison, metric: str) -> list[str]:
    """Say by which protocol a row was measured, and with how many fine-tuning seeds."""
    found = {protocol for run in comparison.runs if (protocol := run.fine_tuning.protocol(metric))}
    protocols, counts = sorted(found), _seed_counts(comparison, metric)
    if not counts or protocols == [FROZEN]:
        return protocols
    several = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return [*protocols, f"{several} fine-tuning seed{'s' if counts[-1] > 1 else ''}"]


def _seed_counts(comparison: Comparison, metric: str) -> list[int]:
    results = {result.arm: result for result in comparison.results[metric]}
    counts = set()
    for arm in comparison.arms:
        if (result := results.get(arm.name)) and result.step is not None:
            counts |= {len(_samples(arm, seed, metric, result.step)) for seed in result.replicates.seeds}
    return sorted(counts - {0})


def _score(result: Result, arm: Arm, best: float | None, confidence: float) -> str:
    final = result.final
    if final is None or result.step is None:
        return "–"
    value = words.decimals(final.value, words.places(final.value, 3))
    value = f"<strong>{value}</strong>" if final.value == best else value
    over = f"{final.n} pre-training seeds"
    if final.n == 1:
        samples = _samples(arm, result.replicates.seeds[0], result.metric, result.step)
        over = f"{len(samples)} fine-tuning seeds"
        if len(samples) > 1:
            final = spread(np.array(samples), confidence)
    return value + (fine(f"± {half} over {over}") if (half := _half(final)) else "")


def _half(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return words.number((estimate.high - estimate.low) / 2, 2)


def _samples(arm: Arm, seed: int, metric: str, step: int) -> list[float]:
    return arm.runs[seed].fine_tuning.samples.get(metric, {}).get(step, [])
