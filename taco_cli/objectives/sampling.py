"""Anchors, positives and negatives of the token contrast (method, section 3).

Every draw is a function of (seed, stream, epoch, example, position[, k]). All laws are stated on
*real* tokens, those that are not padding: listed row by row, the tokens of a row, and those of a window
within it, are contiguous, so that a uniform draw without some of them is one number and a skip.

Shapes: N sequences of L tokens, R rows of the pool, A anchors, K negatives, T real tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from taco_cli.config.schema import Anchors, WindowEdges
from taco_cli.randomness import below, high_bits, random_bits


def anchor_mask(selected_NL: Tensor, attention_mask_NL: Tensor | None, anchors: Anchors) -> Tensor:
    """Return ``(N, L)`` bool: real tokens of the kind asked for, in rows where a positive exists.

    Special tokens are anchors like any other; a row with a single real token has none.

    Raises:
        ValueError: a row is padding alone.
    """
    if attention_mask_NL is None:
        mask_NL = torch.full_like(selected_NL, selected_NL.shape[1] > 1)
    else:
        tokens_N1 = attention_mask_NL.sum(1, keepdim=True)
        if bool((tokens_N1 == 0).any()):
            raise ValueError("a sequence of the batch is padding alone: leave empty texts out of the batch")
        mask_NL = attention_mask_NL & (tokens_N1 > 1)
    if anchors == Anchors.masked:
        return mask_NL & selected_NL
    if anchors == Anchors.unmasked:
        return mask_NL & ~selected_NL
    return mask_NL


@dataclass(frozen=True)
class AnchorIndex:
    """Anchors by place and by name.

    Attributes:
        row: ``(A,)`` row within the pool.
        column: ``(A,)`` position within the sequence.
        epoch: ``(A,)``.
        example: ``(A,)``.
    """

    row: Tensor
    column: Tensor
    epoch: Tensor
    example: Tensor

    def bits(self, key: int) -> Tensor:
        """Return ``(A,)`` random bits."""
        return random_bits(key, self.epoch, self.example, self.column)


class RealTokens:
    """The tokens of ``(R, L)`` that are not padding, as one list in row-major order."""

    def __init__(self, rows: int, length: int, mask_RL: Tensor | None, device: torch.device) -> None:
        self.rows, self.length = rows, length
        self.mask_RL = mask_RL
        if mask_RL is None:
            self._before = torch.arange(rows * length + 1, device=device)
            self.flat = self._before[:-1]
        else:
            # nonzero_static, unlike nonzero, does not wait for the device; its tail is never reached.
            mask = mask_RL.flatten()
            self._before = torch.nn.functional.pad(mask.cumsum(0), (1, 0))
            self.flat = torch.nonzero_static(mask, size=mask.numel(), fill_value=0).squeeze(1)

    def before(self, position: Tensor) -> Tensor:
        """Return how many real tokens come before flat positions."""
        return self._before[position]

    def total(self) -> Tensor:
        """Return the number of real tokens, a scalar on the device."""
        return self._before[-1]

    def transposed(self) -> RealTokens:
        """Return the same tokens column by column: ``(L, R)``."""
        mask_LR = None if self.mask_RL is None else self.mask_RL.T
        return RealTokens(self.length, self.rows, mask_LR, self._before.device)


def draw_positives(anchors: AnchorIndex, real: RealTokens, key: int, window: int, edges: WindowEdges) -> Tensor:
    """Return ``(A,)`` flat positions: for each anchor another real token of its own sequence.

    ``edges=sequence``: an offset uniform over ±1..window//2; where that is outside the sequence or
    padding, a uniform draw over all other real tokens of the sequence. ``edges=window``: uniform over
    the other real tokens of the window; where it has none, over those of the sequence.
    """
    bits_A, own_A = anchors.bits(key), anchors.row * real.length + anchors.column
    first_A, half = anchors.row * real.length, window // 2
    anywhere_A = _other(real, high_bits(bits_A), first_A, first_A + real.length, own_A)
    if edges == WindowEdges.window:
        low_A = first_A + (anchors.column - half).clamp(min=0)
        end_A = first_A + (anchors.column + half + 1).clamp(max=real.length)
        near_A = _other(real, bits_A, low_A, end_A, own_A)
        exists_A = real.before(end_A) - real.before(low_A) > 1
        return torch.where(exists_A, near_A, anywhere_A)
    step_A = below(bits_A, 2 * half)
    column_A = anchors.column + step_A - half + (step_A >= half)
    near_A = (first_A + column_A).clamp(0, real.rows * real.length - 1)
    is_real_A = real.before(near_A + 1) > real.before(near_A)
    inside_A = (column_A >= 0) & (column_A < real.length) & is_real_A
    return torch.where(inside_A, near_A, anywhere_A)


def _other(real: RealTokens, bits_A: Tensor, low_A: Tensor, end_A: Tensor, own_A: Tensor) -> Tensor:
    """Draw uniformly from the real tokens of flat positions [low, end) without the anchor itself."""
    first_A = real.before(low_A)
    choices_A = (real.before(end_A) - first_A - 1).clamp(min=1)
    place_A = first_A + below(bits_A, choices_A)
    place_A = place_A + (place_A >= real.before(own_A))
    return real.flat[place_A.clamp(max=len(real.flat) - 1)]


def draw_negatives(anchors: AnchorIndex, real: RealTokens, key: int, count: int) -> Tensor:
    """Return ``(A, K)`` flat positions, with replacement, independent for every anchor.

    Uniform over the real tokens of all other rows, which without padding is uniform over the other rows
    and over all columns.
    """
    start_A = real.before(anchors.row * real.length)
    own_A = real.before((anchors.row + 1) * real.length) - start_A
    draw_AK = below(_pairs(anchors, key, count), (real.total() - own_A)[:, None])
    place_AK = draw_AK + own_A[:, None] * (draw_AK >= start_A[:, None])
    return real.flat[place_AK]


def draw_matched_negatives(anchors: AnchorIndex, real: RealTokens, key: int, count: int) -> Tensor:
    """Return ``(A, K)`` flat positions in the anchor's own column, uniform over the other rows.

    With padding: over the rows that have a real token there; where none has, as
    :func:`draw_negatives`.
    """
    columns = real.transposed()
    start_A = columns.before(anchors.column * real.rows)
    choices_A = columns.before((anchors.column + 1) * real.rows) - start_A - 1
    own_A = columns.before(anchors.column * real.rows + anchors.row) - start_A
    draw_AK = below(_pairs(anchors, key, count), choices_A.clamp(min=1)[:, None])
    place_AK = start_A[:, None] + draw_AK + (draw_AK >= own_A[:, None])
    row_AK = columns.flat[place_AK.clamp(max=len(columns.flat) - 1)] % real.rows
    matched_AK = row_AK * real.length + anchors.column[:, None]
    if real.mask_RL is None:
        return matched_AK
    return torch.where(choices_A[:, None] > 0, matched_AK, draw_negatives(anchors, real, key, count))


def _pairs(anchors: AnchorIndex, key: int, count: int) -> Tensor:
    """Return ``(A, K)`` values with 32 random low bits: a hash gives two, its halves."""
    pair = torch.arange((count + 1) // 2, device=anchors.row.device)
    bits = random_bits(key, anchors.epoch[:, None], anchors.example[:, None], anchors.column[:, None], pair)
    return torch.stack((bits, high_bits(bits)), dim=2).flatten(1)[:, :count]
