"""Where gradients arrive, against loss.backward() on the whole encoder, and where they cannot arrive."""

from __future__ import annotations

import copy

import pytest
import torch

from taco_cli.analysis.gradients import COLUMNS, measure, position_groups, row_groups, term_gradients
from taco_cli.analysis.material import SEED, Material
from taco_cli.encoder import Encoder
from taco_cli.objectives import build_objective
from tests.analysis.conftest import one_value


@pytest.fixture(scope="module")
def rows(untrained: Encoder, material: Material) -> list[dict[str, object]]:
    return [dict(row) for row in measure(untrained, material)]


def test_mlm_reaches_masked_positions_alone_at_the_top_and_all_words_below(rows: list[dict[str, object]]) -> None:
    def share(layer: int, group: str) -> float:
        return one_value(rows, term="mlm", at="states", layer=layer, group=group, measure="share")

    assert share(2, "masked") == 1.0
    assert share(2, "unmasked") == share(2, "special") == 0.0
    assert share(1, "unmasked") > 0.0
    assert share(0, "unmasked") > 0.0


def test_contrast_reaches_unmasked_positions_at_the_top(rows: list[dict[str, object]]) -> None:
    assert one_value(rows, term="tc", at="states", layer=2, group="unmasked", measure="share") > 0.5


def test_shares_add_up(rows: list[dict[str, object]]) -> None:
    sums: dict[tuple[object, ...], float] = {}
    for row in rows:
        if row["measure"] == "share":
            key = (row["term"], row["at"], row["layer"])
            sums[key] = sums.get(key, 0.0) + float(str(row["value"]))
    assert len(sums) == 2 * (3 + 2)
    assert all(total == pytest.approx(1.0) for total in sums.values())
    assert {("step", *row) for row in rows} == {COLUMNS}


def test_gradient_of_the_table_is_that_of_backward(untrained: Encoder, material: Material) -> None:
    config = material.config
    objective = build_objective(config.objective, config.masking, material.special, SEED)
    corrupted = objective.corrupt(material.held_out[0])
    for term in ("mlm", "tc"):
        encoder = copy.deepcopy(untrained)
        (objective.sums(encoder, corrupted)[term] / objective.counts(corrupted)[term]).backward()
        expected = encoder.word_embeddings.grad
        assert expected is not None
        found = term_gradients(untrained, objective, corrupted)[term, "words", ""]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)


def test_norm_is_that_of_the_whole_gradient(
    untrained: Encoder, material: Material, rows: list[dict[str, object]]
) -> None:
    config = material.config
    objective = build_objective(config.objective, config.masking, material.special, SEED)
    squares = []
    for batch in material.held_out:
        corrupted = objective.corrupt(batch)
        squares.append(float(term_gradients(untrained, objective, corrupted)["mlm", "states", 0].square().sum()))
    norms = [
        one_value(rows, term="mlm", at="states", layer=0, group=group, measure="norm")
        for group in ("masked", "unmasked", "special")
    ]
    assert sum(norm**2 for norm in norms) == pytest.approx(sum(squares) / len(squares), rel=1e-4)


def test_rows_that_the_encoder_did_not_see_are_reached_through_the_decoder_alone(rows: list[dict[str, object]]) -> None:
    assert one_value(rows, term="mlm", at="words_input", layer="", group="neither", measure="share") == 0.0
    assert one_value(rows, term="mlm", at="words", layer="", group="neither", measure="norm") > 0.0
    assert one_value(rows, term="mlm", at="words_input", layer="", group="visible", measure="norm") > 0.0
    for name in ("share", "norm"):  # the contrast does not use the decoder
        both = [
            one_value(rows, term="tc", at=at, layer="", group="visible", measure=name)
            for at in ("words", "words_input")
        ]
        assert both[0] == pytest.approx(both[1])


def test_groups_part_positions_and_rows(material: Material) -> None:
    corrupted = material.corrupt(material.held_out[0])
    positions = position_groups(corrupted)
    assert bool((torch.stack(list(positions.values())).sum(0) == 1).all())
    tables = row_groups(corrupted, material.special)
    assert bool((torch.stack(list(tables.values())).sum(0) == 1).all())
    assert bool(tables["special"][material.special.mask_id])
