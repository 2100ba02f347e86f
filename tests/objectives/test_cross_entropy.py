"""The fused decoder: the same numbers as torch's cross-entropy, a chunk of logits at a time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from taco_cli.objectives import cross_entropy as module
from taco_cli.objectives.cross_entropy import cross_entropy_and_hits, sum_cross_entropy
from tests.objectives.memory import LargestTensor


def case(positions: int = 11, words: int = 17, hidden: int = 6, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    states, weight, bias = (
        torch.randn(size, generator=generator, dtype=dtype).requires_grad_()
        for size in ((positions, hidden), (words, hidden), (words,))
    )
    return [states, weight, bias, torch.randint(words, (positions,), generator=generator)]


def reference(states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    return functional.cross_entropy(functional.linear(states, weight, bias).float(), labels, reduction="sum")


@settings(deadline=None, max_examples=20)
@given(positions=st.integers(1, 20), chunk=st.integers(1, 30), with_bias=st.booleans())
def test_agrees_with_torch(positions: int, chunk: int, with_bias: bool) -> None:
    states, weight, bias, labels = case(positions)
    inputs = [states, weight, bias] if with_bias else [states, weight]
    logits = functional.linear(states, weight, bias if with_bias else None)
    expected = functional.cross_entropy(logits, labels, reduction="sum")
    loss, hits = cross_entropy_and_hits(states, weight, bias if with_bias else None, labels, chunk)
    torch.testing.assert_close(loss, expected)
    assert int(hits) == int((logits.argmax(1) == labels).sum())
    torch.testing.assert_close(torch.autograd.grad(loss / 3, inputs), torch.autograd.grad(expected / 3, inputs))


def test_blocks_within_a_chunk_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, bias, labels = case()
    whole = sum_cross_entropy(states, weight, bias, labels)
    monkeypatch.setattr(module, "BLOCK_CPU", 3 * 17)
    blocks = sum_cross_entropy(states, weight, bias, labels, chunk=7)
    torch.testing.assert_close(blocks, whole)
    torch.testing.assert_close(
        torch.autograd.grad(blocks, (states, weight, bias)),
        torch.autograd.grad(whole, (states, weight, bias)),
    )


@pytest.mark.parametrize("chunk", [4, 100])
def test_gradients(chunk: int) -> None:
    states, weight, bias, labels = case()
    assert torch.autograd.gradcheck(lambda *x: 2 * sum_cross_entropy(*x, labels, chunk), (states, weight, bias))


@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("chunk", [16, 1000])
def test_close_under_autocast(autocast: torch.dtype, chunk: int) -> None:
    states, weight, bias, labels = case(64, 300, 32, torch.float32)
    expected = reference(states, weight, bias, labels)
    with torch.autocast("cpu", dtype=autocast):
        loss = sum_cross_entropy(states, weight, bias, labels, chunk)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=5e-3, atol=0)
    gradients = torch.autograd.grad(loss, (states, weight, bias))
    for fast, exact in zip(gradients, torch.autograd.grad(expected, (states, weight, bias)), strict=True):
        assert fast.dtype == torch.float32
        assert (fast - exact).norm() < 0.02 * exact.norm()


def test_states_in_the_autocast_type_get_gradients_of_theirs() -> None:
    states, weight, bias, labels = case(dtype=torch.float32)
    half = states.detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        sum_cross_entropy(half, weight, bias, labels).backward()
    assert half.grad is not None
    assert half.grad.dtype == torch.bfloat16


def test_no_positions_give_zero_and_zero_gradients() -> None:
    states, weight, bias, labels = case()
    loss = sum_cross_entropy(states[:0], weight, bias, labels[:0])
    assert loss.item() == 0
    gradients = torch.autograd.grad(loss, (states, weight, bias))
    assert not any(gradient.any() for gradient in gradients)


def test_gradients_repeat_and_only_what_needs_one_gets_one() -> None:
    states, weight, bias, labels = case()
    loss = sum_cross_entropy(states, weight.detach(), bias, labels)
    first = torch.autograd.grad(loss, states, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(loss * 2, states)[0], 2 * first)


@pytest.mark.parametrize("grad", [True, False])
def test_logits_exist_for_a_chunk_at_a_time(grad: bool) -> None:
    states, weight, bias, labels = case(64, 100, 4)
    with LargestTensor() as largest, torch.set_grad_enabled(grad):
        loss = sum_cross_entropy(states, weight, bias, labels, chunk=8)
        if grad:
            loss.backward()
    assert loss.requires_grad == grad
    assert largest.elements <= 2 * 8 * 100  # two buffers of a block
