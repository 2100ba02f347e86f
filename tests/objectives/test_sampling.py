"""Laws of positives and negatives: where they may be, and that they are uniform there."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from taco_cli.config.schema import Anchors, WindowEdges
from taco_cli.objectives.sampling import (
    AnchorIndex,
    RealTokens,
    anchor_mask,
    draw_matched_negatives,
    draw_negatives,
    draw_positives,
)
from taco_cli.randomness import stream_key

ROWS, LENGTH = 5, 7
HOLES = (
    torch.tensor([[1] * 7, [1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 0, 1, 0], [1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 1]])
    > 0
)
KEY = stream_key(1, "test")


def one_anchor(row: int, column: int, draws: int) -> AnchorIndex:
    """The same place under many names, as if in as many epochs."""
    place = torch.ones(draws, dtype=torch.int64)
    return AnchorIndex(row * place, column * place, torch.arange(draws), 7 * place)


def is_uniform(drawn: Tensor, allowed: list[int]) -> bool:
    """Whether all draws are allowed and their counts pass a chi-square test (fixed draws: never flaky)."""
    counts = Counter(drawn.flatten().tolist())
    assert set(counts) <= set(allowed), sorted(set(counts) - set(allowed))
    return len(allowed) == 1 or bool(chisquare([counts[value] for value in allowed]).pvalue > 1e-4)


def real_in(row: int, columns: range, mask: Tensor | None) -> list[int]:
    return [row * LENGTH + c for c in columns if 0 <= c < LENGTH and (mask is None or bool(mask[row, c]))]


@pytest.mark.parametrize("mask", [None, HOLES], ids=["full", "padded"])
@pytest.mark.parametrize(("row", "column"), [(0, 3), (1, 0), (2, 2), (3, 4), (4, 6)])
def test_positive_in_the_window(mask: Tensor | None, row: int, column: int) -> None:
    real = RealTokens(ROWS, LENGTH, mask, torch.device("cpu"))
    own = row * LENGTH + column
    drawn = draw_positives(one_anchor(row, column, 6000), real, KEY, 5, WindowEdges.window)
    near = real_in(row, range(column - 2, column + 3), mask)
    assert is_uniform(drawn, [place for place in near if place != own])


@pytest.mark.parametrize("mask", [None, HOLES], ids=["full", "padded"])
@pytest.mark.parametrize(("row", "column"), [(0, 3), (1, 0), (2, 2), (3, 4), (4, 6)])
def test_positive_outside_is_drawn_from_the_whole_sequence(mask: Tensor | None, row: int, column: int) -> None:
    draws = 20000
    real = RealTokens(ROWS, LENGTH, mask, torch.device("cpu"))
    own = row * LENGTH + column
    drawn = draw_positives(one_anchor(row, column, draws), real, KEY, 5, WindowEdges.sequence)
    near = [p for p in real_in(row, range(column - 2, column + 3), mask) if p != own]
    anywhere = [p for p in real_in(row, range(LENGTH), mask) if p != own]
    outside = 1 - len(near) / 4  # four offsets of equal chance
    expected = [draws * (0.25 * (p in near) + outside / len(anywhere)) for p in anywhere]
    counts = Counter(drawn.tolist())
    assert set(counts) <= set(anywhere)
    seen = [(counts[p], e) for p, e in zip(anywhere, expected, strict=True) if e]
    assert sum(e for _, e in seen) == pytest.approx(draws)
    assert chisquare(*zip(*seen, strict=True)).pvalue > 1e-4


@pytest.mark.parametrize("mask", [None, HOLES], ids=["full", "padded"])
@pytest.mark.parametrize("row", range(ROWS))
def test_negatives_are_uniform_over_the_other_rows(mask: Tensor | None, row: int) -> None:
    real = RealTokens(ROWS, LENGTH, mask, torch.device("cpu"))
    drawn = draw_negatives(one_anchor(row, 2, 900), real, KEY, 9)
    others = [place for r in range(ROWS) if r != row for place in real_in(r, range(LENGTH), mask)]
    assert is_uniform(drawn, others)
    assert is_uniform(drawn[:, 0], others)  # whichever half of a hash a draw comes from
    assert is_uniform(drawn[:, 1], others)


@pytest.mark.parametrize("mask", [None, HOLES], ids=["full", "padded"])
@pytest.mark.parametrize(("row", "column"), [(0, 1), (1, 2), (4, 4), (2, 5), (0, 6)])
def test_matched_negatives_are_uniform_over_the_rows_of_their_column(
    mask: Tensor | None, row: int, column: int
) -> None:
    real = RealTokens(ROWS, LENGTH, mask, torch.device("cpu"))
    drawn = draw_matched_negatives(one_anchor(row, column, 600), real, KEY, 5)
    others = [p for r in range(ROWS) if r != row for p in real_in(r, range(column, column + 1), mask)]
    assert is_uniform(drawn, others)


def test_matched_negatives_without_a_match_come_from_anywhere() -> None:
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]]) > 0
    real = RealTokens(2, 3, mask, torch.device("cpu"))
    drawn = draw_matched_negatives(one_anchor(0, 2, 500), real, KEY, 3)
    assert is_uniform(drawn, [3, 4])


def test_negatives_of_an_anchor_are_independent() -> None:
    real = RealTokens(3, 2, None, torch.device("cpu"))
    drawn = draw_negatives(one_anchor(0, 0, 8000), real, KEY, 4) - 2  # four places
    for first, second in ((0, 1), (0, 2), (1, 3)):
        pairs = Counter((drawn[:, first] * 4 + drawn[:, second]).tolist())
        assert chisquare([pairs[pair] for pair in range(16)]).pvalue > 1e-4
    anchors = AnchorIndex(
        *(torch.arange(4000) * k for k in (0, 0)), torch.zeros(4000, dtype=torch.int64), torch.arange(4000)
    )
    drawn = draw_negatives(anchors, real, KEY, 1)[:, 0] - 2
    pairs = Counter((drawn[:-1] * 4 + drawn[1:]).tolist())
    assert chisquare([pairs[pair] for pair in range(16)]).pvalue > 1e-4


def test_more_negatives_begin_with_the_same() -> None:
    real = RealTokens(ROWS, LENGTH, None, torch.device("cpu"))
    anchors = one_anchor(1, 3, 20)
    assert torch.equal(draw_negatives(anchors, real, KEY, 5), draw_negatives(anchors, real, KEY, 12)[:, :5])


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_draws_are_real_tokens_of_the_right_rows(data: st.DataObject) -> None:
    rows, length = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 6))
    cells = st.lists(st.booleans(), min_size=length, max_size=length).filter(any)
    mask = torch.tensor([data.draw(cells) for _ in range(rows)])
    asked = anchor_mask(mask, mask, Anchors.all)
    row, column = asked.nonzero(as_tuple=True)
    anchors = AnchorIndex(row, column, torch.zeros_like(row), row)
    real = RealTokens(rows, length, mask, torch.device("cpu"))
    for edges in WindowEdges:
        positive = draw_positives(anchors, real, KEY, data.draw(st.sampled_from([3, 5, 9])), edges)
        assert mask.flatten()[positive].all()
        assert (positive // length == row).all()
        assert (positive % length != column).all()
    for draw in (draw_negatives, draw_matched_negatives):
        negative = draw(anchors, real, KEY, 3)
        assert mask.flatten()[negative].all()
        assert (negative // length != row[:, None]).all()


def test_anchors_are_real_tokens_with_a_positive() -> None:
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1]]) > 0
    selected = torch.tensor([[0, 1, 0], [1, 0, 0], [1, 0, 0]]) > 0
    with_positive = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]) > 0
    assert torch.equal(anchor_mask(selected, mask, Anchors.all), with_positive)
    assert torch.equal(anchor_mask(selected, mask, Anchors.masked), with_positive & selected)
    assert torch.equal(anchor_mask(selected, mask, Anchors.unmasked), with_positive & ~selected)
    assert not anchor_mask(selected[:, :1], None, Anchors.all).any()
    assert anchor_mask(selected, None, Anchors.all).all()


def test_a_sequence_of_padding_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="padding alone"):
        anchor_mask(HOLES, HOLES & (torch.arange(ROWS) > 0)[:, None], Anchors.all)
