"""What ``taco-compare`` is asked: which runs, against which baseline, in which metric."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Axis(StrEnum):
    """What a learning curve runs along."""

    steps = "steps"
    tokens = "tokens"
    seconds = "seconds"
    flops = "flops"  # needs `flops_per_token` in the manifests


class Direction(StrEnum):
    """Which way a metric gets better."""

    auto = "auto"  # known by name: losses fall, accuracies and GLUE scores rise
    up = "up"
    down = "down"


@dataclass
class CompareConfig:
    """One comparison of runs."""

    runs: Any = None  # a folder, or a list of folders; runs are searched below
    baseline: str | None = None  # the arm others are measured against; null: `mlm` where there is one
    metric: str = "val/mlm"  # the one that tables and figures show first
    metrics: list[str] = field(default_factory=list)  # others on the page; empty: all of interest
    axis: Axis = Axis.steps
    direction: Direction = Direction.auto  # of `metric`
    seeds: list[int] = field(default_factory=list)  # only these; empty: all
    across: list[str] = field(default_factory=list)  # keys or prefixes that may differ: scale, encoder.layers
    confidence: float = 0.95  # of every interval
    resamples: int = 10_000  # of every bootstrap
    points: int = 400  # most points of one curve on the page
    output: str | None = None  # null: comparison/ below the runs
    wandb_view: bool = False  # also save the comparison as a view of the runs' W&B workspace
