"""Reads glue.csv: fine-tuning scores of a run's checkpoints, as curves over pre-training."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taco_cli.report.curves import Curve, read_table

logger = logging.getLogger(__name__)

COLUMNS = ("task", "step", "seed", "metric", "value")
# Columns that say how a score was made, where the file has them; scores made otherwise are not pooled.
SETTINGS = (
    *("protocol", "lr", "lr_grid", "epochs", "batch_size", "length", "warmup_steps", "weight_decay"),
    *("clip", "dropout", "pooling", "head", "train_limit", "data_hash"),
)


@dataclass(frozen=True)
class Scores:
    """Curves ``glue/<task>/<metric>``, each the mean over fine-tuning seeds, and the settings of each task."""

    curves: dict[str, Curve] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


def read_glue(file: Path, curves: dict[str, Curve]) -> Scores:
    """Read the scores of one run; of several settings for a task, that of its last row counts.

    Tokens and seconds of a checkpoint are those that metrics.csv has at its step (interpolated).
    """
    table = read_table(file, dict.fromkeys(COLUMNS))
    if table is None:
        return Scores()
    rows: list[dict[str, Any]] = [row for row in table.to_pylist() if None not in (row["step"], row["value"])]
    settings = {str(row["task"]): _setting(row) for row in rows}
    kept = [row for row in rows if _setting(row) == settings[str(row["task"])]]
    if left_out := len(rows) - len(kept):
        logger.warning(
            "%s: %d rows of earlier settings are left out; of each task the last setting counts", file, left_out
        )
    points: dict[str, dict[int, list[float]]] = {}
    for row in kept:
        by_step = points.setdefault(f"glue/{row['task']}/{row['metric']}", {})
        by_step.setdefault(int(row["step"]), []).append(float(row["value"]))
    clock = max(curves.values(), key=lambda curve: len(curve.steps), default=None)
    return Scores({name: _curve(by_step, clock) for name, by_step in points.items()}, settings)


def _setting(row: dict[str, Any]) -> str:
    """Write a row's settings; a learning rate that was chosen among several is no setting, its grid is."""
    names = [name for name in SETTINGS if row.get(name) not in (None, "") and (name != "lr" or not row.get("lr_grid"))]
    return ", ".join(f"{name} {row[name]}" for name in names)


def _curve(by_step: dict[int, list[float]], clock: Curve | None) -> Curve:
    steps = np.array(sorted(by_step), dtype=np.int64)
    values = np.array([np.mean(by_step[step]) for step in steps.tolist()])
    if clock is None:
        unknown = np.full(len(steps), np.nan)
        return Curve(steps, unknown, unknown, values)
    tokens = np.interp(steps, clock.steps, clock.tokens)
    return Curve(steps, tokens, np.interp(steps, clock.steps, clock.seconds), values)
