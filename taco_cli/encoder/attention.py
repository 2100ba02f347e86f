"""Self-attention over a packed query, key and value projection.

Explicit attention (two batched products and a softmax) has a much faster backward pass on the CPU than torch's
fused kernel at the lengths of pre-training; on a GPU the fused kernel is faster and saves memory.

Legend: N sequences, L positions, H heads, c channels of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from taco_cli.config.schema import Attention
from taco_cli.encoder.dropout import Dropout

# Beyond this the N x H x L x L scores of explicit attention outweigh what it saves.
LONGEST_EXPLICIT = 1024


def choose_attention(attention: Attention, device: torch.device, length: int) -> Attention:
    """Resolve ``auto``: explicit attention on the CPU up to 1,024 positions, torch's fused kernel otherwise."""
    if attention is not Attention.auto:
        return attention
    return Attention.eager if device.type == "cpu" and length <= LONGEST_EXPLICIT else Attention.sdpa


def attend(
    query_NHLc: Tensor,
    key_NHLc: Tensor,
    value_NHLc: Tensor,
    mask: Tensor | None,
    attention: Attention,
    dropout: Dropout,
    probability: float,
) -> Tensor:
    """Return ``(N, L, H * c)``; ``mask`` is additive, broadcasts to ``(N, H, L, L)``, None: every key is visible."""
    scale = query_NHLc.shape[-1] ** -0.5
    if attention is Attention.sdpa:
        mixed_NHLc = functional.scaled_dot_product_attention(
            query_NHLc,
            key_NHLc,
            value_NHLc,
            attn_mask=None if mask is None else mask.to(query_NHLc.dtype),
            dropout_p=probability if dropout.active else 0.0,
        )
    else:
        scores_NHLL = (query_NHLc * scale) @ key_NHLc.transpose(-1, -2)
        if mask is not None:
            scores_NHLL = scores_NHLL + mask
        weights_NHLL = scores_NHLL.softmax(-1, dtype=torch.float32).to(value_NHLc.dtype)
        mixed_NHLc = dropout(weights_NHLL, probability) @ value_NHLc
    return mixed_NHLc.transpose(1, 2).flatten(2)
