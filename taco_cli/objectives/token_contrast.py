"""Token-alignment contrast (TC): a token against tokens of other sequences (method, section 3).

Shapes: N sequences of L tokens, d hidden units, A anchors, K negatives, M = R·L positions of the pool.
"""

from __future__ import annotations

import torch
from torch import Tensor

from taco_cli.config.schema import (
    Anchors,
    Embedding,
    NegativePositions,
    ObjectiveConfig,
    StopGradient,
    TokenContrastConfig,
)
from taco_cli.objectives.batch import Corrupted, Encoder, EncoderOutput
from taco_cli.objectives.info_nce import info_nce
from taco_cli.objectives.pool import gather_rows, pool_ranks
from taco_cli.objectives.sampling import (
    AnchorIndex,
    RealTokens,
    draw_matched_negatives,
    draw_negatives,
    draw_positives,
)
from taco_cli.randomness import stream_key

SMALLEST_NORM = 1e-6  # of h - e, so that a token whose state is its embedding has a finite gradient


class TokenContrast:
    """InfoNCE of every anchor's positive among negatives drawn from the other rows of the pool."""

    def __init__(self, config: ObjectiveConfig, seed: int, stream: str = "tc") -> None:
        _check(config.tc)
        self._config = config.tc
        self._positives = stream_key(seed, f"{stream}/positives")
        self._negatives = stream_key(seed, f"{stream}/negatives")

    def count(self, corrupted: Corrupted) -> Tensor:
        """Return the number of anchors."""
        return corrupted.anchors.sum()

    def sum(self, encoder: Encoder, output: EncoderOutput, corrupted: Corrupted) -> Tensor:
        """Return the summed loss; the pool is the micro-batch given.

        Raises:
            ValueError: the pool has a single sequence, hence no negatives.
        """
        return self.sum_and_hits(encoder, output, corrupted)[0]

    def sum_and_hits(self, encoder: Encoder, output: EncoderOutput, corrupted: Corrupted) -> tuple[Tensor, Tensor]:
        """Return the summed loss and how many anchors score their positive above all negatives."""
        config = self._config
        rank, ranks = pool_ranks(config.pool)
        rows = len(corrupted.input_ids)
        if rows * ranks < 2:
            raise ValueError(
                "objective.tc.weight > 0 needs negatives from other sequences, but the pool has one sequence:"
                " raise micro_batch_size (or batch_size, if micro_batch_size is null) to 2 or more; with"
                " objective.tc.pool=rank, to 2 or more for each process"
            )
        units_Md = normalised_semantics(output.hidden_states, self.embeddings(encoder, output, corrupted))
        keys_Md = units_Md if config.stop_gradient == StopGradient.none else units_Md.detach()
        keys_Md = gather_rows(keys_Md, ranks)
        flat_A = _flat_anchors(corrupted, config.anchors)
        positive_A, negative_AK = self.draw(flat_A, corrupted, rank, ranks)
        queries_Ad = units_Md if flat_A is None else units_Md.index_select(0, flat_A)
        return info_nce(queries_Ad, keys_Md, positive_A, negative_AK, config.temperature)

    def embeddings(self, encoder: Encoder, output: EncoderOutput, corrupted: Corrupted) -> Tensor:
        """Return ``(N, L, d)``: what `objective.tc.embedding` takes for ``e``."""
        if self._config.embedding == Embedding.layer_output:
            embeddings = output.embeddings
        elif self._config.embedding == Embedding.original_word:
            embeddings = torch.nn.functional.embedding(corrupted.originals, encoder.word_embeddings)
        else:
            embeddings = torch.nn.functional.embedding(corrupted.input_ids, encoder.word_embeddings)
        constant = self._config.stop_gradient == StopGradient.keys_and_embeddings
        return embeddings.detach() if constant else embeddings

    def draw(self, flat_A: Tensor | None, corrupted: Corrupted, rank: int, ranks: int) -> tuple[Tensor, Tensor]:
        """Return positives ``(A,)`` and negatives ``(A, K)``, flat in the pool; anchors None: all."""
        config, (rows, length) = self._config, corrupted.input_ids.shape
        device = corrupted.input_ids.device
        if flat_A is None:
            flat_A = torch.arange(rows * length, device=device)
        row_A, column_A = flat_A // length, flat_A % length
        anchors = AnchorIndex(row_A + rank * rows, column_A, corrupted.epoch[row_A], corrupted.example[row_A])
        mask = corrupted.attention_mask
        if ranks > 1:  # gathered always: a rank cannot know whether another one has padding
            mask = torch.ones_like(corrupted.selected) if mask is None else mask
            mask = gather_rows(mask, ranks)
        real = RealTokens(rows * ranks, length, mask, device)
        matched = config.negative_positions == NegativePositions.position_matched
        draw = draw_matched_negatives if matched else draw_negatives
        positive_A = draw_positives(anchors, real, self._positives, config.window, config.edges)
        return positive_A, draw(anchors, real, self._negatives, config.negatives)


def normalised_semantics(hidden_states: Tensor, embeddings: Tensor) -> Tensor:
    """Return ``(N·L, d)`` unit vectors of ``g = h - e``, in float32 (float64 for float64 inputs)."""
    wide = torch.float64 if hidden_states.dtype == torch.float64 else torch.float32
    semantics = hidden_states.to(wide) - embeddings.to(wide)
    return torch.nn.functional.normalize(semantics.flatten(0, -2), dim=-1, eps=SMALLEST_NORM)


def token_contrast_loss(
    hidden_states: Tensor,
    embeddings: Tensor,
    positive_index: Tensor,
    negative_index: Tensor,
    anchors: Tensor | None = None,
    temperature: float = 0.07,
) -> Tensor:
    """Return the mean contrastive loss for draws that are given; keys receive no gradient.

    Args:
        hidden_states: ``(N, L, d)``.
        embeddings: ``(N, L, d)``.
        positive_index: ``(A,)`` into the flattened N·L positions.
        negative_index: ``(A, K)`` into the same.
        anchors: ``(A,)`` into the same; None for all positions in order.
        temperature: what cosines are divided by.

    Returns:
        scalar float32 (float64 for float64 inputs); 0 where there are no anchors.
    """
    units_Md = normalised_semantics(hidden_states, embeddings)
    queries_Ad = units_Md if anchors is None else units_Md.index_select(0, anchors)
    loss, _ = info_nce(queries_Ad, units_Md.detach(), positive_index, negative_index, temperature)
    return loss / max(len(positive_index), 1)


def _check(config: TokenContrastConfig) -> None:
    if config.negatives < 1:
        raise ValueError(f"objective.tc.negatives={config.negatives}: at least 1 negative is needed")
    if config.window < 3 or config.window % 2 == 0:
        raise ValueError(f"objective.tc.window={config.window}: the full width is odd and at least 3")
    if not config.temperature > 0:
        raise ValueError(f"objective.tc.temperature={config.temperature}: a temperature is above 0")


def _flat_anchors(corrupted: Corrupted, anchors: Anchors) -> Tensor | None:
    """Return ``(A,)`` flat positions, or None if every position is an anchor."""
    if anchors == Anchors.all and corrupted.attention_mask is None and corrupted.input_ids.shape[1] > 1:
        return None  # known without waiting for the device
    return corrupted.anchors.flatten().nonzero().squeeze(1)
