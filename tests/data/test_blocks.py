from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.data import blocks
from taco_cli.data.blocks import BlockStore, StreamWriter, unigram_entropy, validation_blocks

CLS, SEP = 2, 3


def store_of(
    folder: Path, documents: list[list[int]], length: int, split: str = "train", vocab_size: int = 100
) -> BlockStore:
    writer = StreamWriter(folder, split, vocab_size, SEP)
    for document in documents:
        writer.add(np.array(document, dtype=np.int64))
    writer.close()
    return BlockStore(folder, split, length, CLS, SEP, (0, 1, CLS, SEP, 4))


@given(
    documents=st.lists(st.lists(st.integers(5, 99), min_size=1, max_size=9), min_size=6, max_size=20),
    length=st.integers(3, 12),
)
@settings(deadline=None, max_examples=40)
def test_blocks_hold_the_stream_once_and_the_last_goes_on_with_its_start(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], length: int
) -> None:
    store = store_of(tmp_path_factory.mktemp("store"), documents, length)
    stream = [token for document in documents for token in [*document, SEP]]
    stride = length - 2
    assert len(store) == math.ceil(len(stream) / stride)
    endless = stream + stream
    expected = [[CLS, *endless[i * stride : (i + 1) * stride], SEP] for i in range(len(store))]
    assert store.blocks(torch.arange(len(store))).tolist() == expected
    assert store.token_counts.tolist() == [stream.count(token) for token in range(100)]


def test_blocks_come_in_the_order_asked_for(tmp_path: Path) -> None:
    store = store_of(tmp_path, [list(range(5, 60))], 6)
    all_blocks = store.blocks(np.arange(len(store)))
    assert torch.equal(store.blocks(np.array([3, 0, 3])), all_blocks[[3, 0, 3]])
    assert all_blocks.dtype == torch.int64
    assert store.blocks(np.array([], dtype=np.int64)).shape == (0, 6)
    for wrong in (-1, len(store)):
        with pytest.raises(IndexError, match=f"of {len(store)}"):
            store.blocks(np.array([wrong]))


@pytest.mark.parametrize(("vocab_size", "kind"), [(65535, "uint16"), (65536, "uint32"), (200_000, "uint32")])
def test_ids_are_stored_in_two_bytes_where_they_fit(tmp_path: Path, vocab_size: int, kind: str) -> None:
    ids = [5, vocab_size - 1, 7, 8]
    store = store_of(tmp_path, [ids], 6, vocab_size=vocab_size)
    assert store.blocks([0])[0].tolist() == [CLS, *ids, SEP]
    assert (tmp_path / "train.bin").stat().st_size == 5 * np.dtype(kind).itemsize


def test_writing_in_several_parts_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [[5 + i, 6 + i] for i in range(50)]
    whole = store_of(tmp_path, documents, 8)
    (tmp_path / "parts").mkdir()
    monkeypatch.setattr(blocks, "_FLUSH_TOKENS", 7)
    parts = store_of(tmp_path / "parts", documents, 8)
    assert (tmp_path / "train.bin").read_bytes() == (tmp_path / "parts" / "train.bin").read_bytes()
    assert torch.equal(parts.token_counts, whole.token_counts)


def test_a_store_travels_to_another_process_without_its_tokens(tmp_path: Path) -> None:
    store = store_of(tmp_path, [list(range(5, 100)) * 100], 16)
    data = pickle.dumps(store)
    assert len(data) < 5000
    assert torch.equal(pickle.loads(data).blocks([1, 2]), store.blocks([1, 2]))


def test_a_split_smaller_than_a_block_is_refused_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the training split has 4 tokens, fewer than the 6 of one block of seq"):
        store_of(tmp_path, [[5, 6, 7]], 8)
    with pytest.raises(ValueError, match=r"validation split has 0 tokens.*raise corpus\.validation_fraction"):
        store_of(tmp_path, [], 8, split="validation")
    with pytest.raises(ValueError, match=r"sequence_length=2: at least 3"):
        store_of(tmp_path, [[5, 6, 7]], 2)


def test_validation_blocks_are_spread_evenly(tmp_path: Path) -> None:
    store = store_of(tmp_path, [list(range(5, 84))], 10)
    assert len(store) == 10
    assert torch.equal(validation_blocks(store, 5), store.blocks([0, 2, 4, 6, 8]))
    assert torch.equal(validation_blocks(store, 4), store.blocks([0, 2, 5, 7]))
    assert torch.equal(validation_blocks(store, 99), store.blocks(range(10)))


def test_unigram_entropy_is_that_of_the_frequencies_of_words(tmp_path: Path) -> None:
    store = store_of(tmp_path, [[5, 6, 5], [7, 5]], 4)
    assert unigram_entropy(store) == pytest.approx(0.6 * math.log(1 / 0.6) + 0.4 * math.log(5))
    assert store.token_counts[SEP] == 2  # the call changes nothing
