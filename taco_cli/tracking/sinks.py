"""Where metrics go: always `metrics.csv`, and one of W&B or TensorBoard if asked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from taco_cli.config.schema import RunConfig, TrackingKind
from taco_cli.tracking.csv_sink import CsvSink
from taco_cli.tracking.folder import RunFolder
from taco_cli.tracking.manifest import Manifest, Status

logger = logging.getLogger(__name__)


class Sink(Protocol):
    """Takes metrics of one run."""

    def log(self, metrics: dict[str, float], step: int, tokens: int, seconds: float) -> None:
        """Record values after `step` optimizer steps, `tokens` tokens and `seconds` of training."""

    def close(self, status: Status) -> None:
        """Say how the run ended; nothing is logged afterwards."""


class Sinks:
    """All sinks of a run as one; a tracker that fails is given up with one warning, training goes on.

    `metrics.csv` is no tracker but the run's own record: its errors are raised. Ranks after the first have
    none.
    """

    def __init__(self, record: Sink | None, trackers: Sequence[Sink] = ()) -> None:
        self._record = record
        self._trackers = list(trackers)
        self._given_up: list[Sink] = []

    def log(self, metrics: dict[str, float], step: int, tokens: int, seconds: float) -> None:
        """Record values in every sink."""
        if self._record is not None:
            self._record.log(metrics, step, tokens, seconds)
        for tracker in list(self._trackers):
            try:
                tracker.log(metrics, step, tokens, seconds)
            except Exception as error:
                self._trackers.remove(tracker)
                self._given_up.append(tracker)
                logger.warning(
                    "%s failed at step %d and gets no more values (%s: %s); metrics.csv has them all.",
                    type(tracker).__name__,
                    step,
                    type(error).__name__,
                    error,
                )

    def close(self, status: Status) -> None:
        """Close every sink."""
        for tracker in [*self._trackers, *self._given_up]:
            try:
                tracker.close(status)
            except Exception as error:
                logger.warning("%s could not be closed: %s", type(tracker).__name__, error)
        if self._record is not None:
            self._record.close(status)


def build_sinks(config: RunConfig, folder: RunFolder, manifest: Manifest, resumed_step: int | None) -> Sinks:
    """Open the sinks of a run; rows after the step that training resumes from are dropped.

    Args:
        config: the run's.
        folder: the run's, held by this process.
        manifest: the run's; W&B's id is read from `wandb_id`, or put there for the caller to write.
        resumed_step: optimizer steps done in the checkpoint loaded; None for a start from the beginning.

    Raises:
        ValueError: a package for the tracker is missing.
    """
    record = CsvSink(folder.metrics_csv, resumed_step)
    try:
        return Sinks(record, _trackers(config, folder, manifest, resumed_step, record.last_dropped))
    except BaseException:
        record.close(Status.failed)
        raise


def _trackers(
    config: RunConfig,
    folder: RunFolder,
    manifest: Manifest,
    resumed_step: int | None,
    already_logged: int | None,
) -> list[Sink]:
    """Import a tracker's package only when it is asked for."""
    if config.tracking.kind is TrackingKind.wandb:
        from taco_cli.tracking.wandb_sink import WandbSink

        return [WandbSink(config, folder, manifest, already_logged)]
    if config.tracking.kind is TrackingKind.tensorboard:
        from taco_cli.tracking.tensorboard_sink import TensorBoardSink

        return [TensorBoardSink(folder.path / "tensorboard", resumed_step)]
    return []
