"""The packed corpus: a flat file of token ids, read as blocks of any length.

A split is stored as the ids of its documents, each followed by [SEP]. Block `i` of length `L` is

    [CLS] stream[i (L - 2)] ... stream[(i + 1) (L - 2) - 1] [SEP]

and the last block goes on with the first tokens of the stream, so no block has padding. The file doesn't
depend on the length, so another length needs no second preparation.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

FORMAT_VERSION = 1  # of the files; part of the cache's key

_FLUSH_TOKENS = 1 << 20
IdArray = npt.NDArray[np.integer[Any]]


class StreamWriter:
    """Writes the token stream of one split: `<split>.bin` and `<split>.json` with its facts."""

    def __init__(self, folder: Path, split: str, vocab_size: int, sep_id: int) -> None:
        self._folder, self._split, self._sep_id = folder, split, sep_id
        self._type: np.dtype[Any] = np.dtype(np.uint16 if vocab_size < 2**16 else np.uint32)
        self._counts = np.zeros(vocab_size, dtype=np.int64)
        self._pending: list[IdArray] = []
        self._pending_tokens = 0
        self._file = (folder / f"{split}.bin").open("wb")

    def add(self, ids: IdArray) -> None:
        """Append a document, without special tokens."""
        self._pending += [ids, np.array([self._sep_id], dtype=ids.dtype)]
        self._pending_tokens += len(ids) + 1
        if self._pending_tokens >= _FLUSH_TOKENS:
            self._flush()

    def close(self) -> npt.NDArray[np.int64]:
        """Write what is left; return how often each id occurs."""
        self._flush()
        self._file.close()
        np.save(self._folder / f"{self._split}.counts.npy", self._counts)
        layout = {"tokens": int(self._counts.sum()), "dtype": self._type.name}
        (self._folder / f"{self._split}.json").write_text(json.dumps(layout))
        return self._counts

    def _flush(self) -> None:
        if self._pending:
            ids = np.concatenate(self._pending)
            self._counts += np.bincount(ids, minlength=len(self._counts))
            self._file.write(ids.astype(self._type).tobytes())
            self._pending, self._pending_tokens = [], 0


class BlockStore:
    """One split as blocks; reads from the disk, so it may be larger than memory.

    Args:
        folder: of the cache entry.
        split: `train` or `validation`.
        sequence_length: tokens of a block, [CLS] and [SEP] included.
        cls_id: first token of each block.
        sep_id: last token of each block, and end of each document.
        special_ids: tokens that no text gives, for :func:`unigram_entropy`.

    Raises:
        ValueError: the split has fewer tokens than one block.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        sequence_length: int,
        cls_id: int,
        sep_id: int,
        special_ids: tuple[int, ...],
    ) -> None:
        layout = json.loads((folder / f"{split}.json").read_text())
        self.folder, self.split, self.sequence_length = folder, split, sequence_length
        self.tokens: int = layout["tokens"]  # of the stream, the ends of documents included
        self.token_counts = torch.from_numpy(np.load(folder / f"{split}.counts.npy"))  # (V,), of the stream
        self.special_ids = special_ids
        self._cls_id, self._sep_id = cls_id, sep_id
        self._dtype = np.dtype(layout["dtype"])
        self._stride = sequence_length - 2
        if self._stride < 1:
            raise ValueError(f"sequence_length={sequence_length}: at least 3, for [CLS], one token and [SEP]")
        self._check_size()
        self._open()

    def __len__(self) -> int:
        return math.ceil(self.tokens / self._stride)

    def blocks(self, indices: Tensor | npt.NDArray[np.int64]) -> Tensor:
        """Return blocks by their indices ``(N,)`` as an int64 tensor ``(N, L)``.

        Raises:
            IndexError: an index is not in ``range(len(self))``.
        """
        index_N = np.asarray(indices, dtype=np.int64)
        if index_N.size and (index_N.min() < 0 or index_N.max() >= len(self)):
            raise IndexError(f"blocks {index_N.min()} to {index_N.max()} of {len(self)}")
        place_NS = (index_N[:, None] * self._stride + np.arange(self._stride)) % self.tokens
        block_NL = np.empty((len(index_N), self.sequence_length), dtype=np.int64)
        block_NL[:, 0], block_NL[:, -1] = self._cls_id, self._sep_id
        block_NL[:, 1:-1] = self._ids[place_NS]
        return torch.from_numpy(block_NL)

    def _check_size(self) -> None:
        if self.tokens >= self._stride:
            return
        length = f"sequence_length={self.sequence_length}"
        size = f"{self.tokens} tokens, fewer than the {self._stride} of one block of {length}"
        if self.split == "train":
            raise ValueError(f"the training split has {size}; give more text or a smaller sequence_length")
        raise ValueError(
            f"the validation split has {size}; raise corpus.validation_fraction, give more text in "
            "corpus.validation_files, or lower sequence_length"
        )

    def _open(self) -> None:
        path = self.folder / f"{self.split}.bin"
        # The plain view spares a subclass check for each access.
        self._ids = np.memmap(path, dtype=self._dtype, mode="r", shape=(self.tokens,)).view(np.ndarray)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_ids"]  # a loader process opens the file itself
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def validation_blocks(store: BlockStore, limit: int) -> Tensor:
    """Return ``min(limit, len(store))`` blocks spread evenly over the store, as ``(n, L)`` int64."""
    number = min(limit, len(store))
    return store.blocks(torch.arange(number) * len(store) // number)


def unigram_entropy(store: BlockStore) -> float:
    """Return the entropy in nats of the tokens' frequencies, special tokens left out.

    It is the loss of a model that knows word frequencies and nothing else.
    """
    counts = store.token_counts.double()
    counts[list(store.special_ids)] = 0
    share = counts[counts > 0] / counts.sum()
    return float(-(share * share.log()).sum())
