"""Ids of text word by word, where a tokenizer allows it: text repeats its words, and each is tokenised once.

BERT's tokenizers never look across whitespace, so the ids of a text are those of what lies between spaces. A
dictionary gives these several times faster than the library goes through the text.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable

import numpy as np
from tokenizers import Tokenizer

from .blocks import IdArray

_CACHED_CHARACTERS = 2 << 20  # of the words that are kept, which take some 25 times that
# What Python splits at and BERT removes, which joins its neighbours.
_SPLIT_OTHERWISE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")


def looks_at_words(tokenizer: Tokenizer) -> bool:
    """Whether the ids of a text are those of its words: BERT's normaliser, splitter and model, and no more."""
    parts = json.loads(tokenizer.to_str())
    kinds = [(parts[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    only_special = all(token["special"] for token in parts["added_tokens"])
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and only_special


class WordCache:
    """Tokenises texts by a dictionary of words.

    Args:
        encode: returns the ids of each text, for words that are new and for texts that have to be seen as a whole.
    """

    def __init__(self, encode: Callable[[list[str]], Iterable[IdArray]]) -> None:
        self._encode = encode
        self._ids: dict[str, tuple[int, ...]] = {}
        self._characters = 0

    def encode(self, texts: list[str]) -> list[IdArray]:
        """Return the ids of each text."""
        whole = [text for text in texts if _SPLIT_OTHERWISE.search(text)]
        of_whole = dict(zip(whole, self._encode(whole), strict=True))
        words = [[] if text in of_whole else text.split() for text in texts]
        self._learn(set().union(*words))
        return [of_whole[text] if text in of_whole else self._look_up(w) for text, w in zip(texts, words, strict=True)]

    def _look_up(self, words: list[str]) -> IdArray:
        ids = itertools.chain.from_iterable(map(self._ids.__getitem__, words))
        return np.fromiter(ids, dtype=np.int32)

    def _learn(self, words: set[str]) -> None:
        if self._characters > _CACHED_CHARACTERS:
            self._ids, self._characters = {}, 0
        new = [word for word in words if word not in self._ids]
        self._characters += sum(map(len, new))
        self._ids.update(zip(new, (tuple(ids.tolist()) for ids in self._encode(new)), strict=True))
