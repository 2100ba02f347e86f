"""Text, vocabulary and configurations that the benchmarks share, made in code."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from benchmarks.case import Case
from taco_cli.config.compose import restored
from taco_cli.config.schema import RunConfig

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS_IN_A_DOCUMENT = 200
WEIGHTS = {"mlm": (1, 0, 0), "taco": (1, 1, 0), "mlm_tp": (1, 0, 1)}  # of mlm, tc, tp


def vocabulary(size: int) -> list[str]:
    """Return a WordPiece vocabulary of made words."""
    pieces = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return [*pieces, *itertools.islice(_all_words(), size - len(pieces))]


def words(vocab_size: int) -> list[str]:
    """Return the words among :func:`vocabulary`: each is one piece."""
    return vocabulary(vocab_size)[len(SPECIAL) + 2 * len(LETTERS) :]


def _all_words() -> Iterator[str]:
    syllables = ["".join(pair) for pair in itertools.product("bcdfglmnprst", "aeiou")]
    for count in (2, 3):
        yield from map("".join, itertools.product(syllables, repeat=count))


def zipf(count: int) -> list[float]:
    """Return cumulative weights of ``count`` words with the frequencies of a language."""
    return list(itertools.accumulate(1 / rank for rank in range(1, count + 1)))


def write_vocabulary(folder: Path, vocab_size: int) -> Path:
    """Write ``vocab.txt``; return its path."""
    path = folder / f"vocab_{vocab_size}" / "vocab.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(vocabulary(vocab_size)) + "\n")
    return path


def write_corpus(folder: Path, vocab_size: int, count: int) -> Path:
    """Write documents of ``count`` words in all, once; return the file."""
    path = folder / f"corpus_{vocab_size}_{count}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            for text in documents(vocab_size, count // WORDS_IN_A_DOCUMENT):
                file.write(json.dumps({"text": text}) + "\n")
    return path


def documents(vocab_size: int, count: int) -> Iterator[str]:
    """Yield ``count`` texts, always the same."""
    known, draw = words(vocab_size), random.Random(0)
    weights = zipf(len(known))
    for _ in range(count):
        yield " ".join(draw.choices(known, cum_weights=weights, k=WORDS_IN_A_DOCUMENT))


def encoder_sizes(name: str) -> dict[str, Any]:
    """Return what ``encoder=<name>`` sets."""
    sizes: dict[str, Any] = yaml.safe_load((resources.files("taco_cli.conf") / "encoder" / f"{name}.yaml").read_text())
    return sizes


def run_config(folder: Path, case: Case, objective: str, budget: int = 10_000) -> RunConfig:
    """Return the run of a case with one of its objectives; its corpus and vocabulary are written first."""
    arm, _, negatives = objective.partition("@")
    return restored(
        {
            "name": "bench",
            "label": f"{case.encoder}_{arm}",
            "budget": f"{budget}steps",
            "batch_size": case.batch_size,
            "sequence_length": case.length,
            "validate_every": 10**6,
            "validation_sequences": case.batch_size,
            "checkpoint_every": 50,
            "output_root": str(folder / "outputs"),
            "objective": {
                "name": arm,
                **{term: {"weight": w} for term, w in zip(("mlm", "tc", "tp"), WEIGHTS[arm], strict=True)},
            }
            | ({"tc": {"weight": 1, "negatives": int(negatives)}} if negatives else {}),
            "encoder": encoder_sizes(case.encoder) | {"dropout": case.dropout},
            "corpus": {
                "name": "made",
                "source": "files",
                "files": [str(write_corpus(folder, case.vocab_size, case.words))],
                "cache_dir": str(folder / "cache"),
                "validation_fraction": 0.02,
            },
            "tokenizer": {"kind": "pretrained", "path": str(write_vocabulary(folder, case.vocab_size))},
            "optimizer": {"name": "adamw"},
            "trainer": {"compile": str(case.compile).lower(), "accelerator": "cpu", "devices": "1"},
        }
    )
