"""Closed forms against all pairs one by one."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.analysis.material import Material
from taco_cli.analysis.similarity import COLUMNS, PairSums, measure
from taco_cli.encoder import Encoder
from tests.analysis.conftest import one_value


def by_hand(vectors: torch.Tensor, words: torch.Tensor, types: torch.Tensor) -> dict[str, float]:
    """Go over all pairs of words."""
    units = torch.nn.functional.normalize(vectors.double(), dim=-1)
    places = [(n, i) for n, i in itertools.product(range(len(words)), range(words.shape[1])) if words[n, i]]
    intra: dict[bool, dict[int, list[float]]] = {False: {}, True: {}}
    inter: dict[str, list[float]] = {"inter": [], "inter_distinct": [], "inter_matched": []}
    for (n, i), (m, j) in itertools.permutations(places, 2):
        cosine = float(units[n, i] @ units[m, j])
        distinct = bool(types[n, i] != types[m, j])
        if n == m:
            intra[False].setdefault(n, []).append(cosine)
            if distinct:
                intra[True].setdefault(n, []).append(cosine)
            continue
        inter["inter"].append(cosine)
        inter["inter_distinct"] += [cosine] if distinct else []
        inter["inter_matched"] += [cosine] if i == j else []
    result = {name: mean(values) for name, values in inter.items()}
    for distinct, name in ((False, "intra"), (True, "intra_distinct")):
        result[name] = mean([mean(cosines) for cosines in intra[distinct].values()])
    return result


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(2, 7), st.integers(1, 4), st.integers(1, 2), st.integers(0, 10**6))
def test_closed_forms_equal_all_pairs(rows: int, length: int, types: int, batches: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(rows * batches, length, 5, generator=generator) + 0.5
    words = torch.rand(rows * batches, length, generator=generator) < 0.8
    type_ids = torch.randint(types, (rows * batches, length), generator=generator)
    pairs = PairSums(types, length)
    for part in zip(vectors.split(rows), words.split(rows), type_ids.split(rows), strict=True):
        pairs.add(*part)
    means = pairs.means()
    for name, value in by_hand(vectors, words, type_ids).items():
        assert means[name] == pytest.approx(value, abs=2e-5, nan_ok=True), name
    assert means["gap"] == pytest.approx(means["intra"] - means["inter"], nan_ok=True)


def test_distance_buckets_average_all_pairs_so_far_apart() -> None:
    vectors = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))
    words = torch.ones(3, 7, dtype=torch.bool)
    words[1, 3] = False
    pairs = PairSums(1, 7)
    pairs.add(vectors, words, torch.zeros(3, 7, dtype=torch.int64))
    units = torch.nn.functional.normalize(vectors, dim=-1)
    for first, distances in {1: (1,), 2: (2, 3), 4: (4, 5, 6)}.items():
        cosines = [
            float(units[n, i] @ units[n, i + d])
            for n, d in itertools.product(range(3), distances)
            for i in range(7 - d)
            if words[n, i] and words[n, i + d]
        ]
        assert pairs.by_distance()[first] == pytest.approx(mean(cosines), abs=1e-6)
    assert list(pairs.by_distance()) == [1, 2, 4]


def test_known_values() -> None:
    """Sequences of one direction each, orthogonal to each other: intra 1, inter 0, whatever is left out."""
    vectors = torch.eye(3)[:, None, :].expand(3, 4, 3) * 7.0
    pairs = PairSums(12, 4)
    pairs.add(vectors, torch.ones(3, 4, dtype=torch.bool), torch.arange(12).view(3, 4))
    expected = {"intra": 1.0, "inter": 0.0, "gap": 1.0, "inter_matched": 0.0, "intra_distinct": 1.0}
    assert {name: pairs.means()[name] for name in expected} == pytest.approx(expected)
    assert set(pairs.by_distance().values()) == {1.0}


def test_untrained_encoder_knows_no_context(untrained: Encoder, material: Material) -> None:
    rows = list(measure(untrained, material))
    assert {("step", *row) for row in rows} == {COLUMNS}
    for vector in ("h", "g"):
        intra, inter, distinct, other = (
            one_value(rows, layer=2, vector=vector, distance="", measure=name)
            for name in ("intra", "inter", "intra_distinct", "inter_distinct")
        )
        assert intra == pytest.approx(inter, abs=0.1)
        assert distinct == pytest.approx(other, abs=0.1)
    # What it does know is position: its table has a row for each.
    matched = one_value(rows, layer=2, vector="h", distance="", measure="inter_matched")
    assert matched > one_value(rows, layer=2, vector="h", distance="", measure="inter") + 0.1


def test_layers_and_vectors(untrained: Encoder, material: Material) -> None:
    rows = list(measure(untrained, material))
    assert {(row["layer"], row["vector"]) for row in rows} == {(0, "h"), (1, "h"), (1, "g"), (2, "h"), (2, "g")}
    assert {row["distance"] for row in rows} == {"", 1, 2, 4, 8}
