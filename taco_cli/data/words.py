"""Ids of text word by word, where a tokenizer allows it: text repeats its words, and each is tokenised once.

BERT's tokenizers never look across whitespace, and take each sign of punctuation for a word of its own. So the ids of
a text are those of its words, and to look them up is several times faster than to go through the text.
"""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from .blocks import IdArray

_KEPT_CHARACTERS = 4 << 20  # of the words that are remembered, which take some 30 times that
_NEW_AT_ONCE = 1000  # words that are tokenised as one text
_BETWEEN = ","  # them
# Python splits at these; BERT takes them out and joins what was around them.
_NO_SPACES = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"


def looks_at_words(tokenizer: Tokenizer) -> bool:
    """Whether the ids of a text are those of its words: BERT's normaliser, splitter and model, and no more."""
    parts = json.loads(tokenizer.to_str())
    kinds = [(parts[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    only_special = all(token["special"] for token in parts["added_tokens"])
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and only_special


class Words:
    """Tokenises texts by a dictionary of their words.

    Args:
        encode: returns the ids of each text; it is given words that are new, and texts with signs at which words
            cannot be told apart.
    """

    _ids: IdArray
    _starts: npt.NDArray[np.int64]  # by a word's number; where its ids are in `_ids`
    _lengths: npt.NDArray[np.int64]

    def __init__(self, encode: Callable[[list[str]], Iterable[IdArray]]) -> None:
        self._encode = encode
        self._between: IdArray | None = None
        self._forget()

    def encode(self, texts: list[str]) -> list[IdArray]:
        """Return the ids of each text."""
        if self._between is None and texts:
            (self._between,) = self._encode([_BETWEEN])
        whole = [any(sign in text for sign in _NO_SPACES) for text in texts]
        of_whole = iter(self._encode(list(itertools.compress(texts, whole))))
        of_others = iter(self._of_words([_words(text) for text, one in zip(texts, whole, strict=True) if not one]))
        return [next(of_whole) if one else next(of_others) for one in whole]

    def _of_words(self, texts: list[list[str]]) -> list[IdArray]:
        if self._characters > _KEPT_CHARACTERS:
            self._forget()
        counts = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        every = itertools.chain.from_iterable(texts)
        numbers = np.fromiter(map(self._numbers.__getitem__, every), dtype=np.int32, count=int(counts.sum()))
        self._learn()
        ends = np.concatenate(([0], self._lengths[numbers].cumsum()))[counts.cumsum()]
        return np.split(self._gather(numbers), ends[:-1]) if texts else []

    def _gather(self, numbers: npt.NDArray[np.int32]) -> IdArray:
        lengths = self._lengths[numbers]
        before = lengths.cumsum() - lengths  # in the result
        gathered: IdArray = self._ids[np.repeat(self._starts[numbers] - before, lengths) + np.arange(lengths.sum())]
        return gathered

    def _learn(self) -> None:
        """Tokenise the words that were numbered since the last call."""
        new = list(itertools.islice(self._numbers, len(self._lengths), None))
        ids, lengths = self._tokenise(new)
        self._starts = np.concatenate((self._starts, len(self._ids) + lengths.cumsum() - lengths))
        self._lengths = np.concatenate((self._lengths, lengths))
        self._ids = np.concatenate((self._ids, ids))
        self._characters += sum(map(len, new))

    def _tokenise(self, words: list[str]) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """Return the ids of all words, and how many each has."""
        groups = [words[start : start + _NEW_AT_ONCE] for start in range(0, len(words), _NEW_AT_ONCE)]
        joined = self._encode([f" {_BETWEEN} ".join(group) for group in groups])
        found = [self._apart(group, ids) for group, ids in zip(groups, joined, strict=True)]
        every = [ids for ids, _ in found] or [np.empty(0, dtype=np.int32)]
        lengths = [lengths for _, lengths in found] or [np.empty(0, dtype=np.int64)]
        return np.concatenate(every), np.concatenate(lengths)

    def _apart(self, group: list[str], joined: IdArray) -> tuple[IdArray, npt.NDArray[np.int64]]:
        is_between = joined == self._between
        ends = np.flatnonzero(is_between)
        if len(ends) == len(group) - 1:
            return joined[~is_between], np.diff(ends, prepend=-1, append=len(joined)) - 1
        arrays = list(self._encode(group))  # one of the words has that id itself
        return np.concatenate(arrays), np.fromiter(map(len, arrays), dtype=np.int64, count=len(arrays))

    def _forget(self) -> None:
        self._numbers = _Numbers()
        self._characters = 0
        self._starts = self._lengths = np.empty(0, dtype=np.int64)
        self._ids = np.empty(0, dtype=np.int32)


def _words(text: str) -> list[str]:
    for sign in string.punctuation:
        if sign in text:
            text = text.replace(sign, f" {sign} ")
    return text.split()


class _Numbers(dict[str, int]):
    """Counts words through as they are met."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
