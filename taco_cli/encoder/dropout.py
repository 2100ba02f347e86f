"""Dropout whose random numbers cost little on a processor, the same ones compiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_LEVELS = 1 << 16  # an element costs 16 random bits, so a probability is met to 1 in 131,072


class Site(NamedTuple):
    """One place of a forward pass where elements are dropped."""

    elements: int
    probability: float


def draw_factors(sites: Sequence[Site], dtype: torch.dtype) -> list[Tensor]:
    """Draw what the elements of each site are multiplied with: 0, or 1 / (1 - probability).

    torch's own dropout on a CPU draws a float per element, one after another, which takes as long as
    the rest of a small model. Here 64-bit integers are filled from the same global generator, and before
    the forward pass, so that a compiled pass has no random numbers of its own.

    Returns:
        a flat tensor of ``dtype`` for each site.
    """
    return [_site_factors(site, dtype) for site in sites]


def _site_factors(site: Site, dtype: torch.dtype) -> Tensor:
    words = torch.empty(-(-site.elements // 4), dtype=torch.int64).random_(-(1 << 63), None)
    noise = words.view(torch.int16)[: site.elements]
    dropped = round(site.probability * _LEVELS)
    scale = torch.tensor(_LEVELS / (_LEVELS - dropped), dtype=dtype)
    return torch.where(noise >= dropped - _LEVELS // 2, scale, torch.zeros((), dtype=dtype))


class Dropout:
    """Dropout for one forward pass; each call uses up the factors of one site.

    Args:
        active: False in evaluation mode: every call returns its input.
        factors: from :func:`draw_factors`; None: torch's own dropout (on a GPU, where it is parallel and
            fused).
    """

    def __init__(self, active: bool, factors: list[Tensor] | None = None) -> None:
        self.active = active
        self.factors = factors
        self.used = 0

    def __call__(self, x: Tensor, probability: float) -> Tensor:
        """Zero elements of ``x`` with ``probability`` and scale the others so that the expectation stays."""
        if not self.active or probability == 0.0:
            return x
        if self.factors is None:
            return functional.dropout(x, probability)
        factors = self.factors[self.used].view(x.shape)
        self.used += 1
        return (x * factors).to(x.dtype)
