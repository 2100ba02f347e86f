"""Forward passes of the bodies over the parameters of the Hugging Face modules.

They compute what Hugging Face's own forward computes (tests compare them, gradients included) with fewer passes over
memory: one projection for queries, keys and values, no up-casts, no masks where there is no padding. Each returns
all hidden states: the embedding layer's output, then each layer's, the last one after the final norm.

Legend: N sequences, L positions, d hidden size, H heads, c channels of a head, i intermediate size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from taco_cli.config.schema import Attention
from taco_cli.encoder.attention import attend
from taco_cli.encoder.dropout import Dropout, Site

# (base model, input_ids, attention mask (N, L) bool or None, attention, dropout) -> hidden states
States = Callable[[Any, Tensor, Tensor | None, Attention, Dropout], list[Tensor]]
# (configuration, attention, N, L) -> where a forward pass drops elements, in its order
Sites = Callable[[Any, Attention, int, int], list[Site]]


def bert_sites(config: Any, attention: Attention, sequences: int, length: int) -> list[Site]:
    """Dropout of :func:`bert_states`: the embeddings; per layer the attention weights and two outputs."""
    output = Site(sequences * length * config.hidden_size, config.hidden_dropout_prob)
    weights = _weight_site(config, attention, sequences, length, config.attention_probs_dropout_prob)
    return _used([output] + [weights, output, output] * config.num_hidden_layers)


def modernbert_sites(config: Any, attention: Attention, sequences: int, length: int) -> list[Site]:
    """Dropout of :func:`modernbert_states`: the embeddings; per layer attention weights, output, inner states."""
    tokens = sequences * length
    layer = [
        _weight_site(config, attention, sequences, length, config.attention_dropout),
        Site(tokens * config.hidden_size, config.attention_dropout),
        Site(tokens * config.intermediate_size, config.mlp_dropout),
    ]
    embeddings = Site(tokens * config.hidden_size, config.embedding_dropout)
    return _used([embeddings] + layer * config.num_hidden_layers)


def _weight_site(config: Any, attention: Attention, sequences: int, length: int, probability: float) -> Site:
    if attention is Attention.sdpa:  # the fused kernel drops by itself
        return Site(0, 0.0)
    return Site(sequences * config.num_attention_heads * length * length, probability)


def _used(sites: list[Site]) -> list[Site]:
    return [site for site in sites if site.probability > 0.0]


def bert_states(
    body: Any, input_ids_NL: Tensor, real_NL: Tensor | None, attention: Attention, dropout: Dropout
) -> list[Tensor]:
    """Post-norm body of BERT and RoBERTa."""
    drop = body.config.hidden_dropout_prob
    attention_drop = body.config.attention_probs_dropout_prob
    embeddings = body.embeddings
    positions = _bert_positions(embeddings, input_ids_NL, real_NL)
    x_NLd = embeddings.word_embeddings(input_ids_NL) + embeddings.token_type_embeddings.weight[0]
    x_NLd = dropout(embeddings.LayerNorm(x_NLd + positions), drop)
    mask = _padding_mask(real_NL)
    states = [x_NLd]
    for layer in body.encoder.layer:
        own, out = layer.attention.self, layer.attention.output
        weight = torch.cat((own.query.weight, own.key.weight, own.value.weight))
        bias = torch.cat((own.query.bias, own.key.bias, own.value.bias))
        query, key, value = _split_heads(functional.linear(x_NLd, weight, bias), own.num_attention_heads)
        mixed_NLd = attend(query, key, value, mask, attention, dropout, attention_drop)
        x_NLd = out.LayerNorm(x_NLd + dropout(out.dense(mixed_NLd), drop))
        inner_NLi = layer.intermediate.intermediate_act_fn(layer.intermediate.dense(x_NLd))
        x_NLd = layer.output.LayerNorm(x_NLd + dropout(layer.output.dense(inner_NLi), drop))
        states.append(x_NLd)
    return states


def modernbert_states(
    body: Any, input_ids_NL: Tensor, real_NL: Tensor | None, attention: Attention, dropout: Dropout
) -> list[Tensor]:
    """Pre-norm body of ModernBERT: rotary positions, gated feed-forward, local attention in some layers."""
    config = body.config
    x_NLd = body.embeddings.norm(body.embeddings.tok_embeddings(input_ids_NL))
    x_NLd = dropout(x_NLd, config.embedding_dropout)
    length = input_ids_NL.shape[1]
    kinds = sorted(set(config.layer_types))
    rotary = {kind: _rotary_angles(body.rotary_emb, kind, length) for kind in kinds}
    masks = {kind: _padding_mask(real_NL) for kind in kinds}
    if "sliding_attention" in masks and length > config.sliding_window + 1:
        masks["sliding_attention"] = _window_mask(length, config.sliding_window, real_NL, x_NLd.device)
    states = [x_NLd]
    for layer, kind in zip(body.layers, config.layer_types, strict=True):
        qkv = layer.attn.Wqkv(layer.attn_norm(x_NLd))
        query, key, value = _split_heads(qkv, config.num_attention_heads)
        query, key = _rotate(query, rotary[kind]), _rotate(key, rotary[kind])
        mixed_NLd = attend(query, key, value, masks[kind], attention, dropout, config.attention_dropout)
        x_NLd = x_NLd + dropout(layer.attn.Wo(mixed_NLd), config.attention_dropout)
        inner_NLi, gate_NLi = layer.mlp.Wi(layer.mlp_norm(x_NLd)).chunk(2, dim=-1)
        inner_NLi = dropout(layer.mlp.act(inner_NLi) * gate_NLi, config.mlp_dropout)
        x_NLd = x_NLd + layer.mlp.Wo(inner_NLi)
        states.append(x_NLd)
    states[-1] = body.final_norm(x_NLd)
    return states


def _bert_positions(embeddings: nn.Module, input_ids_NL: Tensor, real_NL: Tensor | None) -> Tensor:
    table: Any = embeddings.position_embeddings
    # RoBERTa numbers real tokens from padding_idx + 1 and gives padding the row padding_idx.
    first = getattr(embeddings, "padding_idx", None)
    if first is None:
        rows: Tensor = table.weight[: input_ids_NL.shape[1]]
        return rows
    if real_NL is None:
        return table.weight[first + 1 : first + 1 + input_ids_NL.shape[1]]  # type: ignore[no-any-return]
    return table(real_NL.long().cumsum(1) * real_NL + first)  # type: ignore[no-any-return]


def _split_heads(qkv_NLe: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut ``(N, L, 3 * H * c)`` into three ``(N, H, L, c)``."""
    query, key, value = qkv_NLe.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    return query, key, value


def _padding_mask(real_NL: Tensor | None) -> Tensor | None:
    """Return what is added to scores, ``(N, 1, 1, L)``; the lowest number, not -inf, keeps empty rows finite."""
    if real_NL is None:
        return None
    return _additive(real_NL[:, None, None, :])


def _window_mask(length: int, half: int, real_NL: Tensor | None, device: torch.device) -> Tensor:
    position = torch.arange(length, device=device)
    near_LL = (position[:, None] - position[None, :]).abs() <= half
    return _additive(near_LL[None, None] if real_NL is None else near_LL & real_NL[:, None, None, :])


def _additive(visible: Tensor) -> Tensor:
    lowest = torch.finfo(torch.bfloat16).min  # finite in every dtype but float16, where softmax is float32 anyway
    return torch.zeros(visible.shape, device=visible.device).masked_fill(~visible, lowest)


def _rotary_angles(rotary: Any, kind: str, length: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines, ``(L, c)`` float32."""
    frequencies = getattr(rotary, f"{kind}_inv_freq")
    scale = getattr(rotary, f"{kind}_attention_scaling")
    angles = torch.outer(torch.arange(length, device=frequencies.device).float(), frequencies.float())
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos() * scale, angles.sin() * scale


def _rotate(x_NHLc: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = rotary
    left, right = x_NHLc.chunk(2, dim=-1)
    rotated = torch.cat((-right, left), dim=-1)
    return (x_NHLc * cosine + rotated * sine).to(x_NHLc.dtype)
