"""Masked language modelling: only what is predicted is decoded (method, section 2)."""

from __future__ import annotations

from torch import Tensor

from taco_cli.config.schema import ObjectiveConfig
from taco_cli.objectives.batch import Corrupted, Encoder, EncoderOutput
from taco_cli.objectives.cross_entropy import cross_entropy_and_hits, sum_cross_entropy

__all__ = ["MaskedLM", "predict_originals", "sum_cross_entropy"]


class MaskedLM:
    """Cross-entropy of the original token at the selected positions."""

    def __init__(self, config: ObjectiveConfig, seed: int) -> None:
        del config, seed

    def count(self, corrupted: Corrupted) -> Tensor:
        """Return the number of predictions."""
        return corrupted.selected.sum()

    def sum(self, encoder: Encoder, output: EncoderOutput, corrupted: Corrupted) -> Tensor:
        """Return the summed cross-entropy."""
        return predict_originals(encoder, output, corrupted, corrupted.selected)[0]


def predict_originals(
    encoder: Encoder,
    output: EncoderOutput,
    corrupted: Corrupted,
    where_NL: Tensor,
    count_hits: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return summed cross-entropy and hits of the originals at the positions named, the only ones decoded."""
    index_P = where_NL.flatten().nonzero().squeeze(1)
    states_Pd = output.hidden_states.flatten(0, 1).index_select(0, index_P)
    labels_P = corrupted.originals.flatten()[index_P]
    return cross_entropy_and_hits(
        encoder.predict(states_Pd),
        encoder.decoder_weight,
        encoder.decoder_bias,
        labels_P,
        count_hits=count_hits,
    )
