"""InfoNCE over given indices, in memory that grows with the number of negatives by their indices alone.

Shapes: A anchors, C = 1 + K candidates of an anchor (its positive first), M keys, d hidden units.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

GATHERED_ELEMENTS = 2**25  # of keys held at once where there is no sampled product: 128 MiB in float32


def info_nce(
    queries_Ad: Tensor, keys_Md: Tensor, positive_A: Tensor, negative_AK: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return the summed loss and how many anchors score their positive above all negatives.

    Queries and keys are unit vectors in float32 or float64, and so are scores, logits and log-softmax: a
    bfloat16 cosine near 1 has steps of 0.004, which a small temperature makes large. Gradients are computed
    together with the loss and only scaled in the backward pass.
    """
    candidates_AC = torch.cat((positive_A[:, None], negative_AK), 1)
    loss, hits = _InfoNCE.apply(  # type: ignore[no-untyped-call]
        queries_Ad, keys_Md, candidates_AC, temperature, torch.is_grad_enabled()
    )
    return loss, hits


class _InfoNCE(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries_Ad: Tensor, keys_Md: Tensor, candidates_AC: Tensor, temperature: float, grad: bool
    ) -> tuple[Tensor, Tensor]:
        scores_AC = sampled_products(queries_Ad, keys_Md, candidates_AC)
        hits = (scores_AC[:, 0] > scores_AC[:, 1:].amax(1)).sum()
        log_p_AC = scores_AC.div_(temperature).log_softmax(1)
        loss = -log_p_AC[:, 0].sum()
        grads: list[Tensor | None] = [None, None]
        if grad:
            delta_AC = log_p_AC.exp_()  # gradient of the loss in the logits: softmax minus one-hot
            delta_AC[:, 0] -= 1
            if ctx.needs_input_grad[0]:
                grads[0] = weighted_sums(keys_Md, candidates_AC, delta_AC)
            if ctx.needs_input_grad[1]:
                grads[1] = scattered_sums(queries_Ad, candidates_AC, delta_AC, len(keys_Md))
        ctx.save_for_backward(*grads)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(hits)
        return loss, hits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _hits: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_loss / ctx.temperature
        return *(None if grad is None else grad * scale for grad in ctx.saved_tensors), None, None, None


def sampled_products(queries_Ad: Tensor, keys_Md: Tensor, candidates_AC: Tensor) -> Tensor:
    """Return ``(A, C)``: the product of each query with each of its candidates.

    On the CPU torch's sampled product of a sparse pattern reads every key where it lies; elsewhere, and where there are
    more candidates than keys, which no pattern holds, keys are gathered, as many anchors at a time as fit.
    """
    anchors, count = candidates_AC.shape
    if queries_Ad.device.type == "cpu" and anchors and count <= len(keys_Md):
        rows = torch.arange(0, anchors * count + 1, count)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            pattern = torch.sparse_csr_tensor(
                rows,
                candidates_AC.flatten(),
                queries_Ad.new_zeros(anchors * count),
                (anchors, len(keys_Md)),
                check_invariants=False,
            )
        sampled = torch.sparse.sampled_addmm(pattern, queries_Ad, keys_Md.T, beta=0.0)
        products: Tensor = sampled.values().view(anchors, count)
        return products
    return gathered_products(queries_Ad, keys_Md, candidates_AC)


def gathered_products(queries_Ad: Tensor, keys_Md: Tensor, candidates_AC: Tensor) -> Tensor:
    """Return what :func:`sampled_products` does, by gathering keys."""
    chunk = max(1, GATHERED_ELEMENTS // (candidates_AC.shape[1] * keys_Md.shape[1]))
    parts = zip(torch.split(queries_Ad, chunk), torch.split(candidates_AC, chunk), strict=True)
    with torch.autocast(queries_Ad.device.type, enabled=False):
        products = [torch.bmm(keys_Md[index], queries[:, :, None]) for queries, index in parts]
    return torch.cat(products)[:, :, 0]


def weighted_sums(keys_Md: Tensor, candidates_AC: Tensor, weights_AC: Tensor) -> Tensor:
    """Return ``(A, d)``: for each anchor the weighted sum of its candidates."""
    return embedding_bag(candidates_AC, keys_Md, per_sample_weights=weights_AC, mode="sum")


def scattered_sums(queries_Ad: Tensor, candidates_AC: Tensor, weights_AC: Tensor, keys: int) -> Tensor:
    """Return ``(M, d)``: for each key the weighted sum of the anchors it is a candidate of."""
    order = candidates_AC.flatten().argsort()
    ends = torch.bincount(candidates_AC.flatten(), minlength=keys).cumsum(0)
    starts = torch.nn.functional.pad(ends[:-1], (1, 0))
    anchor = order // candidates_AC.shape[1]
    weights = weights_AC.flatten()[order]
    return embedding_bag(anchor, queries_Ad, starts, per_sample_weights=weights, mode="sum")
