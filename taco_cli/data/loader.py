"""Batches of blocks: which blocks a step reads is a function of (seed, step), so any step can be the first.

Step `s` reads the stream positions `s B` to `(s + 1) B - 1`; position `p` is the place `p mod n` of epoch
`p // n`, in an order of the `n` blocks drawn for the epoch. Batches run on across the ends of epochs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from taco_cli.randomness import permutation, stream_key

from .blocks import BlockStore

_EPOCHS_KEPT = 4


class StepDataset(Dataset[dict[str, Tensor]]):
    """Map from a step to this rank's batch.

    A micro-batch is a slice of the global batch, and a rank has its part of each, so micro-batches have the
    same members for any number of ranks.

    Raises:
        ValueError: the batch is no multiple of the micro-batch, or that no multiple of the number of ranks.
    """

    def __init__(
        self,
        store: BlockStore,
        seed: int,
        batch_size: int,
        micro_batch_size: int | None,
        rank: int,
        world_size: int,
    ) -> None:
        micro = micro_batch_size or batch_size
        if batch_size < 1 or batch_size % micro:
            raise ValueError(f"batch_size={batch_size} is no multiple of micro_batch_size={micro}")
        if micro % world_size:
            raise ValueError(f"micro_batch_size={micro} is no multiple of the {world_size} devices")
        self._store, self._batch_size = store, batch_size
        self._key = stream_key(seed, "data/order")
        self._offsets = torch.arange(batch_size).view(-1, world_size, micro // world_size)[:, rank].reshape(-1)
        self._orders: dict[int, Tensor] = {}

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        position = step * self._batch_size + self._offsets
        epoch = position // len(self._store)
        place = position % len(self._store)
        example = torch.empty_like(position)
        for number in sorted(set(epoch.tolist())):
            chosen = epoch == number
            example[chosen] = self._order(number)[place[chosen]]
        return {"input_ids": self._store.blocks(example), "example": example, "epoch": epoch}

    def _order(self, epoch: int) -> Tensor:
        if epoch not in self._orders:
            if len(self._orders) >= _EPOCHS_KEPT:
                del self._orders[min(self._orders)]
            self._orders[epoch] = permutation(self._key, epoch, len(self._store))
        return self._orders[epoch]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_orders": {}}  # a loader process draws them itself


class StepSampler(Sampler[int]):
    """The steps from `start` up to `end`, without end where that is None."""

    def __init__(self, start: int, end: int | None) -> None:
        self._start, self._end = start, end

    def __iter__(self) -> Iterator[int]:
        if self._end is None:
            return itertools.count(self._start)
        return iter(range(self._start, self._end))

    def __len__(self) -> int:
        if self._end is None:
            raise TypeError("the number of steps is not limited")
        return max(0, self._end - self._start)


def step_loader(
    store: BlockStore,
    *,
    seed: int,
    batch_size: int,
    micro_batch_size: int | None,
    start_step: int,
    end_step: int | None,
    rank: int = 0,
    world_size: int = 1,
    workers: int = 0,
) -> DataLoader[dict[str, Tensor]]:
    """Return a loader with one item per optimizer step, in order, the same for any number of workers.

    Args:
        store: the training split.
        seed: of the order.
        batch_size: sequences of a step over all ranks.
        micro_batch_size: sequences of a forward pass over all ranks; None: the batch.
        start_step: first step.
        end_step: step after the last one; None: no end.
        rank: this process.
        world_size: number of processes.
        workers: loader processes; 0 loads in this one.

    Returns:
        Loader of dictionaries: `input_ids` ``(B / world_size, L)``, `example` (block index) and `epoch`
        ``(B / world_size,)``, all int64; the rank's parts of the micro-batches follow each other.
    """
    dataset = StepDataset(store, seed, batch_size, micro_batch_size, rank, world_size)
    return DataLoader(
        dataset,
        sampler=StepSampler(start_step, end_step),
        batch_size=None,
        num_workers=workers,
        # A fork of a process whose libraries have threads can hang.
        multiprocessing_context="spawn" if workers else None,
    )
