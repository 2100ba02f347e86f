"""Parameter counts and model FLOPs, for throughput and model FLOP utilisation (MFU)."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from taco_cli.encoder.encoder import Encoder


class ParameterCount(NamedTuple):
    """Trained numbers of an encoder; tied ones count once."""

    total: int
    without_embeddings: int  # no word, position or type tables (and so no decoder weight either)


def parameter_count(encoder: Encoder) -> ParameterCount:
    """Count the parameters of ``encoder``."""
    total = sum(parameter.numel() for parameter in encoder.parameters())
    return ParameterCount(total, total - sum(table.weight.numel() for table in _tables(encoder)))


def model_flops(encoder: Encoder, tokens: int, sequence_length: int, predicted: int) -> int:
    """Return the FLOPs that forward and backward of one step need, whatever the implementation spends.

    Six per weight of a matrix product and token (two forward, four backward), attention scores and mixtures alike,
    the head and the decoder for ``predicted`` positions only (Chowdhery et al. 2022, PaLM, appendix B).

    Args:
        encoder: the model.
        tokens: tokens that the body reads, padding included.
        sequence_length: length L of the sequences; each token attends to L tokens.
        predicted: positions that go through the head.
    """
    body = _matrix_weights(encoder.model.base_model)
    head = _matrix_weights(encoder.model) - body - _decoder_weights(encoder)
    layers, width = int(encoder.model.config.num_hidden_layers), encoder.hidden_size
    attention = 12 * layers * sequence_length * width  # 2 products x 2 FLOPs x 3 (forward, backward)
    return tokens * (6 * body + attention) + 6 * predicted * (head + _decoder_weights(encoder))


def _tables(encoder: Encoder) -> list[nn.Embedding]:
    return [module for module in encoder.modules() if isinstance(module, nn.Embedding)]


def _matrix_weights(module: nn.Module) -> int:
    """Count weights of linear layers; a pooler is never run here."""
    linear = [(name, part) for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    return sum(part.weight.numel() for name, part in linear if "pooler" not in name)


def _decoder_weights(encoder: Encoder) -> int:
    return encoder.decoder_weight.numel()
