"""What a comparison finds: per metric and arm the final value, the difference and the steps to match."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taco_cli.config.compare import Axis, CompareConfig, Direction
from taco_cli.report.arms import Arm, Replicates, group
from taco_cli.report.runs import Floats, Outputs, Run
from taco_cli.report.statistics import (
    Difference,
    Estimate,
    Match,
    direction_of,
    paired_difference,
    spread,
    steps_to_match,
)

logger = logging.getLogger(__name__)

DEFAULT_BASELINE = "mlm"
# Metrics on the page unless told; of these, the first kinds are worth a steps-to-match.
SHOWN = ("val/", "glue/", "train/", "throughput/tokens_per_second")
MATCHED = ("val/", "glue/")


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

    def direction(self, metric: str) -> Direction | None:
        """Which way a metric gets better, as told for the main one, by name for the others."""
        return direction_of(metric, self.config.direction if metric == self.metric else Direction.auto)


def evaluate(outputs: Outputs, config: CompareConfig) -> Comparison:
    """Group the runs and compute all that is said about them.

    Raises:
        ValueError: the runs cannot be compared, or a metric, arm or axis is asked for that they do not have.
    """
    arms = group(outputs.runs, config.across)
    baseline = _baseline(arms, config.baseline)
    arms.sort(key=lambda arm: (arm.name != baseline, arm.name))
    metrics = _metrics(arms, config)
    axes = _axes(outputs.runs, config.axis)
    shell = Comparison(config, arms, baseline, {}, axes, notices(outputs, arms, baseline, config.metric))
    for metric in metrics:
        shell.results[metric] = _results(shell, metric)
    for notice in shell.notices:
        logger.warning("%s", notice)
    return shell


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


def _match(
    comparison: Comparison, metric: str, mine: Replicates, base: Replicates
) -> tuple[Match | None, str | None]:
    if metric != comparison.metric and not metric.startswith(MATCHED):
        return None, None
    direction = comparison.direction(metric)
    if direction is None:
        return None, "cannot be said: is more better? say direction=up or direction=down"
    config = comparison.config
    match = steps_to_match(mine, base, direction, config.confidence, config.resamples)
    return match, None if match else "cannot be said: no seed or no step in common with the baseline"


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
    others = config.metrics or [name for kind in SHOWN for name in known if name.startswith(kind)]
    return list(dict.fromkeys([config.metric, *others]))


def _axes(runs: Sequence[Run], asked: Axis) -> list[Axis]:
    lacking = [run for run in runs if run.manifest.get("flops_per_token") is None]
    if asked is Axis.flops and lacking:
        raise ValueError(
            f"axis=flops: {len(lacking)} of {len(runs)} runs have no flops_per_token in their manifest "
            f"(first: {lacking[0].folder}); use axis=tokens or axis=seconds"
        )
    return [axis for axis in Axis if axis is not Axis.flops or not lacking]


def notices(outputs: Outputs, arms: Sequence[Arm], baseline: str | None, metric: str) -> list[str]:
    """Say what a reader must know first: runs that are missing, unfinished, diverged or unlike."""
    found = [f"{folder} cannot be read and is left out: {why}" for folder, why in outputs.unreadable.items()]
    all_seeds = sorted({seed for arm in arms for seed in arm.runs})
    for arm in arms:
        if missing := [str(seed) for seed in all_seeds if seed not in arm.runs]:
            found.append(f"{arm.name} has no run with seed {', '.join(missing)}, which other arms have")
        found += [_status(arm, run) for _, run in sorted(arm.runs.items()) if run.status != "finished"]
        lacking = [str(seed) for seed, run in sorted(arm.runs.items()) if metric not in run.curves]
        if lacking:
            found.append(f"{arm.name} has no {metric} yet for seed {', '.join(lacking)}")
        for seed, run in sorted(arm.runs.items()):
            if (curve := run.curves.get(metric)) and not (finite := np.isfinite(curve.values)).all():
                step = curve.steps[~finite][0]
                found.append(f"{arm.name} seed {seed} diverged: {metric} is not a number at step {step:,}")
    if baseline is None and len(arms) > 1:
        found.append("no baseline: say baseline=<arm> for differences and steps to match")
    return found + _unlike(outputs.runs)


def _status(arm: Arm, run: Run) -> str:
    words = {
        "running": "is still running",
        "killed": "was killed: its manifest says running, but no process holds it",
        "interrupted": "was interrupted",
        "failed": "failed",
    }
    text = f"{arm.name} seed {run.seed} {words.get(run.status, 'has status ' + run.status)}"
    if run.manifest.get("step") is not None:
        text += f" (step {run.manifest['step']:,})"
    error = str(run.manifest.get("error") or "").strip()
    return f"{text}: {error.splitlines()[-1]}" if error and run.status == "failed" else text


def _unlike(runs: Sequence[Run]) -> list[str]:
    found = []
    if _several(runs, "machine"):
        found.append("the runs are from different machines, so their seconds do not compare")
    elif _several(runs, "config", "trainer"):
        found.append("the runs have different trainer settings, so their seconds do not compare")
    if _several(runs, "versions"):
        found.append("the runs are from different library versions (see provenance)")
    if _several(runs, "git_commit"):
        found.append("the runs are from different commits of the code (see provenance)")
    return found


def _several(runs: Sequence[Run], *path: str) -> bool:
    values = set()
    for run in runs:
        value: Any = run.manifest
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        values.add(json.dumps(value, sort_keys=True, default=str))
    return len(values) > 1
