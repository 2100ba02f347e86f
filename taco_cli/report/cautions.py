"""What a reader must know before trusting a comparison: runs that are missing, unfinished, diverged or unlike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from taco_cli.report.arms import Arm
from taco_cli.report.glue import in_words
from taco_cli.report.runs import Outputs, Run

# An arm's common steps may end a little before its longest seed, as with a budget of time they do.
NEARLY_ALL = 0.9


def cautions(outputs: Outputs, arms: Sequence[Arm], baseline: str | None, metric: str) -> list[str]:
    """List them, most of them one sentence per run or arm."""
    found = [f"{folder} cannot be read and is left out: {why}" for folder, why in outputs.unreadable.items()]
    seeds = sorted({seed for arm in arms for seed in arm.runs})
    for arm in arms:
        found += [*_missing(arm, seeds, metric), *_states(arm, metric), *_cut_short(arm, metric)]
    if baseline is None and len(arms) > 1:
        found.append("no baseline: say baseline=<arm> for differences and steps to match")
    runs = [run for arm in arms for run in arm.runs.values()]
    return [*found, *_unlike(runs), *_fine_tuned_otherwise(runs)]


def _missing(arm: Arm, seeds: Sequence[int], metric: str) -> Iterator[str]:
    if missing := [str(seed) for seed in seeds if seed not in arm.runs]:
        yield f"{arm.name} has no run with seed {', '.join(missing)}, which other arms have"
    if lacking := [str(seed) for seed in arm.seeds if metric not in arm.runs[seed].curves]:
        yield f"{arm.name} has no {metric} yet for seed {', '.join(lacking)}"


def _states(arm: Arm, metric: str) -> Iterator[str]:
    for seed in arm.seeds:
        run = arm.runs[seed]
        if run.status != "finished":
            yield _status(arm, run)
        if (curve := run.curves.get(metric)) and not (finite := np.isfinite(curve.values)).all():
            step = curve.steps[~finite][0]
            yield f"{arm.name} seed {seed} diverged: {metric} is not a number at step {step:,}"


def _cut_short(arm: Arm, metric: str) -> list[str]:
    """Warn where one seed's early end moves the arm's final value far ahead of the others' end."""
    data = arm.replicates(metric)
    if data is None or not len(common := data.common().steps) or common[-1] >= NEARLY_ALL * data.steps[-1]:
        return []
    seeds = [str(s) for s, row in zip(data.seeds, data.present, strict=True) if data.steps[row][-1] == common[-1]]
    return [
        f"{arm.name}: its seeds have {metric} in common up to step {common[-1]:,} of {data.steps[-1]:,} only, so its "
        f"final value is from there; seeds=[...] without {', '.join(seeds)} compares the others to their end"
    ]


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


def _fine_tuned_otherwise(runs: Sequence[Run]) -> Iterator[str]:
    tables = [run.fine_tuning.settings for run in runs]
    for task in sorted({task for table in tables for task in table}):
        settings = sorted({in_words(table[task]) for table in tables if task in table})
        if len(settings) > 1:
            yield f"{task} was not measured alike in all runs, so its scores do not compare: {'; '.join(settings)}"


def _several(runs: Sequence[Run], *path: str) -> bool:
    values = set()
    for run in runs:
        value: Any = run.manifest
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        values.add(json.dumps(value, sort_keys=True, default=str))
    return len(values) > 1
