"""Objectives: what the encoder sees, and what it is asked."""

from taco_cli.objectives.batch import (
    IGNORE,
    Batch,
    Corrupted,
    Encoder,
    EncoderOutput,
    SpecialTokens,
)
from taco_cli.objectives.build import TERMS, Objective, Term, build_objective
from taco_cli.objectives.corruption import Corruption
from taco_cli.objectives.masked_lm import sum_cross_entropy
from taco_cli.objectives.token_contrast import token_contrast_loss
from taco_cli.objectives.validation import content_mask, similarities, similarity_sums, validation_sums

__all__ = [
    "IGNORE",
    "TERMS",
    "Batch",
    "Corrupted",
    "Corruption",
    "Encoder",
    "EncoderOutput",
    "Objective",
    "SpecialTokens",
    "Term",
    "build_objective",
    "content_mask",
    "similarities",
    "similarity_sums",
    "sum_cross_entropy",
    "token_contrast_loss",
    "validation_sums",
]
