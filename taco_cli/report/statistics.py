"""Intervals over seeds: of means, of paired differences, and of the steps needed to match a baseline.

Letters: S seeds, P points, R distinct resamples of the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from taco_cli.config.compare import Axis, Direction
from taco_cli.report.arms import Bools, Replicates
from taco_cli.report.curves import Floats, Integers
from taco_cli.report.glue import LAST, OTHERS

ONE_SEED = "cannot be said with one seed"
RISING = ("accuracy", "hits", "f1", "matthews", "pearson", "spearman", "correlation", "mcc")
FALLING = ("loss", "perplexity")
FALLING_NAMES = ("mlm", "tc", "tp")
# Values of R x P that one product of the bootstrap may hold: 32 MB.
CHUNK = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A value with its interval over `n` seeds; no interval where it cannot be said, `note` tells why.

    `high` may be infinite, which stands for "not reached".
    """

    value: float
    low: float | None
    high: float | None
    n: int
    note: str | None = None


@dataclass(frozen=True)
class Difference:
    """Final value of an arm minus that of the baseline, paired by seed, at their last common step."""

    estimate: Estimate
    seeds: list[int]
    step: int


@dataclass(frozen=True)
class Match:
    """Where an arm first reaches the baseline's final value.

    Attributes:
        target: the baseline's final value: mean over the paired seeds at their last common step.
        at: position of the crossing by axis (flops where known); infinite where it is not reached.
        ratio: the same as a multiple of where the baseline has its final value.
        reached: how many of the paired seeds reach the target with their own curve.
        last_step: where the arm's common curve ends, which can be before the baseline's.
        target_step: where the baseline has its final value.
    """

    target: float
    at: dict[Axis, float]
    ratio: dict[Axis, Estimate]
    reached: int
    seeds: list[int]
    last_step: int
    target_step: int


def direction_of(metric: str, told: Direction = Direction.auto) -> Direction | None:
    """Tell whether more is better of a metric: as told, else by its name; None where the name does not say.

    Losses (``train/loss``, ``val/mlm``, ``val/tc``) fall, accuracies and ``glue`` scores rise.
    """
    if told is not Direction.auto:
        return told
    name = metric.rsplit("/", 1)[-1]
    if name in FALLING_NAMES or any(word in name for word in FALLING):
        return Direction.down
    if metric.startswith((LAST, OTHERS)) or any(word in name for word in RISING):
        return Direction.up
    return None


def mean_interval(
    values_SP: Floats, present_SP: Bools, confidence: float = 0.95
) -> tuple[Floats, Floats, Floats, Integers]:
    """Mean over seeds with Student's t interval at each point: mean, low, high and n, each (P,).

    Seeds that are not present at a point are left out there; a value that is present but not a number makes
    the mean none either. With n = 1 low and high are NaN.
    """
    n_P = present_SP.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_P = np.where(present_SP, values_SP, 0.0).sum(axis=0) / np.where(n_P > 0, n_P, np.nan)
        squares_P = np.where(present_SP, (values_SP - mean_P) ** 2, 0.0).sum(axis=0)
        error_P = np.sqrt(squares_P / np.where(n_P > 1, n_P - 1, np.nan) / n_P)
        half_P = stdtrit(np.maximum(n_P - 1, 1), (1 + confidence) / 2) * error_P
    return mean_P, mean_P - half_P, mean_P + half_P, n_P


def paired_difference(
    arm: Replicates, baseline: Replicates, confidence: float = 0.95, resamples: int = 10_000
) -> Difference | None:
    """Mean of arm minus baseline of the same seed, with a percentile bootstrap interval over the pairs.

    Both are read at the last step at which all common seeds of both have a value. None where there is no
    common seed or step.
    """
    seeds = [seed for seed in arm.seeds if seed in baseline.seeds]
    mine, theirs = arm.select(seeds).common(), baseline.select(seeds).common()
    steps = np.intersect1d(mine.steps, theirs.steps)
    if not seeds or not len(steps):
        return None
    step = steps[-1]
    change_S = mine.values[:, mine.steps == step][:, 0] - theirs.values[:, theirs.steps == step][:, 0]
    counts_RS, weights_R = resampled(len(seeds), resamples)
    means_R = counts_RS @ change_S / len(seeds)
    return Difference(_estimate(float(change_S.mean()), means_R, weights_R, len(seeds), confidence), seeds, int(step))


def steps_to_match(
    arm: Replicates,
    baseline: Replicates,
    direction: Direction,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Match | None:
    """Find where an arm first reaches the baseline's final value, as a ratio to the baseline's own position.

    The target is the mean over the paired seeds (those that both have) of the baseline at the last step at
    which all of them have a value. The arm's curve is the mean over the same seeds at the steps that they
    share; it reaches the target at its first point as good as the target, by linear interpolation from the
    point before (or at its first point). The interval is a percentile bootstrap that resamples the seeds,
    each with its arm and its baseline run together, and recomputes target, curve and ratio. A resample that
    does not reach the target counts as infinite, and where any single seed's own curve does not reach the
    target, the interval's upper end is infinite.

    Returns:
        None where no seed or no step is common.
    """
    seeds = [seed for seed in arm.seeds if seed in baseline.seeds]
    mine, theirs = arm.select(seeds).common(), baseline.select(seeds).common()
    if not seeds or not len(mine.steps) or not len(theirs.steps):
        return None
    sign = 1.0 if direction is Direction.up else -1.0
    clocks = {axis: (mine.clock(axis), theirs.clock(axis)[:, -1]) for axis in Axis}
    if np.isnan([mine.flops_per_token, theirs.flops_per_token]).any():
        del clocks[Axis.flops]
    finals_S = sign * theirs.values[:, -1]
    values_SP = sign * mine.values

    whole_1S = np.ones((1, len(seeds)))
    at = _crossings(whole_1S, values_SP, finals_S, clocks)
    counts_RS, weights_R = resampled(len(seeds), resamples)
    at_R = _crossings(counts_RS, values_SP, finals_S, clocks)
    target = finals_S.mean()
    reached = int((values_SP >= target).any(axis=1).sum())

    ratio = {}
    for axis, (_, base_S) in clocks.items():
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(at[axis][0] / base_S.mean())
            ratios_R = at_R[axis] / (counts_RS @ base_S / len(seeds))
        ratio[axis] = _ratio(value, ratios_R, weights_R, len(seeds), reached, confidence)
    return Match(
        target=float(sign * target),
        at={axis: float(x[0]) for axis, x in at.items()},
        ratio=ratio,
        reached=reached,
        seeds=seeds,
        last_step=int(mine.steps[-1]),
        target_step=int(theirs.steps[-1]),
    )


@lru_cache
def resampled(n: int, resamples: int) -> tuple[Floats, Floats]:
    """Draw bootstrap resamples of n seeds, always the same ones.

    Returns:
        How often each seed is in each distinct resample (R, n), and the share of draws that gave it (R,).
    """
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=resamples)
    counts, times = np.unique(draws, axis=0, return_counts=True)
    return counts.astype(np.float64), times / resamples


def percentile(values_R: Floats, weights_R: Floats, share: float) -> float:
    """Smallest value below or at which lies this share of the weight; infinite values sort last."""
    order: Integers = np.argsort(values_R)
    total = np.cumsum(weights_R[order])
    place = int(np.searchsorted(total, share - 1e-12))
    return float(values_R[order[min(place, len(order) - 1)]])


def _crossings(
    counts_RS: Floats, values_SP: Floats, finals_S: Floats, clocks: dict[Axis, tuple[Floats, Floats]]
) -> dict[Axis, Floats]:
    """Position (R,) on each axis where each resample's mean curve first reaches its target, or infinity."""
    parts = [_crossings_of(chunk, values_SP, finals_S, clocks) for chunk in _chunks(counts_RS, values_SP.shape[1])]
    return {axis: np.concatenate([part[axis] for part in parts]) for axis in clocks}


def _crossings_of(
    counts_RS: Floats, values_SP: Floats, finals_S: Floats, clocks: dict[Axis, tuple[Floats, Floats]]
) -> dict[Axis, Floats]:
    share_RS = counts_RS / values_SP.shape[0]
    curve_RP = share_RS @ values_SP
    target_R = share_RS @ finals_S
    # Rounding of two sums of the same numbers must not decide whether a curve reaches its own end.
    slack_R = 1e-12 * np.abs(target_R)
    good_RP = curve_RP >= (target_R - slack_R)[:, None]
    reached_R = good_RP.any(axis=1)
    after_R = good_RP.argmax(axis=1)
    before_R = np.maximum(after_R - 1, 0)
    rows = np.arange(len(counts_RS))
    low_R, high_R = curve_RP[rows, before_R], curve_RP[rows, after_R]
    with np.errstate(invalid="ignore", divide="ignore"):
        part_R = np.where(high_R > low_R, np.clip((target_R - low_R) / (high_R - low_R), 0, 1), 1.0)
    # A gap in the curve (not a number) before the crossing leaves nothing to interpolate from.
    part_R = np.where(np.isnan(part_R), 1.0, part_R)
    result = {}
    for axis, (x_SP, _) in clocks.items():
        start_R = (share_RS * x_SP[:, before_R].T).sum(axis=1)
        end_R = (share_RS * x_SP[:, after_R].T).sum(axis=1)
        x_R = start_R + part_R * (end_R - start_R)
        result[axis] = np.where(np.isnan(target_R), np.nan, np.where(reached_R, x_R, np.inf))
    return result


def _chunks(counts_RS: Floats, points: int) -> Iterator[Floats]:
    size = max(1, CHUNK // max(points, 1))
    for start in range(0, len(counts_RS), size):
        yield counts_RS[start : start + size]


def _estimate(value: float, values_R: Floats, weights_R: Floats, n: int, confidence: float) -> Estimate:
    if n == 1:
        return Estimate(value, None, None, 1, ONE_SEED)
    if not math.isfinite(value):
        return Estimate(value, None, None, n, "a seed's value is not a number")
    low = percentile(values_R, weights_R, (1 - confidence) / 2)
    high = percentile(values_R, weights_R, (1 + confidence) / 2)
    return Estimate(value, low, high, n, few_seeds(n))


def _ratio(value: float, ratios_R: Floats, weights_R: Floats, n: int, reached: int, confidence: float) -> Estimate:
    if math.isnan(value):
        return Estimate(value, None, None, n, "the baseline's final value is not a number")
    note = None if reached == n else f"{reached} of {n} seeds reach it"
    if n == 1:
        return Estimate(value, None, None, 1, "; ".join(filter(None, [note, f"interval {ONE_SEED}"])))
    low = percentile(ratios_R, weights_R, (1 - confidence) / 2)
    high = percentile(ratios_R, weights_R, (1 + confidence) / 2) if reached == n else math.inf
    return Estimate(value, low, high, n, "; ".join(filter(None, [note, few_seeds(n)])) or None)


def few_seeds(n: int) -> str | None:
    """Say how little a bootstrap over two or three seeds means.

    Its 95 % interval is the range of the seeds, which covers the median of all seeds with 1 - 2 (1/2)^n: 50 %
    for two, 75 % for three.
    """
    if n in (2, 3):
        share = 50 if n == 2 else 75
        what = f"with {n} seeds the interval is about their range"
        return f"{what}, which holds the true median in {share} % of cases"
    return None


def spread(values_S: Floats, confidence: float = 0.95) -> Estimate:
    """Mean of one value per seed with its t interval."""
    column_S1 = values_S[:, None]
    mean, low, high, _ = mean_interval(column_S1, np.ones_like(column_S1, dtype=bool), confidence)
    if len(values_S) == 1:
        return Estimate(float(mean[0]), None, None, 1, ONE_SEED)
    return Estimate(float(mean[0]), float(low[0]), float(high[0]), len(values_S))
