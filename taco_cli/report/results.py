"""What a comparison finds: per metric and arm the final value, the difference and the steps to match."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from taco_cli.config.compare import Axis, CompareConfig, Direction
from taco_cli.report import words
from taco_cli.report.arms import Arm, Replicates, group
from taco_cli.report.cautions import cautions
from taco_cli.report.curves import Floats
from taco_cli.report.glue import LAST, OTHERS
from taco_cli.report.runs import Outputs, Run
from taco_cli.report.statistics import (
    Difference,
    Estimate,
    Match,
    direction_of,
    paired_difference,
    spread,
    steps_to_match,
)

DEFAULT_BASELINE = "mlm"
# Metrics on the page unless told; of these, the first kinds are worth a steps-to-match.
SHOWN = ("val/", LAST, OTHERS, "train/", "throughput/tokens_per_second")
MATCHED = ("val/", LAST, OTHERS)
# Scores of single layers and paradigms, by the hundred: shown if asked for.
DETAILS = ("_layer_", "_of_")


@dataclass(frozen=True)
class Result:
    """One metric of one arm; `final` is at the last step that all its seeds have."""

    arm: str
    metric: str
    replicates: Replicates = field(repr=False)
    step: int | None
    final: Estimate | None
    final_by_seed: dict[int, float]
    difference: Difference | None
    match: Match | None
    match_note: str | None


@dataclass(frozen=True)
class Comparison:
    """Everything that tables, figures and the page show."""

    config: CompareConfig
    arms: list[Arm]
    baseline: str | None
    results: dict[str, list[Result]]
    axes: list[Axis]
    notices: list[str]

    @property
    def metric(self) -> str:
        """The metric shown first."""
        return self.config.metric

    @property
    def primary(self) -> list[Result]:
        """Results of the metric shown first."""
        return self.results[self.metric]

    @property
    def runs(self) -> list[Run]:
        """All runs, arm by arm."""
        return [run for arm in self.arms for _, run in sorted(arm.runs.items())]

    def places(self, metric: str) -> int:
        """Decimals at which all values of a metric are shown: four digits of the largest."""
        finals = [abs(result.final.value) for result in self.results[metric] if result.final]
        return words.places(max(filter(math.isfinite, finals), default=1.0))

    def direction(self, metric: str) -> Direction | None:
        """Which way a metric gets better, as told for the main one, by name for the others."""
        return direction_of(metric, self.config.direction if metric == self.metric else Direction.auto)


def evaluate(outputs: Outputs, config: CompareConfig) -> Comparison:
    """Group the runs and compute all that is said about them.

    Raises:
        ValueError: the runs cannot be compared, or a metric, arm or axis is asked for that they do not have.
    """
    runs = _chosen(outputs.runs, config.seeds)
    arms = group(runs, config.across)
    baseline = _baseline(arms, config.baseline)
    arms.sort(key=lambda arm: (arm.name != baseline, natural(arm.name)))
    metrics = _metrics(arms, config)
    axes = _axes(runs, config.axis)
    shell = Comparison(config, arms, baseline, {}, axes, cautions(outputs, arms, baseline, config.metric))
    for metric in metrics:
        shell.results[metric] = _results(shell, metric)
    return shell


def natural(name: str) -> list[tuple[float, str]]:
    """Sort key under which numbers in names count as numbers: arm_2 before arm_10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(float(part), "") if index % 2 else (0.0, part) for index, part in enumerate(parts)]


def _results(comparison: Comparison, metric: str) -> list[Result]:
    config = comparison.config
    replicates = {arm.name: found for arm in comparison.arms if (found := arm.replicates(metric)) is not None}
    base = replicates.get(comparison.baseline or "")
    results = []
    for name, mine in replicates.items():
        step, values = last_values(mine)
        final = spread(values, config.confidence) if step is not None else None
        difference = match = note = None
        if base is not None and name != comparison.baseline:
            difference = paired_difference(mine, base, config.confidence, config.resamples)
            match, note = _match(comparison, metric, mine, base)
        by_seed = dict(zip(mine.seeds, values.tolist(), strict=False))
        results.append(Result(name, metric, mine, step, final, by_seed, difference, match, note))
    return results


def last_values(replicates: Replicates) -> tuple[int | None, Floats]:
    """Step and values (S,) of the last step that all seeds have; None and no values where they share none."""
    common = replicates.common()
    if not len(common.steps):
        return None, common.values[:0, 0:].reshape(-1)
    return int(common.steps[-1]), common.values[:, -1]


def _match(comparison: Comparison, metric: str, mine: Replicates, base: Replicates) -> tuple[Match | None, str | None]:
    if metric != comparison.metric and not metric.startswith(MATCHED):
        return None, None
    direction = comparison.direction(metric)
    if direction is None:
        return None, "cannot be said: is more better? say direction=up or direction=down"
    config = comparison.config
    match = steps_to_match(mine, base, direction, config.confidence, config.resamples)
    return match, None if match else "cannot be said: no seed or no step in common with the baseline"


def _chosen(runs: Sequence[Run], seeds: Sequence[int]) -> list[Run]:
    found = sorted({run.seed for run in runs})
    if missing := [str(seed) for seed in seeds if seed not in found]:
        raise ValueError(f"seeds={','.join(missing)}: no run has it; seeds found: {', '.join(map(str, found))}")
    return [run for run in runs if run.seed in seeds or not seeds]


def _baseline(arms: Sequence[Arm], told: str | None) -> str | None:
    names = [arm.name for arm in arms]
    if told is None:
        return DEFAULT_BASELINE if DEFAULT_BASELINE in names else None
    if told not in names:
        raise ValueError(f"baseline={told}: no such arm among these runs, which have {', '.join(names)}")
    return told


def _metrics(arms: Sequence[Arm], config: CompareConfig) -> list[str]:
    known = sorted({name for arm in arms for name in arm.metrics})
    for metric in (config.metric, *config.metrics):
        if metric not in known:
            found = ", ".join(known) if known else "none yet"
            raise ValueError(f"metric={metric}: no run has it; metrics found: {found}")
    shown = [name for kind in SHOWN for name in known if name.startswith(kind)]
    others = config.metrics or [name for name in shown if not any(part in name for part in DETAILS)]
    return list(dict.fromkeys([config.metric, *others]))


def _axes(runs: Sequence[Run], asked: Axis) -> list[Axis]:
    lacking = [run for run in runs if run.manifest.get("flops_per_token") is None]
    if asked is Axis.flops and lacking:
        raise ValueError(
            f"axis=flops: {len(lacking)} of {len(runs)} runs have no flops_per_token in their manifest "
            f"(first: {lacking[0].folder}); use axis=tokens or axis=seconds"
        )
    return [axis for axis in Axis if axis is not Axis.flops or not lacking]
