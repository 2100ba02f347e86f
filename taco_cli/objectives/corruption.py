"""Which tokens are predicted, and what the encoder sees in their place (method, section 2).

A mask is a pure function of (seed, epoch, example, position): it knows nothing of the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from taco_cli.config.schema import Anchors, MaskingConfig
from taco_cli.objectives.batch import IGNORE, Batch, Corrupted, SpecialTokens
from taco_cli.objectives.sampling import anchor_mask
from taco_cli.randomness import below, random_bits, stream_key, uniform


class Corruption:
    """Selects ``rate`` of the tokens; of those, shares become ``[MASK]``, a random token, or stay.

    Selection, choice and replacement are three independent draws. Special tokens and padding are
    never selected; a replacement is uniform over the vocabulary without the special tokens, so it
    is the original token again with probability 1 / words.

    Raises:
        ValueError: shares that are no shares, or a vocabulary of special tokens alone.
    """

    def __init__(self, masking: MaskingConfig, special: SpecialTokens, seed: int, stream: str = "masking") -> None:
        _check(masking)
        self._masking = masking
        self._mask_id = special.mask_id
        self._special_V = _special_table(special)
        self._words = (~self._special_V).nonzero().squeeze(1)
        if not len(self._words):
            raise ValueError(
                f"all {special.vocab_size} ids of the vocabulary are special tokens: use another tokenizer"
            )
        self._select, self._choose, self._replace = (
            stream_key(seed, f"{stream}/{draw}") for draw in ("select", "choose", "replace")
        )

    def __call__(self, batch: Batch, anchors: Anchors = Anchors.all) -> Corrupted:
        """Corrupt a batch; runs on the batch's device."""
        ids_NL = batch.input_ids
        position_L = torch.arange(ids_NL.shape[1], device=ids_NL.device)
        index = (batch.epoch[:, None], batch.example[:, None], position_L)
        eligible_NL = self.eligible(batch)
        selected_NL = eligible_NL & (uniform(random_bits(self._select, *index)) < self._masking.rate)
        return Corrupted(
            input_ids=torch.where(selected_NL, self._seen(ids_NL, index), ids_NL),
            labels=ids_NL.masked_fill(~selected_NL, IGNORE),
            selected=selected_NL,
            eligible=eligible_NL,
            originals=ids_NL,
            anchors=anchor_mask(selected_NL, batch.attention_mask, anchors),
            example=batch.example,
            epoch=batch.epoch,
            attention_mask=batch.attention_mask,
        )

    def eligible(self, batch: Batch) -> Tensor:
        """Return ``(N, L)`` bool: true on words, false on special tokens and padding."""
        self._special_V = self._special_V.to(batch.input_ids.device)
        eligible_NL = ~self._special_V[batch.input_ids]
        return eligible_NL if batch.attention_mask is None else eligible_NL & batch.attention_mask

    def _seen(self, ids_NL: Tensor, index: tuple[Tensor, ...]) -> Tensor:
        """What each token would become if it were selected."""
        self._words = self._words.to(ids_NL.device)
        choice_NL = uniform(random_bits(self._choose, *index))
        word_NL = self._words[below(random_bits(self._replace, *index), len(self._words))]
        mask, random = self._masking.mask, self._masking.random
        changed_NL = torch.where(choice_NL < mask + random, word_NL, ids_NL)
        return changed_NL.masked_fill(choice_NL < mask, self._mask_id)


def _special_table(special: SpecialTokens) -> Tensor:
    table_V = torch.zeros(special.vocab_size, dtype=torch.bool)
    table_V[[*special.special_ids, special.mask_id, special.pad_id]] = True
    return table_V


def _check(masking: MaskingConfig) -> None:
    for key in ("rate", "mask", "random"):
        share = getattr(masking, key)
        if not 0 <= share <= 1:
            raise ValueError(f"masking.{key}={share}: a share is between 0 and 1")
    if masking.mask + masking.random > 1 + 1e-6:
        raise ValueError(
            f"masking.mask={masking.mask} and masking.random={masking.random} are shares of the selected"
            " tokens: their sum is at most 1, the rest stays as it is"
        )
