"""Reads glue.csv: fine-tuning scores of a run's checkpoints, as curves over pre-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy as np

from taco_cli.report.curves import Curve, read_table

COLUMNS = ("task", "step", "seed", "metric", "value")
# Columns that say how a score was made, where the file has them; scores made otherwise are not pooled.
SETTINGS = (
    *("protocol", "lr", "lr_grid", "epochs", "batch_size", "length", "warmup_steps", "weight_decay"),
    *("clip", "dropout", "pooling", "head", "train_limit", "data_hash"),
)
# Curves of the setting that a task's last row has, and of its other settings: glue_<protocol>/<task>/<metric>.
LAST, OTHERS = "glue/", "glue_"
FROZEN = "frozen"  # protocol of what is measured without fine-tuning

Row = dict[str, Any]
Setting = tuple[tuple[str, str], ...]
Samples = dict[str, dict[int, list[float]]]


@dataclass(frozen=True)
class Scores:
    """Curves, each the mean over fine-tuning seeds, and what they are made of.

    `settings` by the first two parts of a curve's name, `glue/<task>`; `samples` by curve and step: one value per
    fine-tuning seed.
    """

    curves: dict[str, Curve] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    samples: Samples = field(default_factory=dict)

    def protocol(self, metric: str) -> str | None:
        """Return the protocol of a curve; None where the file has none."""
        return dict(self.settings.get(metric.rpartition("/")[0], ())).get("protocol")


def read_glue(file: Path, curves: dict[str, Curve]) -> Scores:
    """Read the scores of one run; each setting of a task gives curves of its own.

    ``glue/<task>/<metric>`` is of the setting that the task's last row has. Others are named by their protocol,
    ``glue_<protocol>/<task>/<metric>``, and where this is not theirs alone by the values that tell them apart too:
    ``glue_quick_epochs_4``. Tokens and seconds of a checkpoint are those that metrics.csv has at its step
    (interpolated).
    """
    table = read_table(file, dict.fromkeys(COLUMNS))
    if table is None:
        return Scores()
    rows: list[Row] = [row for row in table.to_pylist() if None not in (row["step"], row["value"])]
    by_task: dict[str, dict[Setting, list[Row]]] = {}
    for row in rows:
        by_task.setdefault(str(row["task"]), {}).setdefault(_setting(row), []).append(row)
    last = {str(row["task"]): _setting(row) for row in rows}
    settings: dict[str, Setting] = {}
    samples: Samples = {}
    for task, groups in by_task.items():
        for setting, members in groups.items():
            kind = LAST if setting == last[task] else f"{_name(setting, list(groups))}/"
            settings[kind + task] = setting
            samples |= _samples(kind, members)
    clock = max(curves.values(), key=lambda curve: len(curve.steps), default=None)
    return Scores({name: _curve(by_step, clock) for name, by_step in samples.items()}, settings, samples)


def in_words(setting: Setting) -> str:
    """Write a setting: protocol quick, epochs 4."""
    return ", ".join(f"{name} {value}" for name, value in setting)


def _setting(row: Row) -> Setting:
    """Return a row's settings; a learning rate that was chosen among several is no setting, its grid is."""
    names = [name for name in SETTINGS if row.get(name) not in (None, "") and (name != "lr" or not row.get("lr_grid"))]
    return tuple((name, str(row[name])) for name in names)


def _name(setting: Setting, settings: Sequence[Setting]) -> str:
    """Name a setting among the others of its task; quoted values keep names apart that are."""
    mine = dict(setting)
    alike = [other for other in map(dict, settings) if other.get("protocol") == mine.get("protocol")]
    keys = [key for key in SETTINGS if len({other.get(key) for other in alike}) > 1]
    parts = [mine.get("protocol"), *(f"{key}_{mine.get(key, 'none')}" for key in keys)]
    return OTHERS + "_".join(quote_plus(part) for part in parts if part)


def _samples(kind: str, rows: Sequence[Row]) -> Samples:
    """Gather the values of each fine-tuning seed; a seed that was measured twice, on two machines, counts once."""
    found: dict[str, dict[int, dict[str, list[float]]]] = {}
    for row in rows:
        by_seed = found.setdefault(f"{kind}{row['task']}/{row['metric']}", {}).setdefault(int(row["step"]), {})
        by_seed.setdefault(str(row["seed"]), []).append(float(row["value"]))
    return {
        name: {step: [float(np.mean(values)) for values in by_seed.values()] for step, by_seed in by_step.items()}
        for name, by_step in found.items()
    }


def _curve(by_step: dict[int, list[float]], clock: Curve | None) -> Curve:
    steps = np.array(sorted(by_step), dtype=np.int64)
    values = np.array([np.mean(by_step[step]) for step in steps.tolist()])
    if clock is None:
        unknown = np.full(len(steps), np.nan)
        return Curve(steps, unknown, unknown, values)
    tokens = np.interp(steps, clock.steps, clock.tokens)
    return Curve(steps, tokens, np.interp(steps, clock.steps, clock.seconds), values)
