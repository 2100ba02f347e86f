"""Ids by a dictionary of words are those that the library gives for the whole text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from taco_cli.data import words
from taco_cli.data.blocks import IdArray
from taco_cli.data.tokenizer import bert_tokenizer, load
from taco_cli.data.words import Words, looks_at_words

from .conftest import made_up_texts
from .test_tokenizer import roberta_file, train

TEXTS = [*made_up_texts(30), "Café, naïve: 10 °C 京都 x²!", "[MASK]a [SEP] ##b", "a" * 150 + " " + "ab " * 200, "", " "]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return bert_tokenizer(train(TEXTS))


class Library:
    """Tokenises as a whole; remembers what it was given."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.given: list[str] = []
        self._backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._backend.encode_special_tokens = True

    def __call__(self, texts: list[str]) -> list[IdArray]:
        self.given += texts
        encodings = self._backend.encode_batch(texts, add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]


def assert_same(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> None:
    library = Library(tokenizer)
    found = Words(library).encode(texts)
    assert [ids.tolist() for ids in found] == [ids.tolist() for ids in library(texts)]


def test_texts_have_the_ids_of_the_library(tokenizer: PreTrainedTokenizerFast) -> None:
    assert_same(tokenizer, TEXTS)
    assert_same(tokenizer, [])


def test_every_character_between_letters(tokenizer: PreTrainedTokenizerFast) -> None:
    """All of the first 0x3100, where spaces, controls, accents and joiners are, and the rest here and there."""
    characters = [chr(c) for c in [*range(0x3100), *range(0x3100, 0x110000, 97)] if not 0xD800 <= c < 0xE000]
    assert_same(tokenizer, [f"ab{c}cd {c} e{c}" for c in characters])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.sampled_from("aB é\u0301\n\t\x0b\x1f\x85\u2028\xa0\u200b\ufeff京.[MASK]#"), max_size=30)))
@example(["a\x1cb", "a b"])
def test_any_text_has_the_ids_of_the_library(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> None:
    assert_same(tokenizer, texts)


def test_a_word_is_tokenised_once(tokenizer: PreTrainedTokenizerFast) -> None:
    library = Library(tokenizer)
    subject = Words(library)
    subject.encode(["abc de abc", "de"])
    subject.encode(["fg abc", "odd\x1csign abc"])
    assert library.given == [",", "abc , de", "odd\x1csign abc", "fg"]


def test_signs_are_words_of_their_own(tokenizer: PreTrainedTokenizerFast) -> None:
    library = Library(tokenizer)
    subject = Words(library)
    subject.encode(["(abc) abc. de-abc"])
    library.given.clear()
    subject.encode(["abc-de. (de) -abc"])
    assert library.given == []


@pytest.mark.parametrize("pieces", [[], [","]], ids=["unknown", "known"])
def test_the_sign_between_new_words_may_be_one_of_them(pieces: list[str]) -> None:
    tokenizer = bert_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", ".", *pieces])
    assert_same(tokenizer, ["a, b x a", ",", "a b . a", "x ,, y"])


def test_what_is_remembered_is_bounded(tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_KEPT_CHARACTERS", 50)
    library = Library(tokenizer)
    subject = Words(library)
    for text in TEXTS * 2:
        (found,) = subject.encode([text])
        (whole,) = Library(tokenizer)([text])
        assert found.tolist() == whole.tolist()
    given = " ".join(library.given).split()
    assert max(given.count(word) for word in set(given) - {","}) > 1


def test_only_tokenizers_that_never_look_across_spaces(
    tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert looks_at_words(tokenizer.backend_tokenizer)
    roberta = roberta_file(tmp_path_factory.mktemp("roberta"), ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    assert not looks_at_words(load(str(roberta)).backend_tokenizer)
    with_phrase = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    with_phrase.add_tokens(["two words"])
    assert not looks_at_words(with_phrase)
