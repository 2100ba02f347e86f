"""What flows through an objective: batches, corrupted batches, and what it asks of an encoder.

Shapes: N sequences, L tokens, d hidden units, P positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

from torch import Tensor

IGNORE = -100  # label of a position that is not predicted


@dataclass(frozen=True)
class SpecialTokens:
    """What an objective has to know about the vocabulary; ids outside ``special_ids`` are words."""

    mask_id: int
    pad_id: int
    special_ids: tuple[int, ...]
    vocab_size: int


@dataclass(frozen=True)
class Batch:
    """Sequences as the corpus has them.

    Attributes:
        input_ids: ``(N, L)`` int64.
        example: ``(N,)`` int64, which example of the corpus a row is.
        epoch: ``(N,)`` int64, how often the corpus had been read before.
        attention_mask: ``(N, L)`` bool, false on padding; None where there is no padding.
    """

    input_ids: Tensor
    example: Tensor
    epoch: Tensor
    attention_mask: Tensor | None = None


@dataclass(frozen=True)
class Corrupted:
    """A batch after masking.

    Attributes:
        input_ids: ``(N, L)`` int64, what the encoder sees.
        labels: ``(N, L)`` int64, the original id where MLM predicts, -100 elsewhere.
        selected: ``(N, L)`` bool, where MLM predicts, kept and random tokens included.
        eligible: ``(N, L)`` bool, what could have been selected: neither special nor padding.
        originals: ``(N, L)`` int64.
        anchors: ``(N, L)`` bool, positions that the token contrast asks for their positive.
        example: ``(N,)`` int64.
        epoch: ``(N,)`` int64.
        attention_mask: ``(N, L)`` bool or None.
    """

    input_ids: Tensor
    labels: Tensor
    selected: Tensor
    eligible: Tensor
    originals: Tensor
    anchors: Tensor
    example: Tensor
    epoch: Tensor
    attention_mask: Tensor | None = None

    def split(self, size: int) -> list[Corrupted]:
        """Return micro-batches of ``size`` sequences, in order; the last may be smaller."""
        rows = self.input_ids.shape[0]
        return [self._rows(slice(start, start + size)) for start in range(0, rows, size)]

    def _rows(self, rows: slice) -> Corrupted:
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        cut: dict[str, Any] = {name: None if part is None else part[rows] for name, part in parts.items()}
        return Corrupted(**cut)


class EncoderOutput(Protocol):
    """One forward pass."""

    @property
    def embeddings(self) -> Tensor:
        """``(N, L, d)``, the embedding layer's output."""

    @property
    def hidden_states(self) -> Tensor:
        """``(N, L, d)``, the last hidden states."""


class Encoder(Protocol):
    """What an objective needs of an encoder."""

    def __call__(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> EncoderOutput:
        """Encode ``(N, L)`` ids."""

    def predict(self, states: Tensor) -> Tensor:
        """Transform ``(P, d)`` states into what the decoder is multiplied with."""

    @property
    def decoder_weight(self) -> Tensor:
        """``(V, d')``."""

    @property
    def decoder_bias(self) -> Tensor | None:
        """``(V,)`` or None."""

    @property
    def word_embeddings(self) -> Tensor:
        """``(V, d)``."""
