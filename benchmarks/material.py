"""Text, vocabulary and configurations that the benchmarks share, made in code."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

from taco_cli.config.compose import restored
from taco_cli.config.schema import RunConfig

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ENCODERS: dict[str, dict[str, Any]] = {
    "bert_mini": {"architecture": "bert", "layers": 4, "hidden_size": 256, "heads": 4, "intermediate_size": 1024},
    "bert_small": {"architecture": "bert", "layers": 4, "hidden_size": 512, "heads": 8, "intermediate_size": 2048},
    "modernbert_mini": {
        "architecture": "modernbert",
        "layers": 4,
        "hidden_size": 256,
        "heads": 4,
        "intermediate_size": 640,
    },
}


def vocabulary(size: int) -> list[str]:
    """Return a WordPiece vocabulary of made words."""
    pieces = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    syllables = ["".join(pair) for pair in itertools.product("bcdfglmnprst", "aeiou")]
    words = ("".join(parts) for count in (2, 3) for parts in itertools.product(syllables, repeat=count))
    return [*pieces, *itertools.islice(words, size - len(pieces))]


def write_material(folder: Path, vocab_size: int, words: int) -> tuple[Path, Path]:
    """Write ``vocab.txt`` and a corpus of ``words`` words with Zipf's frequencies; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = vocabulary(vocab_size)
    vocab, corpus = folder / f"vocab_{vocab_size}" / "vocab.txt", folder / f"corpus_{vocab_size}_{words}.jsonl"
    vocab.parent.mkdir(exist_ok=True)
    vocab.write_text("\n".join(pieces) + "\n")
    if not corpus.exists():
        known = pieces[len(SPECIAL) + 2 * len(LETTERS) :]
        weights = list(itertools.accumulate(1 / rank for rank in range(1, len(known) + 1)))
        draw = random.Random(0)
        with corpus.open("w") as file:
            for _ in range(words // 200):
                file.write(json.dumps({"text": " ".join(draw.choices(known, cum_weights=weights, k=200))}) + "\n")
    return vocab, corpus


def run_config(folder: Path, case: dict[str, Any]) -> RunConfig:
    """Return the run of a case: its encoder, objective, dropout and vocabulary, 32 x 128 tokens a step."""
    vocab, corpus = write_material(folder, case["vocab_size"], case["words"])
    weights = {"mlm": (1, 0, 0), "taco": (1, 1, 0), "mlm_tp": (1, 0, 1)}[case["objective"]]
    return restored(
        {
            "name": "bench",
            "label": f"{case['encoder']}_{case['objective']}_{case['dropout']}",
            "budget": f"{case['steps']}steps",
            "batch_size": 32,
            "sequence_length": 128,
            "validate_every": 10**6,
            "validation_sequences": 32,
            "checkpoint_every": 50,
            "output_root": str(folder / "outputs"),
            "objective": {
                "name": case["objective"],
                **{term: {"weight": weight} for term, weight in zip(("mlm", "tc", "tp"), weights, strict=True)},
            },
            "encoder": {**ENCODERS[case["encoder"]], "dropout": case["dropout"], "positions": 512},
            "corpus": {
                "name": "made",
                "source": "files",
                "files": [str(corpus)],
                "cache_dir": str(folder / "cache"),
                "validation_fraction": 0.02,
            },
            "tokenizer": {"kind": "pretrained", "path": str(vocab)},
            "optimizer": {"name": "adamw"},
            "trainer": {"compile": case.get("compile", "true")},
        }
    )
