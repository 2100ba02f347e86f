"""Tiny corpora and configurations, made in code and the same in every test."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taco_cli.cli import _Terminal
from taco_cli.config.checks import check
from taco_cli.config.schema import Accelerator, Architecture, CorpusSource, OptimizerName, Precision, RunConfig

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

MakeConfig = Callable[..., RunConfig]


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Take back what a command that ran in this process did to logging, or the next tests would see it."""
    root, own = logging.getLogger(), logging.getLogger("taco_cli")
    levels = root.level, own.level
    yield
    for handler in [handler for handler in root.handlers if isinstance(handler, _Terminal)]:
        root.removeHandler(handler)
    root.setLevel(levels[0])
    own.setLevel(levels[1])


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tiny corpus."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "made.jsonl")


def write_corpus(path: Path) -> Path:
    """Write 160 documents of made-up words with the frequencies of a language (Zipf) and pairs that recur."""
    draw = random.Random(0)
    syllables = ["ba", "ko", "mi", "ru", "ta", "se", "no", "li", "fu", "da"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(300)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(160):
            text = " ".join(f"{a} {words[(words.index(a) * 7) % 300]}" for a in draw.choices(words, weights, k=40))
            file.write(json.dumps({"text": text + "."}) + "\n")
    return path


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one corpus cache for the whole session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def make_config(corpus_file: Path, cache_dir: Path, tmp_path: Path) -> MakeConfig:
    """Return a factory of tiny runs; keyword arguments are dotted keys with ``__`` for the dot."""

    def make(**changes: Any) -> RunConfig:
        config = tiny_config(corpus_file, cache_dir, tmp_path / "outputs")
        for key, value in changes.items():
            *path, last = key.split("__")
            target: Any = config
            for name in path:
                target = getattr(target, name)
            assert hasattr(target, last), key
            setattr(target, last, value)
        check(config)
        return config

    return make


def tiny_config(corpus_file: Path, cache_dir: Path, output_root: Path) -> RunConfig:
    """Return a run of 10 steps that takes a second: 1 layer, hidden 16, float32 on the processor."""
    config = RunConfig(
        name="tiny",
        label="taco",
        budget="10steps",
        sequence_length=16,
        batch_size=8,
        validate_every=5,
        validation_sequences=16,
        checkpoint_every=4,
        output_root=str(output_root),
    )
    config.objective.tc.weight, config.objective.tc.negatives = 1.0, 4
    config.encoder.architecture = Architecture.bert
    config.encoder.layers, config.encoder.hidden_size, config.encoder.heads = 1, 16, 2
    config.encoder.intermediate_size, config.encoder.dropout, config.encoder.positions = 32, 0.1, 32
    config.corpus.name, config.corpus.source = "text", CorpusSource.files
    config.corpus.files, config.corpus.cache_dir = [str(corpus_file)], str(cache_dir)
    config.corpus.validation_fraction, config.corpus.processes = 0.1, 1
    config.tokenizer.vocab_size = 128
    config.optimizer.name, config.optimizer.lr, config.optimizer.warmup = OptimizerName.adamw, 1e-2, 0.1
    config.trainer.accelerator, config.trainer.precision = Accelerator.cpu, Precision.float32
    config.trainer.compile, config.trainer.devices = "false", "1"
    return config
