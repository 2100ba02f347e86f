"""Small texts and configurations for the tests of the data package."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taco_cli.config.schema import CorpusSource, RunConfig

MakeFiles = Callable[..., RunConfig]


def made_up_texts(number: int, seed: int = 0, words: int = 60) -> list[str]:
    """Return different texts of made-up words."""
    draw = random.Random(seed)
    vocabulary = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 7))) for _ in range(200)]
    return [" ".join(draw.choices(vocabulary, k=words)) + f" {seed} {index}." for index in range(number)]


def write_jsonl(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def config_of(tmp_path: Path) -> MakeFiles:
    """Return a factory of configurations for given files; keyword arguments are settings of `corpus`."""

    def make(*files: Path | str, sequence_length: int = 16, **settings: Any) -> RunConfig:
        config = RunConfig(sequence_length=sequence_length)
        config.corpus.source, config.corpus.files = CorpusSource.files, [str(file) for file in files]
        config.corpus.cache_dir, config.corpus.validation_fraction = str(tmp_path / "cache"), 0.2
        config.corpus.processes = 1
        config.tokenizer.vocab_size = 200
        for key, value in settings.items():
            assert hasattr(config.corpus, key), key
            setattr(config.corpus, key, value)
        return config

    return make
