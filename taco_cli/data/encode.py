"""Documents to token ids: many at a time, in all cores, in order, with bounded memory.

The `tokenizers` library works in threads of its own, so where all text goes through it, one thread here keeps it
busy while the caller reads the next documents and writes the last ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from .blocks import IdArray
from .split import pieces
from .words import Words, looks_at_words

Label = TypeVar("Label")

_CHUNK_CHARACTERS = 2 << 20  # text that is tokenised at once; an encoding takes some 50 times its text


class Encoder:
    """Turns text into ids of a tokenizer, without special tokens.

    A special token that is spelled out in the text, such as ``[MASK]``, is text like any other.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())  # the caller's stays as it is
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        self._backend = backend
        self._by_words = looks_at_words(backend)
        self._encode_batch = Words(self._tokenise).encode if self._by_words else self._tokenise
        ids = {i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id}
        self._is_special = np.zeros(len(tokenizer), dtype=bool)
        self._is_special[sorted(ids)] = True

    def encode(self, texts: list[str]) -> list[IdArray]:
        """Return the ids of each text."""
        cut = [list(pieces(text)) for text in texts]
        arrays = self._encode_pieces([piece for text in cut for piece in text])
        joined = [np.concatenate([next(arrays) for _ in text]) for text in cut]
        # A model without a rule that splits "[MASK]" could still find it in its vocabulary.
        return [ids[~self._is_special[ids]] for ids in joined]

    def _encode_pieces(self, texts: list[str]) -> Iterator[IdArray]:
        for _, batch in _chunks((None, text) for text in texts):  # one document can be larger than a chunk
            yield from self._encode_batch(batch)

    def _tokenise(self, texts: list[str]) -> list[IdArray]:
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    def stream(self, documents: Iterable[tuple[Label, str]]) -> Iterator[tuple[Label, IdArray]]:
        """Yield label and ids of each labelled document, in order."""
        if self._by_words:  # Python's own work: a thread would only wait for the caller's
            for labels, texts in _chunks(documents):
                yield from zip(labels, self.encode(texts), strict=True)
            return
        waiting: deque[tuple[list[Label], Future[list[IdArray]]]] = deque()
        with ThreadPoolExecutor(1) as thread:
            for labels, texts in _chunks(documents):
                waiting.append((labels, thread.submit(self.encode, texts)))
                if len(waiting) > 1:
                    yield from _finished(*waiting.popleft())
            while waiting:
                yield from _finished(*waiting.popleft())


def _finished(labels: list[Any], future: Future[list[IdArray]]) -> Iterator[tuple[Any, IdArray]]:
    return zip(labels, future.result(), strict=True)


def _chunks(documents: Iterable[tuple[Label, str]]) -> Iterator[tuple[list[Label], list[str]]]:
    labels: list[Label] = []
    texts: list[str] = []
    size = 0
    for label, text in documents:
        labels.append(label)
        texts.append(text)
        size += len(text)
        if size >= _CHUNK_CHARACTERS:
            yield labels, texts
            labels, texts, size = [], [], 0
    if texts:
        yield labels, texts
