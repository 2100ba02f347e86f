"""The commands, run inside the test process: what they print, and their exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from taco_cli import cli

TINY = (
    "corpus=text corpus.validation_fraction=0.1 corpus.processes=1 tokenizer.vocab_size=128 encoder=bert_tiny "
    "encoder.layers=1 encoder.hidden_size=16 encoder.intermediate_size=32 encoder.heads=2 sequence_length=16 "
    "batch_size=8 micro_batch_size=null validation_sequences=16 validate_every=5 checkpoint_every=4 optimizer=adamw "
    "optimizer.lr=0.01 trainer=debug"
)


@dataclass
class Ended:
    """What a command left behind."""

    status: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def command(
    corpus_file: Path,
    cache_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Command:
    """Return a function that runs a command in an empty folder, on a tiny corpus if ``tiny``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)

    def run(arguments: str, *more: str, tiny: bool = True, entry: Callable[[], int] = cli.train) -> Ended:
        made = [*TINY.split(), f"corpus.files=[{corpus_file}]", f"corpus.cache_dir={cache_dir}", "budget=6steps"]
        monkeypatch.setattr(sys, "argv", ["taco-train", *(made if tiny else []), *arguments.split(), *more])
        capfd.readouterr()
        monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
        try:
            status = entry()
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = capfd.readouterr()
        return Ended(status, out, err)

    return run
