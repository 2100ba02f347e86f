"""Groups runs into arms with seeds as replicates, and refuses to pool what is not comparable.

Letters: S seeds, P points.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taco_cli.config.compare import Axis
from taco_cli.report.curves import Floats, Integers
from taco_cli.report.runs import FINGERPRINTS, Run

Bools = npt.NDArray[np.bool_]

# A group of conf/ that sets keys of several sections.
GROUPS = {
    "scale": (
        "encoder",
        "optimizer",
        "tokenizer",
        "sequence_length",
        "batch_size",
        "micro_batch_size",
        "budget",
        "validate_every",
        "validation_sequences",
        "tokenizer data",
    )
}


@dataclass(frozen=True)
class Replicates:
    """One metric of one arm on the union of its seeds' steps; NaN where a seed has no value.

    steps (P,); tokens, seconds and values (S, P), rows in the order of `seeds`; present (S, P) tells a value
    that is missing from one that is not a number; flops_per_token (S,), NaN where the manifest has none.
    """

    seeds: list[int]
    steps: Integers
    tokens: Floats
    seconds: Floats
    values: Floats
    present: Bools
    flops_per_token: Floats

    def clock(self, axis: Axis) -> Floats:
        """Where each point of each seed lies on an axis, (S, P)."""
        if axis is Axis.steps:
            return np.broadcast_to(self.steps.astype(np.float64), self.values.shape)
        if axis is Axis.flops:
            return self.tokens * self.flops_per_token[:, None]
        return self.tokens if axis is Axis.tokens else self.seconds

    def select(self, seeds: Sequence[int]) -> Replicates:
        """Keep these seeds, in this order."""
        rows = [self.seeds.index(seed) for seed in seeds]
        return Replicates(
            list(seeds),
            self.steps,
            self.tokens[rows],
            self.seconds[rows],
            self.values[rows],
            self.present[rows],
            self.flops_per_token[rows],
        )

    def common(self) -> Replicates:
        """Keep the steps at which every seed has a value."""
        return self.at(np.logical_and.reduce(self.present, axis=0))

    def settled(self) -> Replicates:
        """Keep the steps at which every seed that gets that far has a value: where a mean makes sense."""
        last = np.array([steps.max(initial=-1) for steps in (self.steps[row] for row in self.present)])
        return self.at(np.logical_and.reduce(self.present | (self.steps[None, :] > last[:, None]), axis=0))

    def at(self, points: Bools | Integers) -> Replicates:
        """Keep these points."""
        return Replicates(
            self.seeds,
            self.steps[points],
            self.tokens[:, points],
            self.seconds[:, points],
            self.values[:, points],
            self.present[:, points],
            self.flops_per_token,
        )


@dataclass(frozen=True)
class Arm:
    """Runs that differ in their seed alone."""

    name: str
    runs: dict[int, Run]

    @property
    def seeds(self) -> list[int]:
        """Seeds of the arm, in order."""
        return sorted(self.runs)

    @property
    def metrics(self) -> set[str]:
        """Names of all metrics that any seed has."""
        return {name for run in self.runs.values() for name in run.curves}

    def replicates(self, metric: str) -> Replicates | None:
        """Bring one metric of all seeds that have it onto one grid of steps; None where no seed has it."""
        curves = {seed: run.curves[metric] for seed, run in sorted(self.runs.items()) if metric in run.curves}
        if not curves:
            return None
        steps = np.unique(np.concatenate([curve.steps for curve in curves.values()]))
        shape = (len(curves), len(steps))
        tokens, seconds, values = (np.full(shape, np.nan) for _ in range(3))
        present = np.zeros(shape, dtype=bool)
        for row, curve in enumerate(curves.values()):
            at = np.searchsorted(steps, curve.steps)
            tokens[row, at], seconds[row, at], values[row, at] = curve.tokens, curve.seconds, curve.values
            present[row, at] = True
        flops = [self.runs[seed].manifest.get("flops_per_token") for seed in curves]
        per_token = np.array([np.nan if value is None else float(value) for value in flops])
        return Replicates(list(curves), steps, tokens, seconds, values, present, per_token)


def group(runs: Sequence[Run], across: Sequence[str] = ()) -> list[Arm]:
    """Group runs by label; where runs of one label differ in keys of `across`, these keys split the label.

    Raises:
        ValueError: runs differ in more than objective, seed and `across`; runs of one label differ in more
            than seed and `across`; two runs have one label and seed; a name in `across` is no key.
    """
    configs = [_comparable(run) for run in runs]
    allowed = _expand(across, {key for config in configs for key in config})
    _refuse_differences(runs, configs, allowed)
    arms: dict[str, dict[int, Run]] = {}
    for label in sorted({run.label for run in runs}):
        members = [(run, config) for run, config in zip(runs, configs, strict=True) if run.label == label]
        for name, run in _split(label, members, allowed):
            seeds = arms.setdefault(name, {})
            if run.seed in seeds:
                raise ValueError(
                    f"two runs of arm {name} have seed {run.seed}: {seeds[run.seed].folder}, {run.folder}; "
                    "compare them with different labels, or leave one out of runs="
                )
            seeds[run.seed] = run
    return [Arm(name, seeds) for name, seeds in arms.items()]


def differing(configs: Sequence[dict[str, Any]]) -> list[str]:
    """Name the keys whose values are not the same in all configurations."""
    keys = dict.fromkeys(key for config in configs for key in config)
    return [key for key in keys if len({_text(config.get(key)) for config in configs}) > 1]


def under(key: str, prefixes: Sequence[str]) -> bool:
    """Whether a dotted key is one of these, or lies below one."""
    return any(key == prefix or key.startswith(prefix + ".") for prefix in prefixes)


def _comparable(run: Run) -> dict[str, Any]:
    return {key: value for key, value in run.identity.items() if key != "seed"}


def _expand(across: Sequence[str], keys: set[str]) -> list[str]:
    known = keys | {key.rsplit(".", depth)[0] for key in keys for depth in range(key.count(".") + 1)}
    allowed: list[str] = []
    for name in across:
        if name not in known and name not in GROUPS:
            near = difflib.get_close_matches(name, sorted(known | set(GROUPS)), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"across={name}: no such key in the configuration of these runs{hint}")
        allowed += GROUPS.get(name, (name,))
        # What is read follows from the keys that say what to read.
        allowed += [data for data, section in FINGERPRINTS.items() if under(name, [section])]
    return allowed


def _refuse_differences(runs: Sequence[Run], configs: Sequence[dict[str, Any]], allowed: Sequence[str]) -> None:
    keys = [key for key in differing(configs) if not under(key, [*allowed, "objective"])]
    if not keys:
        return
    lines = [f"  {key}: {_spread(key, runs, configs)}" for key in keys[:12]]
    more = [f"  and {len(keys) - 12} more"] if len(keys) > 12 else []
    raise ValueError(
        "\n".join(
            [
                "these runs differ in more than objective and seed, so that no difference has one cause:",
                *lines,
                *more,
                f"compare fewer runs, or say that this is meant: {_across(keys)}",
            ]
        )
    )


def _split(label: str, members: Sequence[tuple[Run, dict[str, Any]]], allowed: Sequence[str]) -> list[tuple[str, Run]]:
    configs = [config for _, config in members]
    keys = differing(configs)
    if wrong := [key for key in keys if not under(key, allowed)]:
        lines = [f"  {key}: {_spread(key, [run for run, _ in members], configs)}" for key in wrong[:12]]
        raise ValueError(
            f"runs labelled {label} are not replicates, as they differ in more than their seed:\n"
            + "\n".join(lines)
            + f"\ngive them different labels, or split the label: {_across(wrong)}"
        )
    # A fingerprint follows from the keys beside it; as a name it would say nothing.
    shown = [key for key in keys if key not in FINGERPRINTS] or keys
    return [(label + "".join(f" {key}={_text(config.get(key))}" for key in shown), run) for run, config in members]


def _spread(key: str, runs: Sequence[Run], configs: Sequence[dict[str, Any]]) -> str:
    by_value: dict[str, list[str]] = {}
    for run, config in zip(runs, configs, strict=True):
        by_value.setdefault(_text(config.get(key)), []).append(f"{run.label}/seed_{run.seed}")
    parts = []
    for value, names in list(by_value.items())[:4]:
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        parts.append(f"{value} in {', '.join(names[:2])}{more}")
    return "; ".join(parts)


def _across(keys: Sequence[str]) -> str:
    """Write what allows these differences: a fingerprint needs no name where a key of its section has one."""
    named = [key for key in keys if key not in FINGERPRINTS]
    sections = [FINGERPRINTS[key] for key in keys if key in FINGERPRINTS]
    return (
        f"across=[{','.join([*named, *(name for name in sections if not any(under(key, [name]) for key in named))])}]"
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
