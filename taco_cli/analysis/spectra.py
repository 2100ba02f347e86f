"""How vectors lie in their space: alignment, uniformity, effective rank, anisotropy.

Legend: P vectors, d their size.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

_AT_ONCE = 2**24  # products held at once


def alignment(left_Pd: Tensor, right_Pd: Tensor) -> float:
    """Return the mean squared distance of positive pairs on the unit sphere (Wang and Isola 2020, alpha = 2)."""
    cosine_P = functional.cosine_similarity(left_Pd.double(), right_Pd.double(), dim=1)
    return float((2 - 2 * cosine_P).mean()) if len(left_Pd) else math.nan


def uniformity(vectors_Pd: Tensor, t: float = 2.0) -> float:
    """Return ``log E exp(-t |x - y|^2)`` over all pairs of different vectors on the unit sphere (Wang and Isola 2020).

    From 0 (all at one point) down; NaN for fewer than two vectors.
    """
    units_Pd = functional.normalize(vectors_Pd.float(), dim=1)
    count = len(units_Pd)
    if count < 2:
        return math.nan
    total, rows = 0.0, max(1, _AT_ONCE // count)
    for start in range(0, count, rows):
        others_Pd = units_Pd[start:]  # pairs with earlier ones are in their blocks, and count twice there
        squared_CP = (others_Pd[:rows] @ others_Pd.T).mul_(-2).add_(2).clamp_(min=0)
        potential_CP = squared_CP.mul_(-t).exp_()
        own, later = potential_CP[:, :rows], potential_CP[:, rows:]
        total += float(own.sum(dtype=torch.float64) + 2 * later.sum(dtype=torch.float64))
    return math.log((total - count) / (count * (count - 1)))


def effective_rank(vectors_Pd: Tensor) -> float:
    """Return ``exp(H(p))`` with p the singular values as shares of their sum (Roy and Vetterli 2007).

    Neither centred nor normalised: k orthogonal directions of equal weight have effective rank k. NaN for no vectors.
    """
    if not len(vectors_Pd):
        return math.nan
    wide_Pd = vectors_Pd.double()
    gram = wide_Pd.T @ wide_Pd if len(wide_Pd) > wide_Pd.shape[1] else wide_Pd @ wide_Pd.T
    singular = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
    share = singular / singular.sum()
    share = share[share > 0]
    return float((-(share * share.log()).sum()).exp())


def anisotropy(vectors_Pd: Tensor) -> float:
    """Return the mean cosine of pairs of different vectors (Ethayarajh 2019); NaN for fewer than two."""
    count = len(vectors_Pd)
    if count < 2:
        return math.nan
    direction_d = functional.normalize(vectors_Pd.double(), dim=1).sum(0)
    return float((direction_d.square().sum() - count) / (count * (count - 1)))
