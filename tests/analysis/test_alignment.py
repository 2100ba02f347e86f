"""What alignment is measured of: pairs of each loss, and vectors by frequency."""

from __future__ import annotations

import pytest
import torch

from taco_cli.analysis.alignment import COLUMNS, frequency_deciles, measure
from taco_cli.analysis.material import Material
from taco_cli.analysis.spectra import alignment, effective_rank
from taco_cli.encoder import Encoder
from tests.analysis.conftest import one_value


@pytest.fixture(scope="module")
def rows(untrained: Encoder, material: Material) -> list[dict[str, object]]:
    return [dict(row) for row in measure(untrained, material)]


def test_mlm_pairs_are_states_and_rows_of_the_originals(
    rows: list[dict[str, object]], untrained: Encoder, material: Material
) -> None:
    states, originals = [], []
    with torch.no_grad():
        for batch in material.held_out:
            corrupted = material.corrupt(batch)
            hidden = untrained(corrupted.input_ids).hidden_states
            for n, i in corrupted.selected.nonzero().tolist():
                states.append(hidden[n, i])
                originals.append(untrained.word_embeddings[batch.input_ids[n, i]].detach())
        predicted = untrained.predict(torch.stack(states))
    plain = one_value(rows, of="mlm_state", measure="alignment")
    assert plain == pytest.approx(alignment(torch.stack(states), torch.stack(originals)), abs=1e-5)
    transformed = one_value(rows, of="mlm", measure="alignment")
    assert transformed == pytest.approx(alignment(predicted, torch.stack(originals)), abs=1e-5)


def test_untrained_head_points_nowhere(rows: list[dict[str, object]]) -> None:
    assert one_value(rows, of="mlm", measure="alignment") == pytest.approx(2.0, abs=0.15)
    assert one_value(rows, of="vocabulary", measure="anisotropy", decile="") == pytest.approx(0.0, abs=0.02)


def test_contrast_pairs_come_from_the_window(untrained: Encoder, material: Material) -> None:
    """With one batch by hand: g of each position with g of the positive that the contrast draws."""
    pairs: list[list[torch.Tensor]] = [[], []]
    contrast = material.contrast(material.config.objective.tc.negative_positions)
    with torch.no_grad():
        for batch in material.held_out:
            corrupted = material.corrupt(batch)
            output = untrained(corrupted.input_ids)
            g = (output.hidden_states - output.embeddings).flatten(0, 1)
            positive, _ = contrast.draw(None, corrupted, 0, 1)
            pairs[0].append(g)
            pairs[1].append(g[positive])
    expected = alignment(torch.cat(pairs[0]), torch.cat(pairs[1]))
    assert one_value(list(measure(untrained, material)), of="tc", measure="alignment") == pytest.approx(
        expected, abs=1e-5
    )


def test_table(rows: list[dict[str, object]], material: Material) -> None:
    assert {("step", *row) for row in rows} == {COLUMNS}
    vectors = {row["decile"]: row["value"] for row in rows if row["of"] == "vocabulary" and row["measure"] == "vectors"}
    occurring = material.frequencies() > 0
    occurring[list(material.special.special_ids)] = False
    assert vectors.pop("") == int(occurring.sum()) == sum(map(int, map(float, map(str, vectors.values()))))
    assert set(vectors) == set(range(1, 11))


def test_deciles_go_from_frequent_to_rare() -> None:
    counts = torch.tensor([50, *range(40, 0, -2), 0, 7, 0])  # ids 0 and 22 are special
    occurring, decile = frequency_deciles(counts, (0, 22))
    assert occurring.tolist() == [False] + [True] * 20 + [False] * 3
    assert decile.tolist() == [0] + [1 + i // 2 for i in range(20)] + [0, 0, 0]


def test_effective_rank_of_states_of_one_token_is_small(untrained: Encoder, material: Material) -> None:
    with torch.no_grad():
        same = untrained.layers(torch.full((4, 8), 9))[-1].flatten(0, 1)
    many = one_value(list(measure(untrained, material)), of="states", measure="effective_rank", decile="")
    assert effective_rank(same) < many
