"""Cross-entropy through a large decoder, without ever holding all logits.

Shapes: P predicted positions, V vocabulary, d hidden units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 640  # positions whose logits exist at once; the 15 % of 32 x 128 tokens are one chunk
BLOCK_CPU = 2**18  # logits in float32 at once: 1 MiB, within a core's cache
BLOCK_OTHER = 2**26  # elsewhere: 256 MiB


def sum_cross_entropy(
    states_Pd: Tensor,
    decoder_weight_Vd: Tensor,
    decoder_bias_V: Tensor | None,
    labels_P: Tensor,
    chunk: int = CHUNK,
) -> Tensor:
    """Return the summed cross-entropy of ``labels`` given ``states @ weight.T + bias``.

    Logits exist for ``chunk`` positions at a time. Gradients are computed together with the loss and only
    scaled in the backward pass. Matrix products run in the autocast type, log-softmax in float32 (float64
    for float64 inputs).

    Returns:
        scalar float32 (float64); zero for no positions.
    """
    return cross_entropy_and_hits(states_Pd, decoder_weight_Vd, decoder_bias_V, labels_P, chunk, False)[0]


def cross_entropy_and_hits(
    states_Pd: Tensor,
    decoder_weight_Vd: Tensor,
    decoder_bias_V: Tensor | None,
    labels_P: Tensor,
    chunk: int = CHUNK,
    count_hits: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return :func:`sum_cross_entropy` and how many labels have the largest logit (0 if not counted)."""
    loss, hits = _SumCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states_Pd, decoder_weight_Vd, decoder_bias_V, labels_P, chunk, torch.is_grad_enabled(), count_hits
    )
    return loss, hits


class _SumCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        chunk: int,
        grad: bool,
        count_hits: bool,
    ) -> tuple[Tensor, Tensor]:
        needs = [grad and need for need in ctx.needs_input_grad[:3]]
        dtype = compute_dtype(states, weight)
        weight_c = weight.to(dtype)
        grad_states = torch.zeros_like(states) if needs[0] else None
        grad_weight: Tensor | None = None
        softmax = _SoftmaxPass(weight_c, bias, needs, count_hits)
        with torch.autocast(states.device.type, enabled=False):
            for rows in (slice(start, start + chunk) for start in range(0, len(labels), chunk)):
                states_c = states[rows].to(dtype)
                delta = softmax(states_c @ weight_c.T, labels[rows, None])
                if grad_states is not None:
                    grad_states[rows] = delta @ weight_c
                if needs[1]:
                    part = delta.T @ states_c
                    # A single chunk's gradient stays in the type it was computed in until it is scaled.
                    grad_weight = part if grad_weight is None else grad_weight.to(softmax.wide).add_(part)
                del delta
        if needs[1] and grad_weight is None:
            grad_weight = torch.zeros_like(weight)
        ctx.save_for_backward(grad_states, grad_weight, softmax.grad_bias)
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in (states, weight, bias)]
        ctx.mark_non_differentiable(softmax.hits)
        return softmax.loss, softmax.hits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _hits: Tensor) -> tuple[Tensor | None, ...]:
        grads = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        return *(_scaled(grad, grad_loss, dtype) for grad, dtype in grads), None, None, None, None


class _SoftmaxPass:
    """Turns a chunk's logits into the gradient of the loss in them, in place, and adds up loss and hits.

    The pass runs over blocks that stay in the processor's cache, in buffers that are used again: what
    costs time here is memory traffic.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, needs: list[bool], count_hits: bool) -> None:
        self.wide = torch.promote_types(weight.dtype, torch.float32)
        self._bias = None if bias is None else bias.to(self.wide)
        self._needs_delta, self._count_hits = any(needs), count_hits
        self.loss = weight.new_zeros((), dtype=self.wide)
        self.hits = torch.zeros((), dtype=torch.int64, device=weight.device)
        self.grad_bias = torch.zeros_like(self._bias) if needs[2] and self._bias is not None else None
        words = weight.shape[0]
        elements = BLOCK_CPU if weight.device.type == "cpu" else BLOCK_OTHER
        self._rows = max(1, elements // words)
        self._buffers = weight.new_empty((2, 0, words), dtype=self.wide)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        blocks = zip(torch.split(logits, self._rows), torch.split(labels, self._rows), strict=True)
        for logits_b, labels_b in blocks:
            self._block(logits_b, labels_b)
        return logits

    def _block(self, logits: Tensor, labels: Tensor) -> None:
        if self._buffers.shape[1] < len(logits):
            self._buffers = self._buffers.new_empty((2, *logits.shape))
        wide, log_p = self._buffers[0, : len(logits)], self._buffers[1, : len(logits)]
        if self._bias is None:
            wide.copy_(logits)
        else:
            torch.add(logits, self._bias, out=wide)
        torch.log_softmax(wide, 1, out=log_p)
        self.loss -= log_p.gather(1, labels).sum()
        if self._count_hits:
            self.hits += (log_p.argmax(1, keepdim=True) == labels).sum()
        if self._needs_delta:
            delta = log_p.exp_()
            delta.scatter_add_(1, labels, delta.new_full((), -1.0).expand_as(labels))
            if self.grad_bias is not None:
                self.grad_bias += delta.sum(0)
            logits.copy_(delta)


def _scaled(grad: Tensor | None, scale: Tensor, dtype: torch.dtype | None) -> Tensor | None:
    """Return ``grad * scale`` as ``dtype``; the stored gradient stays, for a second backward pass."""
    if grad is None:
        return None
    return grad * scale if grad.dtype == dtype else grad.to(dtype).mul_(scale)


def compute_dtype(*tensors: Tensor) -> torch.dtype:
    """Return the type matrix products of these tensors run in: autocast's, or the widest of theirs."""
    device = tensors[0].device.type
    if torch.is_autocast_enabled(device) and tensors[0].dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype
