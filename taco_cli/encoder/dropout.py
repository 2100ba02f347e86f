"""Dropout whose random numbers cost little on a processor, the same ones compiled or not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_LEVELS = 1 << 16  # an element costs 16 random bits, so a probability is met to 1 in 131,072


def draw_noise(elements: int) -> Tensor:
    """Return ``(elements,)`` int16, uniform over all values, from torch's global generator.

    torch's own dropout on a CPU draws a float per element, one after another, which takes as long as the rest of a
    small model. One call that fills 64-bit integers costs a fifteenth of it.
    """
    return torch.empty(-(-elements // 4), dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)


class Dropout:
    """Dropout for one forward pass; each call uses up its share of the noise.

    Args:
        active: False in evaluation mode: every call returns its input.
        noise: from :func:`draw_noise`; None: torch's own dropout (on a GPU, where it is parallel and fused).
    """

    def __init__(self, active: bool, noise: Tensor | None = None) -> None:
        self.active = active
        self.noise = noise
        self.used = 0

    def __call__(self, x: Tensor, probability: float) -> Tensor:
        """Zero elements of ``x`` with ``probability`` and scale the others so that the expectation stays."""
        if not self.active or probability == 0.0:
            return x
        if self.noise is None:
            return F.dropout(x, probability)
        start, self.used = self.used, self.used + x.numel()
        noise = self.noise[start : self.used].view(x.shape)
        dropped = round(probability * _LEVELS)
        keep = noise >= dropped - _LEVELS // 2
        return x * (keep * (_LEVELS / (_LEVELS - dropped))).to(x.dtype)
