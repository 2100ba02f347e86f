from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.data import BlockStore, step_loader
from taco_cli.data.loader import StepDataset
from taco_cli.randomness import permutation, stream_key

from .test_blocks import store_of

LENGTH = 6


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    """Return 13 different blocks."""
    return store_of(tmp_path_factory.mktemp("store"), [list(range(10, 61))], LENGTH)


def steps(store: BlockStore, start: int, end: int | None, **settings: Any) -> list[dict[str, torch.Tensor]]:
    settings = {"seed": 1, "batch_size": 4, "micro_batch_size": None, **settings}
    loader = step_loader(store, start_step=start, end_step=end, **settings)
    return list(itertools.islice(loader, 20))


def test_a_batch_is_what_the_order_of_the_epochs_says(store: BlockStore) -> None:
    assert len(store) == 13
    order = [permutation(stream_key(1, "data/order"), epoch, 13).tolist() for epoch in range(4)]
    places = [(order[p // 13][p % 13], p // 13) for p in range(40)]
    for step, batch in enumerate(steps(store, 0, 10)):
        expected = places[4 * step : 4 * step + 4]
        assert list(zip(batch["example"].tolist(), batch["epoch"].tolist(), strict=True)) == expected
        assert torch.equal(batch["input_ids"], store.blocks(batch["example"]))
        assert all(tensor.dtype == torch.int64 for tensor in batch.values())


@given(batch_size=st.integers(1, 40), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_every_block_is_read_once_an_epoch(store: BlockStore, batch_size: int, seed: int) -> None:
    dataset = StepDataset(store, seed, batch_size, None, rank=0, world_size=1)
    batches = [dataset[step] for step in range(3 * 13 // batch_size + 1)]
    examples = torch.cat([batch["example"] for batch in batches])
    epochs = torch.cat([batch["epoch"] for batch in batches])
    for epoch in range(3):
        read = examples[epochs == epoch]
        if len(batches) * batch_size >= 13 * (epoch + 1):
            assert sorted(read.tolist()) == list(range(13))


def test_epochs_and_seeds_have_orders_of_their_own(store: BlockStore) -> None:
    examples = [steps(store, 0, 2, batch_size=13, seed=seed)[i]["example"].tolist() for seed in (1, 2) for i in (0, 1)]
    assert len({tuple(order) for order in examples}) == 4


def test_any_step_can_be_the_first(store: BlockStore) -> None:
    whole, later = steps(store, 0, 12), steps(store, 7, 12)
    assert len(later) == 5
    for one, other in zip(whole[7:], later, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_steps_without_end(store: BlockStore) -> None:
    loader = step_loader(store, seed=1, batch_size=4, micro_batch_size=None, start_step=3, end_step=None)
    for _ in range(2):  # it begins again at the same step
        found = [batch["example"].tolist() for batch in itertools.islice(loader, 5)]
        assert found == [batch["example"].tolist() for batch in steps(store, 3, 8)]
    with pytest.raises(TypeError, match="not limited"):
        len(loader)
    assert len(step_loader(store, seed=1, batch_size=4, micro_batch_size=None, start_step=3, end_step=9)) == 6


@pytest.mark.parametrize(("micro", "world"), [(12, 1), (12, 3), (6, 2), (4, 4), (2, 2)])
def test_micro_batches_have_the_same_members_for_any_number_of_ranks(store: BlockStore, micro: int, world: int) -> None:
    whole = steps(store, 5, 7, batch_size=12)
    parts = [steps(store, 5, 7, batch_size=12, micro_batch_size=micro, rank=r, world_size=world) for r in range(world)]
    share = micro // world
    for step, batch in enumerate(whole):
        for number in range(12 // micro):
            members = batch["example"][number * micro : (number + 1) * micro].tolist()
            of_ranks = [p[step]["example"][number * share : (number + 1) * share].tolist() for p in parts]
            assert [example for part in of_ranks for example in part] == members


@pytest.mark.multiprocess
def test_workers_do_not_show(store: BlockStore) -> None:
    alone, with_workers = steps(store, 2, 9), steps(store, 2, 9, workers=2)
    assert len(alone) == len(with_workers) == 7
    for one, other in zip(alone, with_workers, strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_sizes_that_do_not_divide_are_refused(store: BlockStore) -> None:
    with pytest.raises(ValueError, match=r"batch_size=4 is no multiple of micro_batch_size=3"):
        steps(store, 0, 1, micro_batch_size=3)
    with pytest.raises(ValueError, match=r"micro_batch_size=2 is no multiple of the 4 devices"):
        steps(store, 0, 1, micro_batch_size=2, world_size=4)


def test_old_orders_are_forgotten(store: BlockStore, tmp_path: Path) -> None:
    dataset = StepDataset(store, 1, 13, None, rank=0, world_size=1)
    first = dataset[0]["example"]
    for step in range(1, 20):
        dataset[step]
    assert len(dataset._orders) <= 4
    assert torch.equal(dataset[0]["example"], first)
