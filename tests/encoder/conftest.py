from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from taco_cli.config.schema import Architecture, EncoderConfig
from taco_cli.encoder import Encoder, build_encoder

WORDS = [f"w{i}" for i in range(59)]
SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


@dataclass
class Facts:
    vocab_size: int = 64
    pad_id: int = 0


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
def sizes() -> Callable[..., EncoderConfig]:
    def make(architecture: str = "bert", **changes: Any) -> EncoderConfig:
        settings = {
            "layers": 2,
            "hidden_size": 32,
            "heads": 4,
            "intermediate_size": 48,
            "dropout": 0.1,
            "positions": 40,
        }
        return EncoderConfig(architecture=Architecture(architecture), **(settings | changes))

    return make


@pytest.fixture
def build(sizes: Callable[..., EncoderConfig], facts: Facts) -> Callable[..., Encoder]:
    def make(architecture: str = "bert", *, length: int = 24, seed: int = 1, **changes: Any) -> Encoder:
        return build_encoder(sizes(architecture, **changes), facts, length, seed)

    return make


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {token: i for i, token in enumerate([*SPECIAL.values(), *WORDS])}
    words = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=40, **SPECIAL)
