from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from taco_cli.evaluation.tokens import sorted_batches, tokenize, training_batches


def test_special_tokens_of_sentences_and_pairs(tokenizer: PreTrainedTokenizerFast) -> None:
    tokens = tokenize([("the cat",), ("the cat", "a dog ran")], tokenizer, 32)
    ids, mask = tokens.batch([1, 0])
    pair, sentence = (" ".join(tokenizer.convert_ids_to_tokens(row)) for row in ids.tolist())
    assert pair == "[CLS] the cat [SEP] a dog ran [SEP]"
    assert sentence == "[CLS] the cat [SEP]" + 4 * " [PAD]"
    assert mask is not None
    assert torch.equal(mask, ids != tokenizer.pad_token_id)


def test_no_mask_without_padding(tokenizer: PreTrainedTokenizerFast) -> None:
    assert tokenize([("the cat",), ("a dog",)], tokenizer, 32).batch([0, 1])[1] is None


def test_longer_text_of_a_pair_is_cut(tokenizer: PreTrainedTokenizerFast) -> None:
    ids, _ = tokenize([("the " * 20, "cat dog")], tokenizer, 10).batch([0])
    assert tokenizer.convert_ids_to_tokens(ids[0].tolist()) == [
        *["[CLS]", "the", "the", "the", "the", "the", "[SEP]", "cat", "dog", "[SEP]"]
    ]


def test_spelled_out_special_tokens_are_text(tokenizer: PreTrainedTokenizerFast) -> None:
    ids, _ = tokenize([("a [MASK] cat",)], tokenizer, 32).batch([0])
    assert tokenizer.mask_token_id not in ids


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(2, 40), min_size=1, max_size=300), st.integers(1, 9), st.integers(0, 3))
def test_an_epoch_has_every_example_once(lengths: list[int], size: int, epoch: int) -> None:
    batches = list(training_batches(np.array(lengths), size, 1, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // size)


def test_order_depends_on_seed_and_epoch_alone() -> None:
    lengths = np.arange(100) % 17 + 2

    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(list(training_batches(lengths, 8, seed, epoch))).tolist()

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


@pytest.mark.parametrize("limit", [1, 30, 10_000])
def test_sorted_batches_keep_to_the_limit(limit: int) -> None:
    lengths = np.arange(50) % 13 + 2
    batches = list(sorted_batches(lengths, limit))
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))
    assert all(len(batch) == 1 or len(batch) * lengths[batch].max() <= limit for batch in batches)
