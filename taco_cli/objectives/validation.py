"""The same measurement for every arm: fixed masks, fixed draws, no gradient (method, sections 4 and 7).

Shapes: N sequences of L tokens, d hidden units.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import torch
from torch import Tensor

from taco_cli.config.schema import Anchors, MaskingConfig, ObjectiveConfig, Pool, TokenContrastConfig
from taco_cli.objectives.batch import Batch, Corrupted, Encoder, EncoderOutput, SpecialTokens
from taco_cli.objectives.corruption import Corruption
from taco_cli.objectives.masked_lm import predict_originals
from taco_cli.objectives.token_contrast import TokenContrast

logger = logging.getLogger(__name__)

PUBLISHED_MASKING = MaskingConfig(rate=0.15, mask=0.8, random=0.1)


@torch.no_grad()
def validation_sums(
    encoder: Encoder, batch: Batch, special: SpecialTokens, seed: int, tc: TokenContrastConfig
) -> dict[str, Tensor]:
    """Return sums and counts of MLM and TC on a batch; add them over batches, then divide.

    Masks are the published ones (15 %, 80/10/10) and, like the draws of the contrast, a function of
    (seed, example, position) in streams of their own, whatever the arm trains on. The contrast takes ``tc``'s
    negatives, window, temperature and embedding, every position as anchor, and the batch as its pool.
    Put the encoder into evaluation mode before.

    Returns:
        scalars ``mlm_loss``, ``mlm_hits``, ``mlm_count``, ``tc_loss``, ``tc_hits`` (the positive scores
        above all negatives), ``tc_count``. A batch of one sequence has no negatives: its ``tc_count`` is 0,
        with a warning.
    """
    batch = replace(batch, epoch=torch.zeros_like(batch.epoch))
    corrupted = Corruption(PUBLISHED_MASKING, special, seed, stream="validation/masking")(batch)
    output = encoder(corrupted.input_ids, corrupted.attention_mask)
    loss, hits = predict_originals(encoder, output, corrupted, corrupted.selected, count_hits=True)
    sums = {"mlm_loss": loss, "mlm_hits": hits, "mlm_count": corrupted.selected.sum()}
    return sums | _contrast_sums(encoder, output, corrupted, seed, tc)


def _contrast_sums(
    encoder: Encoder, output: EncoderOutput, corrupted: Corrupted, seed: int, tc: TokenContrastConfig
) -> dict[str, Tensor]:
    if len(corrupted.input_ids) < 2:
        logger.warning("a validation batch of one sequence has no negatives: it is left out of val/tc")
        zero = corrupted.example.new_zeros(())
        return {"tc_loss": zero.float(), "tc_hits": zero, "tc_count": zero}
    config = ObjectiveConfig(tc=replace(tc, anchors=Anchors.all, pool=Pool.rank))
    term = TokenContrast(config, seed, stream="validation/tc")
    loss, hits = term.sum_and_hits(encoder, output, corrupted)
    return {"tc_loss": loss, "tc_hits": hits, "tc_count": term.count(corrupted)}


def content_mask(batch: Batch, special: SpecialTokens) -> Tensor:
    """Return ``(N, L)`` bool: true on words, false on special tokens and padding."""
    return Corruption(PUBLISHED_MASKING, special, seed=0).eligible(batch)


@torch.no_grad()
def similarity_sums(states_NLd: Tensor, tokens_NL: Tensor) -> dict[str, Tensor]:
    """Return what :func:`similarities` needs of a batch; add it over batches (method, section 7).

    Args:
        states_NLd: hidden states (or any other vectors).
        tokens_NL: bool, the tokens that count: neither special nor padding.

    Returns:
        float64 ``intra`` (summed over the sequences of two tokens or more), ``sequences`` (their number),
        ``direction`` ``(d,)`` (sum of all unit vectors), ``own`` (sum over sequences of the squared norm of
        theirs), ``tokens`` and ``own_pairs`` (sum of squared token counts).
    """
    units_NLd = torch.nn.functional.normalize(states_NLd.float(), dim=-1) * tokens_NL[..., None]
    direction_Nd = units_NLd.sum(1, dtype=torch.float64)
    tokens_N = tokens_NL.sum(1).double()
    own_N, pairs_N = direction_Nd.square().sum(1), tokens_N * (tokens_N - 1)
    return {
        "intra": ((own_N - tokens_N) / pairs_N.clamp(min=1) * (pairs_N > 0)).sum(),
        "sequences": (pairs_N > 0).sum().double(),
        "direction": direction_Nd.sum(0),
        "own": own_N.sum(),
        "tokens": tokens_N.sum(),
        "own_pairs": tokens_N.square().sum(),
    }


def similarities(sums: dict[str, Tensor]) -> dict[str, float]:
    """Return mean cosines ``intra`` (in one sequence) and ``inter`` (of two); NaN where there is no pair."""
    intra = sums["intra"] / sums["sequences"]
    inter = (sums["direction"].square().sum() - sums["own"]) / (sums["tokens"].square() - sums["own_pairs"])
    return {"intra": float(intra), "inter": float(inter)}
