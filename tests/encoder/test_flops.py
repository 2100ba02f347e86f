from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from taco_cli.config.schema import Attention
from taco_cli.encoder import Encoder, model_flops, parameter_count


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_flops_are_those_that_torch_counts(build: Callable[..., Encoder], architecture: str) -> None:
    encoder = build(architecture, attention=Attention.eager, dropout=0.0)
    ids = torch.randint(5, 64, (2, 24))
    with FlopCounterMode(display=False) as counter:
        states = encoder(ids).hidden_states.flatten(0, 1)[:7]
        encoder.logits(states).sum().backward()
    assert model_flops(encoder, tokens=48, sequence_length=24, predicted=7) == pytest.approx(
        counter.get_total_flops(), rel=1e-6
    )


def test_parameters_are_counted_once(build: Callable[..., Encoder]) -> None:
    count = parameter_count(build("bert"))
    layer = 4 * (32 * 32 + 32) + (32 * 48 + 48) + (48 * 32 + 32) + 4 * 32
    head = (32 * 32 + 32) + 2 * 32 + 64  # transform, its norm, the decoder's bias
    assert count.without_embeddings == 2 * layer + 2 * 32 + head
    assert count.total == count.without_embeddings + (64 + 40 + 2) * 32
