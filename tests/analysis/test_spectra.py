"""Alignment, uniformity, effective rank and anisotropy of vectors whose values are known."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.analysis import spectra
from taco_cli.analysis.spectra import alignment, anisotropy, effective_rank, uniformity
from tests.analysis.conftest import random_units


@pytest.mark.parametrize("kinds", [1, 3, 8])
def test_one_hot_vectors_have_the_rank_of_their_kinds(kinds: int) -> None:
    vectors = torch.eye(8)[torch.arange(kinds).repeat(5)]
    assert effective_rank(vectors) == pytest.approx(kinds)
    assert effective_rank(3.0 * vectors) == pytest.approx(kinds)


def test_effective_rank_is_that_of_the_singular_values() -> None:
    for shape in ((20, 6), (4, 6)):
        vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        share = torch.linalg.svdvals(vectors)
        share = share / share.sum()
        assert effective_rank(vectors) == pytest.approx(float((-(share * share.log()).sum()).exp()), rel=1e-6)


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 12), st.integers(2, 5), st.integers(0, 10**6))
def test_uniformity_and_anisotropy_equal_all_pairs(count: int, size: int, seed: int) -> None:
    vectors = random_units(count, size, seed=seed) * (1 + torch.arange(count))[:, None]
    units = torch.nn.functional.normalize(vectors.double(), dim=1)
    pairs = [(float(a @ b), float((a - b).square().sum())) for a, b in itertools.permutations(units, 2)]
    potential = sum(math.exp(-2 * squared) for _, squared in pairs) / len(pairs)
    assert uniformity(vectors) == pytest.approx(math.log(potential), abs=1e-4)
    assert anisotropy(vectors) == pytest.approx(sum(cosine for cosine, _ in pairs) / len(pairs), abs=1e-9)


def test_uniformity_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random_units(50, 4)
    whole = uniformity(vectors)
    monkeypatch.setattr(spectra, "_AT_ONCE", 350)
    assert uniformity(vectors) == pytest.approx(whole, abs=1e-6)


def test_uniformity_of_the_cross() -> None:
    """Four unit vectors in the plane: of three others, one is opposite (distance² 4), two are orthogonal (2)."""
    cross = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert uniformity(cross) == pytest.approx(math.log((math.exp(-8) + 2 * math.exp(-4)) / 3), abs=1e-5)
    assert uniformity(cross[:1].repeat(3, 1)) == pytest.approx(0.0, abs=1e-5)


def test_alignment_depends_on_directions_alone() -> None:
    left = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    right = torch.tensor([[5.0, 0.0], [0.0, -1.0], [0.0, 4.0]])
    assert alignment(left, right) == pytest.approx((0 + 4 + 2) / 3)


def test_nothing_to_measure_is_nan() -> None:
    none, one = torch.zeros(0, 3), torch.ones(1, 3)
    assert all(math.isnan(value) for value in (alignment(none, none), effective_rank(none)))
    assert all(math.isnan(measure(one)) for measure in (uniformity, anisotropy))
