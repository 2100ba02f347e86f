"""Word embeddings taken over from an export, trained or frozen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from taco_cli.config.schema import WordEmbeddings
from taco_cli.encoder import Encoder, export

Build = Callable[..., Encoder]


@pytest.fixture
def run_folder(build: Build, tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> Path:
    """Return a run folder with two exports; the later one has seed 8."""
    for step, seed in (("000090", 7), ("1000000", 8)):
        export(build(seed=seed), tokenizer, tmp_path / "hf" / f"step-{step}", {})
    return tmp_path


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "roberta"])
def test_rows_are_copied_and_nothing_else(build: Build, run_folder: Path, architecture: str) -> None:
    plain = build(architecture, seed=1)
    copied = build(architecture, seed=1, word_embeddings_from=str(run_folder / "hf" / "step-000090"))
    assert torch.equal(copied.word_embeddings, build(seed=7).word_embeddings)
    assert torch.equal(copied.decoder_weight, copied.word_embeddings)
    table = copied.word_embeddings.data_ptr()
    for (name, a), (_, b) in zip(plain.named_parameters(), copied.named_parameters(), strict=True):
        assert torch.equal(a, b) == (b.data_ptr() != table), name


def test_of_a_run_the_last_export_is_taken(build: Build, run_folder: Path) -> None:
    copied = build(word_embeddings_from=str(run_folder))
    assert torch.equal(copied.word_embeddings, build(seed=8).word_embeddings)


def test_frozen_table_is_the_only_thing_that_is_not_trained(build: Build) -> None:
    encoder = build(word_embeddings=WordEmbeddings.frozen)
    frozen = [name for name, parameter in encoder.named_parameters() if not parameter.requires_grad]
    assert len(frozen) == 1
    assert not encoder.decoder_weight.requires_grad
    encoder.logits(encoder(torch.full((2, 5), 9)).hidden_states[0]).sum().backward()
    assert encoder.word_embeddings.grad is None
    assert all(parameter.requires_grad for parameter in build().parameters())


def test_what_does_not_fit_is_refused(build: Build, run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"its table has 64 tokens x 32, this encoder's 64 x 16"):
        build(hidden_size=16, word_embeddings_from=str(run_folder))
    with pytest.raises(ValueError, match=r"word_embeddings_from=.*nowhere: no Hugging Face model"):
        build(word_embeddings_from=str(tmp_path / "nowhere"))
