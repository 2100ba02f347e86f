"""Tokens per second, and how much of what the machine can do that is."""

from __future__ import annotations

from taco_cli.training.progress import Progress


class Throughput:
    """Measures between two readings.

    Args:
        flops_per_token: model FLOPs of one token in training, forward and backward, heads on predicted positions.
        peak_flops: what the devices can do together, in FLOPs per second.
    """

    def __init__(self, flops_per_token: float, peak_flops: float) -> None:
        self._flops_per_token, self._peak = flops_per_token, peak_flops
        self._since = Progress()

    def start(self, progress: Progress) -> None:
        """Measure from here, not from the beginning of a run that is continued."""
        self._since = Progress(progress.step, progress.tokens, progress.seconds)

    def __call__(self, progress: Progress) -> dict[str, float]:
        """Return ``throughput/...`` since the last call."""
        seconds = max(progress.seconds - self._since.seconds, 1e-9)
        per_second = (progress.tokens - self._since.tokens) / seconds
        self.start(progress)
        return {
            "throughput/tokens_per_second": per_second,
            "throughput/mfu": per_second * self._flops_per_token / self._peak,
        }
