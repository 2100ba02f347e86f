"""TensorBoard event files in the run folder."""

from __future__ import annotations

from pathlib import Path

from taco_cli.tracking.manifest import Status


class TensorBoardSink:
    """One scalar per metric against the step; a resumed run hides what it writes anew."""

    def __init__(self, path: Path, resumed_step: int | None) -> None:
        """Open the event file.

        Raises:
            ValueError: tensorboard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError(
                "tracking=tensorboard: the package tensorboard is not installed; "
                "run `pip install taco-cli[tensorboard]` or choose tracking=csv"
            ) from error
        first_new_step = 0 if resumed_step is None else resumed_step + 1
        self._writer = SummaryWriter(str(path), purge_step=first_new_step)

    def log(self, metrics: dict[str, float], step: int, tokens: int, seconds: float) -> None:
        """Add one point per metric, and the step's tokens and seconds as scalars of their own."""
        for name, value in {**metrics, "progress/tokens": tokens, "progress/seconds": seconds}.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self, status: Status) -> None:
        """Close the event file."""
        self._writer.close()
