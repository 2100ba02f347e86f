"""Token prediction: the original token at the positions MLM leaves out (method, section 4, ``mlm_tp``)."""

from __future__ import annotations

from torch import Tensor

from taco_cli.config.schema import ObjectiveConfig
from taco_cli.objectives.batch import Corrupted, Encoder, EncoderOutput
from taco_cli.objectives.masked_lm import predict_originals


class TokenPrediction:
    """Cross-entropy of the original token at every word that was not selected: dense, no contrast."""

    def __init__(self, config: ObjectiveConfig, seed: int) -> None:
        del config, seed

    def count(self, corrupted: Corrupted) -> Tensor:
        """Return the number of predictions."""
        return _others(corrupted).sum()

    def sum(self, encoder: Encoder, output: EncoderOutput, corrupted: Corrupted) -> Tensor:
        """Return the summed cross-entropy."""
        return predict_originals(encoder, output, corrupted, _others(corrupted))[0]


def _others(corrupted: Corrupted) -> Tensor:
    return corrupted.eligible & ~corrupted.selected
