"""From configuration to an objective: which terms are active, and one encoder call for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Protocol

from torch import Tensor

from taco_cli.config.schema import MaskingConfig, ObjectiveConfig
from taco_cli.objectives.batch import Batch, Corrupted, Encoder, EncoderOutput, SpecialTokens
from taco_cli.objectives.corruption import Corruption
from taco_cli.objectives.masked_lm import MaskedLM
from taco_cli.objectives.token_contrast import TokenContrast
from taco_cli.objectives.token_prediction import TokenPrediction


class Term(Protocol):
    """One summand of the loss: its mean is ``sum / count``, over any number of micro-batches and ranks."""

    def count(self, corrupted: Corrupted) -> Tensor:
        """Return the number of predictions, known before any forward pass."""

    def sum(self, encoder: Encoder, output: EncoderOutput, corrupted: Corrupted) -> Tensor:
        """Return the loss summed over the predictions."""


# A new objective: its file, its YAML, its line here (and its settings in config/schema.py).
TERMS: dict[str, Callable[[ObjectiveConfig, int], Term]] = {
    "mlm": MaskedLM,
    "tc": TokenContrast,
    "tp": TokenPrediction,
}


class Objective:
    """What the encoder sees and what it is asked.

    ``loss = sum over terms of weights[term] * sum / count``; sums and counts of micro-batches and ranks
    are added before the division.
    """

    def __init__(self, objective: ObjectiveConfig, masking: MaskingConfig, special: SpecialTokens, seed: int) -> None:
        self.weights = active_weights(objective)
        self.terms = {name: TERMS[name](objective, seed) for name in self.weights}
        self._anchors = objective.tc.anchors
        self._corruption = Corruption(masking, special, seed)

    def corrupt(self, batch: Batch) -> Corrupted:
        """Mask a batch: a pure function of (seed, epoch, example, position)."""
        return self._corruption(batch, self._anchors)

    def counts(self, corrupted: Corrupted) -> dict[str, Tensor]:
        """Return the number of predictions of each active term: scalar int64 on the device."""
        return {name: term.count(corrupted) for name, term in self.terms.items()}

    def sums(self, encoder: Encoder, corrupted: Corrupted) -> dict[str, Tensor]:
        """Return each active term summed over its predictions: scalar, differentiable; one encoder call.

        Raises:
            ValueError: a contrast within a micro-batch of one sequence.
        """
        output = encoder(corrupted.input_ids, corrupted.attention_mask)
        return {name: term.sum(encoder, output, corrupted) for name, term in self.terms.items()}


def build_objective(objective: ObjectiveConfig, masking: MaskingConfig, special: SpecialTokens, seed: int) -> Objective:
    """Build the objective of a run.

    Raises:
        ValueError: no active term, a term that is not known, a negative weight, or masking shares
            that are no shares.
    """
    return Objective(objective, masking, special, seed)


def active_weights(objective: ObjectiveConfig) -> dict[str, float]:
    """Return the weights above 0 by term."""
    names = [field.name for field in fields(objective) if field.name != "name"]
    weights = {name: float(getattr(objective, name).weight) for name in names}
    for name, weight in weights.items():
        if not 0 <= weight < float("inf"):
            raise ValueError(f"objective.{name}.weight={weight}: a weight is a number from 0 up")
        if weight and name not in TERMS:
            raise ValueError(f"objective.{name} is not known; known terms: {', '.join(TERMS)}")
    active = {name: weight for name, weight in weights.items() if weight}
    if not active:
        keys = ", ".join(f"objective.{name}.weight" for name in weights)
        raise ValueError(f"the objective has nothing to learn: set one of {keys} above 0")
    return active
