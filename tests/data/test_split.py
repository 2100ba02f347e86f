from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.config.schema import CorpusConfig
from taco_cli.data import split as splitting
from taco_cli.data.split import TRAIN, VALIDATION, Counts, pieces, split_documents

from .conftest import made_up_texts


class ListSource:
    total_bytes: int | None = None
    done_bytes = 0

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def fingerprint(self) -> str:
        return ""

    def documents(self) -> Iterator[str]:
        return iter(self.texts)

    def facts(self) -> dict[str, Any]:
        return {}


def split(
    texts: list[str], held_out: list[str] | None = None, fraction: float = 1.0, share: float = 0.2
) -> tuple[list[str], list[str], Counts]:
    counts = Counts()
    validation = None if held_out is None else ListSource(held_out)
    corpus = CorpusConfig(validation_fraction=share)
    found = list(split_documents(corpus, ListSource(texts), validation, counts, fraction))
    in_split = {name: [d.text for d in found if d.split == name] for name in (TRAIN, VALIDATION)}
    return in_split[TRAIN], in_split[VALIDATION], counts


@given(st.lists(st.text(alphabet="ab \n", max_size=3), max_size=40))
@settings(deadline=None)
def test_each_distinct_document_is_in_exactly_one_split(texts: list[str]) -> None:
    train, validation, counts = split(texts)
    assert len(train) + len(validation) == len({*train, *validation})
    assert {*train, *validation} == {text.strip() for text in texts} - {""}
    assert counts.read == len(texts)
    assert counts.read == len(train) + len(validation) + counts.duplicates + counts.empty


def test_the_split_does_not_depend_on_the_order() -> None:
    texts = made_up_texts(200)
    train, validation, _ = split(texts)
    train_reversed, validation_reversed, _ = split(texts[::-1])
    assert train_reversed == train[::-1]
    assert validation_reversed == validation[::-1]
    assert 20 <= len(validation) <= 60


def test_a_training_document_that_is_held_out_is_dropped() -> None:
    train, validation, counts = split(["a", "b", " b\n", "c", "c"], held_out=["b", "d", "d"])
    assert (train, validation) == (["a", "c"], ["b", "d"])
    assert (counts.in_validation, counts.duplicates) == (2, 2)
    assert counts.documents == {TRAIN: 2, VALIDATION: 2}


def test_fractions_are_nested_and_leave_validation_alone() -> None:
    texts = made_up_texts(400)
    whole, validation, _ = split(texts)
    previous: set[str] = set()
    for fraction in (0.1, 0.25, 0.5):
        train, same, counts = split(texts, fraction=fraction)
        assert same == validation
        assert previous < set(train) < set(whole)
        assert len(train) == pytest.approx(fraction * len(whole), rel=0.3)
        assert counts.beyond_fraction == len(whole) - len(train)
        previous = set(train)


def test_words_are_counted() -> None:
    _, _, counts = split(["one two", "three"], held_out=["four five  six"])
    assert counts.words == {TRAIN: 3, VALIDATION: 3}


def test_pieces_are_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_PIECE_CHARACTERS", 10)
    for text in ["", "x" * 95, "ab " * 40, "   \n" * 12, made_up_texts(1)[0]]:
        found = list(pieces(text))
        assert "".join(found) == text
        assert max(map(len, found)) <= 20


def test_a_cut_is_not_where_a_normalizer_joins_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_PIECE_CHARACTERS", 4)
    assert list(pieces("aaaa\x0bbbb ccc")) == ["aaaa\x0bbbb", " ccc"]
    assert list(pieces("aaaa\u2003bbb ccc")) == ["aaaa", "\u2003bbb", " ccc"]
