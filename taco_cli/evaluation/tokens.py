"""Texts as token ids, and batches of similar length, so that padding costs little and is never seen.

Legend: N sequences, L positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from taco_cli.randomness import permutation, stream_key

IntArray = npt.NDArray[np.int64]
_AT_ONCE = 16_384  # texts; an encoding takes some 50 times its text
_POOL = 32  # batches that are sorted by length together


@dataclass(frozen=True)
class Tokens:
    """Sequences of ids, one after the other in `flat`; sequence i is ``flat[starts[i]:starts[i + 1]]``."""

    flat: npt.NDArray[np.int32]
    starts: IntArray
    pad_id: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of tokens of each sequence, special ones included."""
        return np.diff(self.starts)

    def batch(self, indices: Sequence[int] | IntArray, device: str = "cpu") -> tuple[Tensor, Tensor | None]:
        """Return ids ``(N, L)`` and the mask ``(N, L)`` that is True at real tokens, None without padding."""
        rows = np.asarray(indices)
        lengths = self.lengths[rows]
        column = np.arange(lengths.max())
        real_NL = column < lengths[:, None]
        place_NL = np.where(real_NL, self.starts[rows][:, None] + column, 0)
        ids_NL = np.where(real_NL, self.flat[place_NL], self.pad_id).astype(np.int64)
        mask = None if real_NL.all() else torch.from_numpy(real_NL).to(device)
        return torch.from_numpy(ids_NL).to(device), mask


def tokenize(texts: Sequence[tuple[str, ...]], tokenizer: PreTrainedTokenizerFast, length: int) -> Tokens:
    """Turn sentences and pairs into ids with the tokenizer's own special tokens, without segment ids.

    A longer sequence loses tokens from the end of the longer of its texts. ``[MASK]`` spelled out is text.
    """
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())  # the caller's stays as it is
    backend.no_padding()
    backend.enable_truncation(length, strategy="longest_first")
    backend.encode_special_tokens = True
    parts: list[npt.NDArray[np.int32]] = []
    for start in range(0, len(texts), _AT_ONCE):
        inputs = [text if len(text) > 1 else text[0] for text in texts[start : start + _AT_ONCE]]
        parts += [np.array(encoding.ids, dtype=np.int32) for encoding in backend.encode_batch_fast(inputs)]
    starts = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=starts[1:])
    assert tokenizer.pad_token_id is not None
    return Tokens(np.concatenate(parts), starts, int(tokenizer.pad_token_id))


def training_batches(lengths: IntArray, size: int, seed: int, epoch: int) -> Iterator[IntArray]:
    """Yield the batches of an epoch: a random order, sorted by length within pools of 32 batches, then shuffled.

    Every example comes once; the last batch of the epoch's order may be smaller.
    """
    order = permutation(stream_key(seed, "glue/order"), epoch, len(lengths)).numpy()
    batches: list[IntArray] = []
    for start in range(0, len(order), _POOL * size):
        pool = order[start : start + _POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    for index in permutation(stream_key(seed, "glue/batches"), epoch, len(batches)).tolist():
        yield batches[index]


def sorted_batches(lengths: IntArray, tokens: int) -> Iterator[IntArray]:
    """Yield all examples from the longest to the shortest, at most so many tokens (with padding) at a time."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, tokens // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size
