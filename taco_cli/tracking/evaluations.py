"""What was measured of a run's checkpoints, sent to W&B beside what pre-training logged."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from taco_cli.config.schema import TrackingConfig, TrackingKind

logger = logging.getLogger(__name__)


class Job(Enum):
    """Who measures: the command, what its W&B runs are called, their job type, and its own tables."""

    glue = ("taco-glue", "glue", "evaluate", "glue.csv")
    analysis = ("taco-analyze", "analysis", "analyze", "analysis/*.csv")

    def __init__(self, command: str, suffix: str, job_type: str, tables: str) -> None:
        self.command, self.suffix, self.job_type, self.tables = command, suffix, job_type, tables


@dataclass(frozen=True)
class Scores:
    """What was measured of one run, or of one model.

    Attributes:
        group: the experiment, as in pre-training.
        name: of the run.
        folder: of the run; W&B writes below it unless ``tracking.wandb_dir`` is set.
        by_step: pre-training step -> metric -> value.
    """

    group: str
    name: str
    folder: Path
    by_step: Mapping[int, Mapping[str, float]]


def send_scores(tracking: TrackingConfig, job: Job, runs: Iterable[Scores]) -> None:
    """Send scores to W&B where `tracking=wandb`; what fails there is a warning, for the tables have all."""
    if tracking.kind is TrackingKind.csv:
        return
    if tracking.kind is not TrackingKind.wandb:
        known = f"{job.command} writes {job.tables} and knows W&B (tracking=wandb) alone"
        logger.warning("tracking=%s: %s", tracking.kind, known)
        return
    from taco_cli.tracking import wandb_evaluation

    for scores in runs:
        try:
            wandb_evaluation.log_evaluation(tracking, job, scores)
        except Exception as error:
            logger.warning("W&B did not take the scores of %s (%s); %s has them", scores.folder, error, job.tables)
