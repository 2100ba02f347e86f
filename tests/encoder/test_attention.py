from __future__ import annotations

import pytest
import torch

from taco_cli.config.schema import Attention
from taco_cli.encoder.attention import LONGEST_EXPLICIT, attend, choose_attention
from taco_cli.encoder.dropout import Dropout


@pytest.mark.parametrize("masked", [False, True])
def test_explicit_and_fused_attention_agree(masked: bool) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 10, 8, requires_grad=True) for _ in range(3)]
    mask = torch.zeros(2, 1, 1, 10)
    mask[1, ..., 7:] = torch.finfo(torch.bfloat16).min
    direction = torch.randn(2, 10, 24)

    def run(attention: Attention) -> list[torch.Tensor]:
        mixed = attend(*inputs, mask if masked else None, attention, Dropout(False), 0.0)
        return [mixed, *torch.autograd.grad((mixed * direction).sum(), inputs)]

    for mine, reference in zip(run(Attention.eager), run(Attention.sdpa), strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-5, atol=1e-6)


def test_auto_chooses_by_device_and_length() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert choose_attention(Attention.auto, cpu, 128) is Attention.eager
    assert choose_attention(Attention.auto, cpu, LONGEST_EXPLICIT + 1) is Attention.sdpa
    assert choose_attention(Attention.auto, gpu, 128) is Attention.sdpa
    assert choose_attention(Attention.eager, gpu, 4096) is Attention.eager
