"""A checkpoint in memory: encoder, tokenizer, machine."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from taco_cli.config.schema import Architecture, EncoderConfig
from taco_cli.data import tokenizer as tokenizers
from taco_cli.encoder import Encoder, build_encoder
from taco_cli.encoder.encoder import positions_of
from taco_cli.evaluation.checkpoints import Checkpoint
from taco_cli.evaluation.tokens import Tokens, tokenize
from taco_cli.machine import Machine
from taco_cli.objectives import SpecialTokens


@dataclass
class Model:
    """One checkpoint, loaded, and what it was given to read so far."""

    encoder: Encoder
    tokenizer: PreTrainedTokenizerFast
    special: SpecialTokens
    machine: Machine
    _tokens: dict[tuple[str, int], Tokens] = field(default_factory=dict)

    @functools.cached_property
    def markers(self) -> Tensor:
        """Ids that are no words of a text: the special ones but the unknown word, on the device."""
        ids = [i for i in self.special.special_ids if i != self.tokenizer.unk_token_id]
        return torch.tensor(ids, device=self.machine.device_type)

    @property
    def layers(self) -> int:
        """Number of hidden states: the embeddings and one for each layer."""
        return int(self.encoder.model.config.num_hidden_layers) + 1

    def tokens(self, digest: str, texts: Sequence[tuple[str, ...]], length: int) -> Tokens:
        """Tokenize texts once per content (`digest`) and length."""
        key = (digest, length)
        if key not in self._tokens:
            self._tokens[key] = tokenize(texts, self.tokenizer, length)
        return self._tokens[key]


def load_model(checkpoint: Checkpoint, machine: Machine, dropout: float | None) -> Model:
    """Load a checkpoint in evaluation mode.

    Raises:
        ValueError: no complete encoder or no tokenizer there.
    """
    path = _path(checkpoint)
    tokenizer = tokenizers.load(path)
    special = special_tokens(tokenizer)
    config = EncoderConfig(architecture=Architecture.hf, path=path, dropout=dropout)
    encoder = build_encoder(config, special, 1, 0).to(machine.device_type).eval()
    return Model(encoder, tokenizer, special, machine)


def special_tokens(tokenizer: PreTrainedTokenizerFast) -> SpecialTokens:
    """Return the ids that have a meaning of their own."""
    mask, pad = tokenizer.mask_token_id, tokenizer.pad_token_id
    assert isinstance(mask, int)
    assert isinstance(pad, int)
    ids = tuple(sorted(tokenizer.all_special_ids))
    return SpecialTokens(mask_id=mask, pad_id=pad, special_ids=ids, vocab_size=len(tokenizer))


def sizes(checkpoint: Checkpoint) -> tuple[int, int]:
    """Return hidden size and longest sequence, from the configuration alone.

    Raises:
        ValueError: no Hugging Face model there.
    """
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(_path(checkpoint))
    except (OSError, ValueError) as error:
        raise ValueError(f"model={checkpoint.path}: no Hugging Face model can be read there ({error})") from error
    return int(config.hidden_size), positions_of(config)


def _path(checkpoint: Checkpoint) -> str:
    """Return a folder's path in full; a hub name as it is."""
    path = Path(checkpoint.path).expanduser()
    return str(path) if path.is_dir() else checkpoint.path
