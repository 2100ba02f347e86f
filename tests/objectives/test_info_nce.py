"""InfoNCE over indices: both ways to take products, gradients, memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from taco_cli.objectives import info_nce as module
from taco_cli.objectives.info_nce import (
    gathered_products,
    info_nce,
    sampled_products,
    scattered_sums,
    weighted_sums,
)
from tests.objectives.memory import LargestTensor


def case(anchors: int = 9, keys: int = 13, negatives: int = 4, hidden: int = 5, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    queries, others = (
        normalize(torch.randn(size, hidden, generator=generator, dtype=torch.float64), dim=1)
        for size in (anchors, keys)
    )
    candidates = torch.randint(keys, (anchors, 1 + negatives), generator=generator)
    candidates[0] = candidates[0, 0]  # a candidate may come up again
    return [queries, others, candidates]


@pytest.mark.parametrize("negatives", [4, 12, 13, 40])  # the last two: more candidates than there are keys
def test_products_agree(negatives: int) -> None:
    queries, keys, candidates = case(negatives=negatives)
    expected = torch.einsum("ad,acd->ac", queries, keys[candidates])
    torch.testing.assert_close(sampled_products(queries, keys, candidates), expected)
    torch.testing.assert_close(gathered_products(queries, keys, candidates), expected)


def test_gathering_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, keys, candidates = case()
    whole = gathered_products(queries, keys, candidates)
    monkeypatch.setattr(module, "GATHERED_ELEMENTS", 2 * candidates.shape[1] * keys.shape[1])
    torch.testing.assert_close(gathered_products(queries, keys, candidates), whole)


def test_sums_agree() -> None:
    queries, keys, candidates = case()
    weights = torch.linspace(-1, 1, candidates.numel(), dtype=torch.float64).view(candidates.shape)
    expected = torch.einsum("ac,acd->ad", weights, keys[candidates])
    torch.testing.assert_close(weighted_sums(keys, candidates, weights), expected)
    scattered = torch.zeros_like(keys).index_add(
        0, candidates.flatten(), (weights[..., None] * queries[:, None]).flatten(0, 1)
    )
    torch.testing.assert_close(scattered_sums(queries, candidates, weights, len(keys)), scattered)


def test_gradients_of_queries_and_keys() -> None:
    queries, keys, candidates = case()
    inputs = (queries.requires_grad_(), keys.requires_grad_())

    def loss(queries: Tensor, keys: Tensor) -> Tensor:
        return 3 * info_nce(queries, keys, candidates[:, 0], candidates[:, 1:], 0.5)[0]

    assert torch.autograd.gradcheck(loss, inputs)


def test_hits_ask_for_more_than_a_tie() -> None:
    keys = torch.eye(3)
    queries = torch.stack((keys[0], keys[0], keys[0]))
    positive = torch.tensor([0, 1, 0])
    negative = torch.tensor([[1, 2], [0, 2], [0, 2]])  # best, worse, tied
    assert int(info_nce(queries, keys, positive, negative, 0.07)[1]) == 1


def test_no_gradient_is_computed_when_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, keys, candidates = case()
    monkeypatch.setattr(module, "weighted_sums", None)
    monkeypatch.setattr(module, "scattered_sums", None)
    with torch.no_grad():
        loss, _ = info_nce(queries.requires_grad_(), keys, candidates[:, 0], candidates[:, 1:], 0.5)
    assert not loss.requires_grad


@pytest.mark.parametrize("attached", [False, True])
def test_memory_grows_with_negatives_by_scores_alone(attached: bool) -> None:
    hidden, anchors = 64, 40
    for negatives in (8, 32):
        queries, keys, candidates = (
            x.float() if x.is_floating_point() else x for x in case(anchors, 50, negatives, hidden)
        )
        queries.requires_grad_()
        keys.requires_grad_(attached)
        with LargestTensor() as largest:
            info_nce(queries, keys, candidates[:, 0], candidates[:, 1:], 0.07)[0].backward()
        # One vector per anchor or key, one score per candidate: never a vector per candidate.
        assert largest.elements <= max(50 * hidden, anchors * (1 + negatives))


def test_upstream_gradients_scale_and_repeat() -> None:
    queries, keys, candidates = case()
    queries.requires_grad_()
    loss, _ = info_nce(queries, keys, candidates[:, 0], candidates[:, 1:], 0.07)
    once = torch.autograd.grad(loss, queries, retain_graph=True)[0]
    scaled = torch.autograd.grad(loss, queries, torch.tensor(2.5, dtype=torch.float64), retain_graph=True)[0]
    torch.testing.assert_close(scaled, 2.5 * once)
    torch.testing.assert_close(torch.autograd.grad(loss, queries)[0], once)
