"""An encoder with a fresh head for one task.

A masked-LM checkpoint has no trained pooler, so the head is new in every fine-tuning: dense, tanh, dropout, linear,
which is what BertForSequenceClassification puts on such a checkpoint, on the state of the first token or on the mean
of the states.

Legend: N sequences, L positions, d hidden size, C classes (1 for regression).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init
from transformers import PreTrainedTokenizerFast

from taco_cli.config.glue import Pooling
from taco_cli.config.schema import Architecture, EncoderConfig
from taco_cli.encoder import Encoder, build_encoder
from taco_cli.objectives import SpecialTokens
from taco_cli.randomness import random_bits, stream_key, uniform

_HEAD_FILE = "head.safetensors"
_DEVIATION = 0.02  # of fresh weights, BERT's


class Classifier(nn.Module):
    """Encoder and head.

    Args:
        encoder: fine-tuned in place.
        labels: names of the classes in the order of the logits; none: regression.
        pooling: what stands for a sequence.
        dropout: before each layer of the head, in training.
        seed: of the fresh head. A class's weights depend on its name, so the order of labels changes nothing.
    """

    def __init__(self, encoder: Encoder, labels: list[str], pooling: Pooling, dropout: float, seed: int) -> None:
        super().__init__()
        self.encoder, self.labels, self.pooling, self.dropout = encoder, list(labels), pooling, dropout
        d = encoder.hidden_size
        self.dense: nn.Linear = skip_init(nn.Linear, d, d)  # which would draw from the global random state
        self.out: nn.Linear = skip_init(nn.Linear, d, max(1, len(labels)))
        with torch.no_grad():
            self.dense.weight.copy_(_normal(seed, "dense", d * d).view(d, d))
            self.out.weight.copy_(torch.stack([_normal(seed, f"out/{name}", d) for name in labels or ["score"]]))
            self.dense.bias.zero_()
            self.out.bias.zero_()
        self.to(encoder.word_embeddings.device)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits ``(N, C)`` in float32 for ids ``(N, L)``; the mask is True at real tokens."""
        states_NLd = self.encoder(input_ids, attention_mask).hidden_states
        pooled_Nd = pool(states_NLd, attention_mask, self.pooling)
        hidden_Nd = torch.tanh(self.dense(pooled_Nd))
        logits: Tensor = self.out(functional.dropout(hidden_Nd, self.dropout, self.training))
        return logits.float()

    def save(self, folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
        """Write a Hugging Face folder: encoder and tokenizer, `id2label`, and the head in a file of its own."""
        draft = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        config = self.encoder.model.config
        if self.labels:
            config.id2label = dict(enumerate(self.labels))
            config.label2id = {name: i for i, name in enumerate(self.labels)}
        self.encoder.model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        head = {**_named("dense", self.dense), **_named("out", self.out)}
        facts = {"pooling": str(self.pooling), "dropout": repr(self.dropout), "regression": str(not self.labels)}
        save_file(head, draft / _HEAD_FILE, metadata=facts)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)

    @classmethod
    def load(cls, folder: Path, special: SpecialTokens) -> Classifier:
        """Load what :meth:`save` wrote; labels come from `id2label`."""
        config = EncoderConfig(architecture=Architecture.hf, path=str(folder))
        encoder = build_encoder(config, special, 1, 0)
        with safe_open(folder / _HEAD_FILE, "pt") as file:
            facts, weights = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        names: Any = encoder.model.config.id2label
        labels = [] if facts["regression"] == "True" else [names[i] for i in range(len(names))]
        model = cls(encoder, labels, Pooling(facts["pooling"]), float(facts["dropout"]), 0)
        model.load_state_dict(weights, strict=False)
        return model


def pool(states_NLd: Tensor, real_NL: Tensor | None, pooling: Pooling) -> Tensor:
    """Return one state per sequence, ``(N, d)``; padding is left out."""
    if pooling is Pooling.first:
        return states_NLd[:, 0]
    if real_NL is None:
        return states_NLd.mean(1)
    weights_NL = real_NL.to(states_NLd.dtype) / real_NL.sum(1, keepdim=True)
    mean_Nd: Tensor = torch.bmm(weights_NL.to(states_NLd.dtype)[:, None, :], states_NLd)[:, 0]
    return mean_Nd


def _normal(seed: int, name: str, count: int) -> Tensor:
    """Draw from a normal distribution as a function of (seed, name) alone."""
    share = uniform(random_bits(stream_key(seed, f"glue/head/{name}"), torch.arange(count))).double()
    standard = torch.special.ndtri(share.clamp(2.0**-25, 1 - 2.0**-25))
    drawn: Tensor = (_DEVIATION * standard).float()
    return drawn


def _named(name: str, layer: nn.Linear) -> dict[str, Tensor]:
    return {f"{name}.{key}": value.detach().cpu().contiguous() for key, value in layer.state_dict().items()}
