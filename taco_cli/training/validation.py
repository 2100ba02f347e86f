"""The measurement that is the same for every arm: fixed sequences, masks and draws."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from taco_cli.config.schema import TokenContrastConfig
from taco_cli.encoder import Encoder
from taco_cli.machine import Machine
from taco_cli.objectives import (
    Batch,
    SpecialTokens,
    content_mask,
    similarities,
    similarity_sums,
    validation_sums,
)

POOL = 64  # sequences that give each other negatives in val/tc, for every run alike
SEED = 0  # not the run's: replicates are judged by the same masks


class Validation:
    """Measures an encoder on held-out sequences ``(n, L)``."""

    def __init__(self, sequences: Tensor, special: SpecialTokens, tc: TokenContrastConfig, machine: Machine) -> None:
        pools = max(1, round(len(sequences) / POOL))
        self._batches = [
            Batch(ids, example, torch.zeros_like(example))
            for ids, example in zip(
                sequences.tensor_split(pools), torch.arange(len(sequences)).tensor_split(pools), strict=True
            )
        ]
        self._special, self._tc, self._machine = special, tc, machine

    @torch.no_grad()
    def __call__(self, encoder: Encoder) -> dict[str, float]:
        """Return ``val/mlm`` and ``val/tc`` (nats), their accuracies, and the mean cosines of unmasked states."""
        device = next(encoder.parameters()).device
        training = encoder.training
        encoder.eval()
        sums: Counter[str] = Counter()
        similarity: dict[str, Tensor] = {}
        for held_out in self._batches:
            batch = Batch(held_out.input_ids.to(device), held_out.example.to(device), held_out.epoch.to(device))
            with self._machine.autocast():
                measured = validation_sums(encoder, batch, self._special, SEED, self._tc)
                states = encoder(batch.input_ids).hidden_states
            sums.update({name: float(value) for name, value in measured.items()})
            for name, value in similarity_sums(states, content_mask(batch, self._special)).items():
                similarity[name] = similarity[name] + value if name in similarity else value
        encoder.train(training)
        return _metrics(sums) | {f"val/similarity_{name}": value for name, value in similarities(similarity).items()}


def _metrics(sums: Counter[str]) -> dict[str, float]:
    metrics = {
        "val/mlm": sums["mlm_loss"] / sums["mlm_count"],
        "val/mlm_accuracy": sums["mlm_hits"] / sums["mlm_count"],
    }
    if sums["tc_count"]:  # one sequence has no negatives
        metrics |= {
            "val/tc": sums["tc_loss"] / sums["tc_count"],
            "val/tc_accuracy": sums["tc_hits"] / sums["tc_count"],
        }
    return metrics
