"""Ids of text word by word, where a tokenizer allows it: text repeats its words, and each is tokenised once.

BERT's tokenizers never look across whitespace, so the ids of a text are those of what lies between spaces. To look
them up is several times faster than to go through the text.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from .blocks import IdArray

_KEPT_CHARACTERS = 2 << 20  # of the words that are remembered, which take some 20 times that
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
        self._forget()

    def encode(self, texts: list[str]) -> list[IdArray]:
        """Return the ids of each text."""
        whole = [any(sign in text for sign in _NO_SPACES) for text in texts]
        of_whole = iter(self._encode(list(itertools.compress(texts, whole))))
        of_others = iter(self._of_words([text.split() for text, one in zip(texts, whole, strict=True) if not one]))
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
        arrays = list(self._encode(new))
        lengths = np.fromiter(map(len, arrays), dtype=np.int64, count=len(arrays))
        self._starts = np.concatenate((self._starts, len(self._ids) + lengths.cumsum() - lengths))
        self._lengths = np.concatenate((self._lengths, lengths))
        self._ids = np.concatenate((self._ids, *arrays))
        self._characters += sum(map(len, new))

    def _forget(self) -> None:
        self._numbers = _Numbers()
        self._characters = 0
        self._starts = self._lengths = np.empty(0, dtype=np.int64)
        self._ids = np.empty(0, dtype=np.int32)


class _Numbers(dict[str, int]):
    """Counts words through as they are met."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
