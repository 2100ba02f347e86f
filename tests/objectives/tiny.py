"""A tiny encoder with the interface that objectives ask for, and batches made in code."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from taco_cli.objectives import Batch, SpecialTokens

SPECIAL = SpecialTokens(mask_id=4, pad_id=0, special_ids=(0, 1, 2, 3, 4), vocab_size=40)


@dataclass
class TinyOutput:
    embeddings: Tensor
    hidden_states: Tensor


class TinyEncoder(nn.Module):
    """Embedding, one mixing layer over the whole sequence, a head and a tied decoder."""

    def __init__(self, vocab_size: int = 40, hidden: int = 8, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.calls = 0
        self.words = nn.Parameter(torch.randn(vocab_size, hidden, generator=generator))
        self.mix = nn.Parameter(torch.randn(hidden, hidden, generator=generator))
        self.head = nn.Parameter(torch.randn(hidden, hidden, generator=generator))
        self.bias = nn.Parameter(torch.randn(vocab_size, generator=generator))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> TinyOutput:
        self.calls += 1
        embeddings = self.words[input_ids]
        weight = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        weight = weight.to(embeddings.dtype)[..., None]
        context = (embeddings * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
        return TinyOutput(embeddings, torch.tanh((embeddings + context) @ self.mix))

    def predict(self, states: Tensor) -> Tensor:
        return torch.tanh(states @ self.head)

    @property
    def decoder_weight(self) -> Tensor:
        return self.words

    @property
    def decoder_bias(self) -> Tensor | None:
        return self.bias

    @property
    def word_embeddings(self) -> Tensor:
        return self.words


def make_batch(rows: int = 6, length: int = 12, vocab_size: int = 40, padded: bool = False, seed: int = 0) -> Batch:
    """[CLS] words [SEP]; with padding, rows of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    input_ids = torch.randint(5, vocab_size, (rows, length), generator=generator)
    input_ids[:, 0], input_ids[:, -1] = 2, 3
    mask = None
    if padded:
        lengths = torch.randint(3, length + 1, (rows,), generator=generator)
        mask = torch.arange(length) < lengths[:, None]
        input_ids = input_ids.where(mask, torch.tensor(0))
    return Batch(input_ids, torch.arange(rows) + 100, torch.zeros(rows, dtype=torch.int64), mask)
