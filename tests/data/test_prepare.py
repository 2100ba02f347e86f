from __future__ import annotations

import itertools
import logging
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from taco_cli.config.schema import CorpusSource, OnBadBytes, TokenizerKind
from taco_cli.data import PreparedCorpus, prepare, tokenizer

from .conftest import MakeFiles, made_up_texts, write_jsonl

TEXTS = made_up_texts(60)
SIMPLEWIKI = Path(__file__).parents[3] / "shared" / "data" / "simplewiki"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", TEXTS)


def streams(prepared: PreparedCorpus) -> tuple[list[int], list[int]]:
    """Return the tokens of both splits, without the frame of the blocks and what was repeated."""
    found = []
    for store in (prepared.train, prepared.validation):
        blocks = store.blocks(torch.arange(len(store)))
        found.append(blocks[:, 1:-1].flatten()[: store.tokens].tolist())
    return found[0], found[1]


def test_every_document_is_in_one_split_as_the_tokenizer_reads_it(config_of: MakeFiles, file: Path) -> None:
    prepared = prepare(config_of(file), progress=False)
    wordpiece = prepared.tokenizer
    documents = {tuple(wordpiece(text, add_special_tokens=False)["input_ids"]) for text in TEXTS}
    found: list[tuple[int, ...]] = []
    for stream in streams(prepared):
        assert stream.pop() == wordpiece.sep_token_id
        ends = [-1, *(i for i, token in enumerate(stream) if token == wordpiece.sep_token_id), len(stream)]
        found += [tuple(stream[a + 1 : b]) for a, b in itertools.pairwise(ends)]
    assert len(found) == len(TEXTS)
    assert set(found) == documents
    facts = prepared.facts
    assert sum(facts["documents"].values()) == 60
    assert sum(facts["words"].values()) == sum(len(text.split()) for text in TEXTS)
    assert facts["tokens"] == {"train": prepared.train.tokens, "validation": prepared.validation.tokens}
    assert facts["files"] == {str(file): file.stat().st_size}
    assert wordpiece.model_max_length == 16


def test_the_second_start_is_a_hit(config_of: MakeFiles, file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    first = prepare(config_of(file), progress=False)
    assert "corpus cache hit" not in caplog.text
    second = prepare(config_of(file), progress=False)
    assert "corpus cache hit: " in caplog.text
    assert (first.cache_hit, second.cache_hit) == (False, True)
    assert second.facts == first.facts
    assert streams(second) == streams(first)
    assert second.tokenizer_fingerprint == first.tokenizer_fingerprint
    assert second.corpus_fingerprint == first.corpus_fingerprint


def test_another_length_is_another_view_of_the_same_tokens(config_of: MakeFiles, file: Path) -> None:
    short = prepare(config_of(file), progress=False)
    long = prepare(config_of(file, sequence_length=30), progress=False)
    assert long.cache_hit
    assert long.train.blocks([0]).shape == (1, 30)
    assert streams(long) == streams(short)


def test_one_changed_byte_is_a_miss(config_of: MakeFiles, file: Path) -> None:
    first = prepare(config_of(file), progress=False)
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    times = file.stat()
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = prepare(config_of(file), progress=False)
    assert not second.cache_hit
    assert second.corpus_fingerprint != first.corpus_fingerprint


def test_moved_and_renamed_files_are_a_hit(config_of: MakeFiles, file: Path, tmp_path: Path) -> None:
    prepare(config_of(file), progress=False)
    moved = tmp_path / "elsewhere" / "b.jsonl"
    moved.parent.mkdir()
    file.rename(moved)
    prepared = prepare(config_of(moved), progress=False)
    assert prepared.cache_hit
    assert list(prepared.facts["files"]) == [str(moved)]


@pytest.mark.parametrize(
    "change", [{"validation_fraction": 0.3}, {"fraction": 0.5}, {"on_bad_bytes": OnBadBytes.replace}]
)
def test_other_settings_are_a_miss(config_of: MakeFiles, file: Path, change: dict[str, Any]) -> None:
    first = prepare(config_of(file), progress=False)
    second = prepare(config_of(file, **change), progress=False)
    assert not second.cache_hit
    assert second.corpus_fingerprint != first.corpus_fingerprint


def test_another_tokenizer_is_a_miss_with_the_same_corpus(config_of: MakeFiles, file: Path) -> None:
    first = prepare(config_of(file), progress=False)
    config = config_of(file)
    config.tokenizer.vocab_size = 150
    second = prepare(config, progress=False)
    assert not second.cache_hit
    assert second.corpus_fingerprint == first.corpus_fingerprint
    assert second.tokenizer_fingerprint != first.tokenizer_fingerprint


def test_a_part_of_the_corpus_is_judged_on_the_same_tokens(config_of: MakeFiles, file: Path) -> None:
    whole = prepare(config_of(file), progress=False)
    part = prepare(config_of(file, fraction=0.5), progress=False)
    assert part.tokenizer_fingerprint == whole.tokenizer_fingerprint
    assert streams(part)[1] == streams(whole)[1]
    assert part.train.tokens < whole.train.tokens


def test_validation_files_are_never_trained_on(config_of: MakeFiles, file: Path, tmp_path: Path) -> None:
    held_out = write_jsonl(tmp_path / "v.jsonl", [*TEXTS[:5], "Something else, that is in no other file at all."])
    prepared = prepare(config_of(file, validation_files=[str(held_out)]), progress=False)
    assert prepared.facts["documents"] == {"train": 55, "validation": 6}
    assert prepared.facts["in_validation"] == 5
    assert prepared.facts["validation"]["files"] == {str(held_out): held_out.stat().st_size}


def test_a_pretrained_tokenizer_is_used_as_it_is(config_of: MakeFiles, file: Path, tmp_path: Path) -> None:
    trained = prepare(config_of(file), progress=False)
    trained.tokenizer.model_max_length = 77
    trained.tokenizer.save_pretrained(tmp_path / "saved")
    config = config_of(file)
    config.tokenizer.kind, config.tokenizer.path = TokenizerKind.pretrained, str(tmp_path / "saved")
    prepared = prepare(config, progress=False)
    assert prepared.cache_hit
    assert prepared.tokenizer.model_max_length == 77


def test_duplicates_are_dropped_with_a_word(
    config_of: MakeFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_jsonl(tmp_path / "a.jsonl", [*TEXTS, *TEXTS[:7], " ", f"  {TEXTS[0]}\n"])
    prepared = prepare(config_of(file), progress=False)
    assert (prepared.facts["duplicates"], prepared.facts["empty"]) == (8, 1)
    assert "8 of 69 documents left out: duplicates" in caplog.text
    assert "1 of 69 documents left out: empty" in caplog.text


def test_too_little_text_says_what_to_do(config_of: MakeFiles, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "a.jsonl", ["A few words.", "And a few more."])
    with pytest.raises(ValueError, match=r"the validation split has 0 tokens.*raise corpus\.validation_fraction"):
        prepare(config_of(file, sequence_length=8, validation_fraction=1e-9), progress=False)
    with pytest.raises(ValueError, match=r"the training split has \d+ tokens, fewer than the 510 of one block"):
        prepare(config_of(file, sequence_length=512), progress=False)
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"corpus\.validation_fraction=.*between 0 and 1"):
            prepare(config_of(file, validation_fraction=share), progress=False)


def test_files_that_change_while_they_are_read_are_noticed(
    config_of: MakeFiles, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tokenizer.train

    def meanwhile(documents: Any, config: Any) -> list[str]:
        def read() -> Any:
            for document in documents:
                file.write_bytes(file.read_bytes() + b'{"text": "late"}\n')
                yield document

        return original(read(), config)

    monkeypatch.setattr(tokenizer, "train", meanwhile)
    with pytest.raises(ValueError, match="the corpus changed while it was read"):
        prepare(config_of(file), progress=False)


def test_unknown_tokens_are_warned_about(
    config_of: MakeFiles, file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    config = config_of(file)
    config.tokenizer.kind, config.tokenizer.path = TokenizerKind.pretrained, str(tmp_path / "vocab.txt")
    prepare(config, progress=False)
    assert "of the tokens are unknown to the tokenizer" in caplog.text


def test_the_progress_bar_does_not_touch_the_data(
    config_of: MakeFiles, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = prepare(config_of(file), progress=False)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    shown = prepare(config_of(file, cache_dir=str(file.parent / "other")), progress=True)
    assert capsys.readouterr().out == ""
    assert streams(shown) == streams(quiet)


@pytest.mark.skipif(not SIMPLEWIKI.is_dir(), reason="needs ../shared/data/simplewiki")
def test_real_articles(config_of: MakeFiles) -> None:
    prepared = prepare(config_of(SIMPLEWIKI / "validation.jsonl.xz", sequence_length=128), progress=False)
    assert sum(prepared.facts["documents"].values()) == 604
    assert prepared.facts["unknown"] < 0.001 * prepared.train.tokens


def test_the_source_is_named_in_the_facts(config_of: MakeFiles, file: Path) -> None:
    facts = prepare(config_of(file, name="mine"), progress=False).facts
    assert (facts["name"], facts["source"]) == ("mine", str(CorpusSource.files))
