"""Masking: published shares, independent draws, and a pure function of example and position."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from taco_cli.config.schema import MaskingConfig
from taco_cli.objectives import IGNORE, Batch, Corrupted, Corruption, SpecialTokens
from tests.objectives.tiny import SPECIAL, make_batch

BERT = MaskingConfig()
MANY = make_batch(rows=1000, length=200)
WORDS = ~torch.isin(MANY.input_ids, torch.tensor(SPECIAL.special_ids))


def within(count: int, share: float, draws: int) -> bool:
    """Whether a count is within four standard deviations of its expectation."""
    return abs(count - share * draws) < 4 * (draws * share * (1 - share)) ** 0.5


@pytest.fixture(scope="module")
def many() -> Corrupted:
    return Corruption(BERT, SPECIAL, seed=1)(MANY)


def test_shares(many: Corrupted) -> None:
    draws, selected = int(WORDS.sum()), int(many.selected.sum())
    assert within(selected, 0.15, draws)
    masked = many.selected & (many.input_ids == SPECIAL.mask_id)
    kept = many.selected & (many.input_ids == many.originals)
    assert within(int(masked.sum()), 0.8, selected)
    by_chance = 0.1 / 35  # a random token may be the original again
    assert within(int(kept.sum()), 0.1 + by_chance, selected)
    assert within(int((many.selected & ~masked & ~kept).sum()), 0.1 - by_chance, selected)


def test_replacements_are_uniform_over_the_words(many: Corrupted) -> None:
    changed = many.selected & (many.input_ids != SPECIAL.mask_id) & (many.input_ids != many.originals)
    shift = (many.input_ids[changed] - many.originals[changed]) % 35  # 35 words follow 5 special ids
    assert chisquare(torch.bincount(shift, minlength=35)[1:].numpy()).pvalue > 1e-4
    assert chisquare(torch.bincount(many.input_ids[changed], minlength=40)[5:].numpy()).pvalue > 1e-4


def test_the_choice_is_independent_of_the_selection() -> None:
    # With one draw for both, a higher rate would change the shares among those selected at the lower one.
    low, high = (Corruption(replace(BERT, rate=rate), SPECIAL, seed=1)(MANY) for rate in (0.15, 0.6))
    assert (high.selected | ~low.selected).all()
    assert torch.equal(low.input_ids[low.selected], high.input_ids[low.selected])
    among_high = int((high.selected & (high.input_ids == SPECIAL.mask_id)).sum())
    assert within(among_high, 0.8, int(high.selected.sum()))


def test_selection_is_uniform_over_positions_and_independent_of_neighbours(many: Corrupted) -> None:
    by_position = many.selected[:, 1:-1].sum(0)
    assert chisquare(by_position.numpy()).pvalue > 1e-4
    both = many.selected[:, 1:-2] & many.selected[:, 2:-1]
    assert within(int(both.sum()), 0.15**2, both.numel())


def test_special_tokens_and_padding_are_never_selected() -> None:
    batch = make_batch(rows=50, padded=True)
    mask = batch.attention_mask
    assert mask is not None
    padded_with_words = replace(batch, input_ids=batch.input_ids.where(mask, torch.tensor(9)))
    everything = MaskingConfig(rate=1.0, mask=0.5, random=0.5)
    for each in (batch, padded_with_words):
        corrupted = Corruption(everything, SPECIAL, seed=1)(each)
        words = mask & ~torch.isin(each.input_ids, torch.tensor(SPECIAL.special_ids))
        assert torch.equal(corrupted.selected, words)
        assert torch.equal(corrupted.eligible, words)
        assert torch.equal(corrupted.input_ids[~words], each.input_ids[~words])


def test_labels_and_inputs_follow_the_selection(many: Corrupted) -> None:
    assert torch.equal(many.labels != IGNORE, many.selected)
    assert torch.equal(many.labels[many.selected], MANY.input_ids[many.selected])
    assert torch.equal(many.input_ids[~many.selected], MANY.input_ids[~many.selected])
    assert torch.equal(many.originals, MANY.input_ids)


def test_always_mask() -> None:
    corrupted = Corruption(MaskingConfig(mask=1.0, random=0.0), SPECIAL, seed=1)(MANY)
    assert (corrupted.input_ids[corrupted.selected] == SPECIAL.mask_id).all()


def test_rate_zero_selects_nothing() -> None:
    assert not Corruption(MaskingConfig(rate=0.0), SPECIAL, seed=1)(MANY).selected.any()


@settings(deadline=None, max_examples=20)
@given(order=st.permutations(range(8)), size=st.integers(1, 8))
def test_masks_do_not_depend_on_the_batch(order: list[int], size: int) -> None:
    corrupt, batch = Corruption(replace(BERT, rate=0.5), SPECIAL, seed=3), make_batch(rows=8)
    whole = corrupt(batch)
    moved = [
        corrupt(Batch(batch.input_ids[rows], batch.example[rows], batch.epoch[rows]))
        for rows in (order[start : start + size] for start in range(0, 8, size))
    ]
    for name in ("input_ids", "selected", "labels"):
        joined = torch.cat([getattr(part, name) for part in moved])
        assert torch.equal(joined, getattr(whole, name)[order])


def test_masks_differ_between_epochs_examples_and_seeds() -> None:
    batch = make_batch(rows=4, length=50)
    seen = {
        Corruption(BERT, SPECIAL, seed)(replace(batch, epoch=batch.epoch + epoch)).selected.numpy().tobytes()
        for seed in (1, 2)
        for epoch in (0, 1)
    }
    assert len(seen) == 4
    same_text = replace(batch, input_ids=batch.input_ids[:1].expand(4, -1))
    selected = Corruption(BERT, SPECIAL, seed=1)(same_text).selected
    assert len({row.numpy().tobytes() for row in selected}) == 4


def test_split_gives_micro_batches_in_order() -> None:
    whole = Corruption(BERT, SPECIAL, seed=1)(make_batch(rows=5, padded=True))
    parts = whole.split(2)
    assert [len(part.input_ids) for part in parts] == [2, 2, 1]
    for name in ("input_ids", "anchors", "example", "attention_mask"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))
    assert Corruption(BERT, SPECIAL, seed=1)(make_batch()).split(2)[0].attention_mask is None


@pytest.mark.parametrize(
    ("masking", "key"),
    [
        (MaskingConfig(rate=1.5), "masking.rate"),
        (MaskingConfig(mask=-0.1), "masking.mask"),
        (MaskingConfig(mask=0.8, random=0.3), "masking.random"),
    ],
)
def test_shares_that_are_none_are_refused(masking: MaskingConfig, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        Corruption(masking, SPECIAL, seed=1)


def test_a_vocabulary_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="all 3 ids"):
        Corruption(BERT, SpecialTokens(mask_id=2, pad_id=0, special_ids=(0, 1, 2), vocab_size=3), seed=1)
