"""The contrast with both kinds of negatives, and what position alone gains."""

from __future__ import annotations

import math

import pytest
import torch

from taco_cli.analysis.material import Material
from taco_cli.analysis.shortcut import COLUMNS, measure, position_r2
from taco_cli.config.schema import NegativePositions
from taco_cli.encoder import Encoder
from tests.analysis.conftest import one_value, random_units


@pytest.fixture(scope="module")
def rows(untrained: Encoder, material: Material) -> list[dict[str, object]]:
    return [dict(row) for row in measure(untrained, material)]


@pytest.mark.parametrize("negatives", list(NegativePositions))
def test_loss_is_that_of_the_objective(
    rows: list[dict[str, object]], untrained: Encoder, material: Material, negatives: NegativePositions
) -> None:
    contrast = material.contrast(negatives)
    total, count = 0.0, 0
    with torch.no_grad():
        for batch in material.held_out:
            corrupted = material.corrupt(batch)
            total += float(contrast.sum(untrained, untrained(corrupted.input_ids), corrupted))
            count += int(contrast.count(corrupted))
    assert one_value(rows, vector="g", negatives=str(negatives), measure="loss") == pytest.approx(
        total / count, rel=1e-5
    )


def test_position_alone_never_beats_chance_against_its_own_position(rows: list[dict[str, object]]) -> None:
    """The negatives have the anchor's own vector then, so that no positive can score higher."""
    matched = {
        name: one_value(rows, vector="position", negatives="position_matched", measure=name)
        for name in ("loss", "chance")
    }
    assert matched["chance"] == pytest.approx(math.log(5))
    assert matched["loss"] >= matched["chance"]
    assert one_value(rows, vector="position", negatives="uniform", measure="loss") < matched["loss"]


def test_difference_of_the_two(rows: list[dict[str, object]]) -> None:
    uniform, matched = (
        one_value(rows, vector="g", negatives=n, measure="loss") for n in ("uniform", "position_matched")
    )
    assert one_value(rows, measure="matched_minus_uniform") == pytest.approx(matched - uniform)
    assert {("step", *row) for row in rows} == {COLUMNS}


def test_position_is_read_where_it_is() -> None:
    noise = random_units(40, 12, 6)
    train, test = noise[:30], noise[30:]
    assert position_r2(train, test) == pytest.approx(0.0, abs=0.1)
    code = torch.linspace(0, 1, 12)[:, None].expand(12, 6)
    assert position_r2(train * 0.01 + code, test * 0.01 + code) > 0.99
