"""Probes of made states whose answer is known, and what is read where."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from taco_cli.analysis.material import Material
from taco_cli.analysis.probes import (
    COLUMNS,
    KINDS,
    LabelledStates,
    collect,
    measure,
    position_kinds,
    probe,
    tagged_batches,
)
from taco_cli.data.conllu import Tagged
from taco_cli.encoder import Encoder
from tests.analysis.conftest import one_value

MASKED, KEPT, UNTOUCHED = range(3)


def made_states(count: int, seed: int) -> LabelledStates:
    """Three classes; layer 0 knows nothing, layer 1 everything, both with a large constant that must not matter."""
    draw = np.random.default_rng(seed)
    labels = draw.choice(3, count, p=[0.6, 0.3, 0.1])
    noise = draw.normal(size=(count, 4))
    telling = np.eye(3)[labels] @ np.array([[3, 0, 0, 0], [0, 3, 0, 0], [0, 0, 3, 0]]) + 0.1 * noise
    layers = [(states * 0.01 + 100).astype(np.float32) for states in (noise, telling)]
    return LabelledStates(layers, labels, draw.integers(0, 3, count))


def test_probe_reads_what_is_there_and_no_more() -> None:
    train, test = made_states(900, seed=1), made_states(600, seed=2)
    rows = [dict(row) for row in probe(train, test, "identity")]
    for index, kind in enumerate(KINDS):
        wanted = test.labels[test.kinds == index]
        majority = float(np.mean(wanted == 0))
        for layer in (0, 1):
            assert one_value(rows, layer=layer, positions=kind, measure="majority") == pytest.approx(majority)
        assert one_value(rows, layer=1, positions=kind, measure="accuracy") == 1.0
        assert one_value(rows, layer=0, positions=kind, measure="accuracy") == pytest.approx(majority, abs=0.05)
    assert one_value(rows, layer=1, positions="kept", measure="examples") == np.sum(train.kinds == UNTOUCHED)


def test_probe_is_the_ridge_solution() -> None:
    """Two classes as -1 and 1: weights (X'X + 10 I)^-1 X'y of standardised states."""
    train, test = made_states(200, seed=3), made_states(100, seed=4)
    train, test = (replace(s, labels=np.minimum(s.labels, 1), kinds=np.zeros_like(s.kinds)) for s in (train, test))
    x, y = train.layers[0].astype(np.float64), 2.0 * train.labels - 1
    mean, scale = x.mean(0), x.std(0)
    x = (x - mean) / scale
    weights = np.linalg.solve(x.T @ x + 10 * np.eye(4), x.T @ (y - y.mean()))
    predicted = ((test.layers[0] - mean) / scale @ weights + y.mean()) > 0
    rows = [dict(row) for row in probe(train, test, "identity")]
    accuracy = one_value(rows, layer=0, positions="masked", measure="accuracy")
    assert accuracy == pytest.approx(np.mean(predicted == test.labels))


def test_kind_without_examples_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    train, test = made_states(60, seed=5), made_states(60, seed=6)
    test.kinds[test.kinds == KEPT] = UNTOUCHED
    with caplog.at_level(logging.WARNING):
        rows = list(probe(train, test, "identity"))
    assert {row["positions"] for row in rows} == {"masked", "untouched"}
    assert "kept positions" in caplog.text


def test_kinds_of_positions(material: Material) -> None:
    corrupted = material.corrupt(material.held_out[0])
    kinds = position_kinds(corrupted, material.special)
    for n, i in np.ndindex(*kinds.shape):
        seen, original = int(corrupted.input_ids[n, i]), int(corrupted.originals[n, i])
        if original in material.special.special_ids:
            expected = -1
        elif not corrupted.selected[n, i]:
            expected = UNTOUCHED
        elif seen == material.special.mask_id:
            expected = MASKED
        else:
            expected = KEPT if seen == original else -1
        assert int(kinds[n, i]) == expected


def test_untouched_positions_are_thinned_to_about_as_many_as_are_masked(material: Material) -> None:
    counts = torch.zeros(3)
    for batch in material.training():
        corrupted = material.corrupt(batch)
        kinds = position_kinds(corrupted, material.special)
        few = material.few(corrupted)
        counts += torch.tensor(
            [(kinds == MASKED).sum(), ((kinds == UNTOUCHED) & few).sum(), (kinds == UNTOUCHED).sum()]
        )
    assert 0.7 < counts[1] / counts[0] < 1.5
    assert counts[1] < 0.3 * counts[2]


def test_states_are_those_of_their_positions(untrained: Encoder, material: Material) -> None:
    corrupted = material.corrupt(material.held_out[0])
    labels = torch.where(corrupted.eligible, corrupted.originals, torch.tensor(-1))
    found = collect(untrained, [(corrupted, labels)], material, thin=False)
    with torch.no_grad():
        states = untrained.layers(corrupted.input_ids)
    kinds = position_kinds(corrupted, material.special)
    places = [(n, i) for n, i in np.ndindex(*kinds.shape) if kinds[n, i] >= 0]
    for layer in range(3):
        expected = torch.stack([states[layer][n, i] for n, i in places])
        np.testing.assert_array_equal(found.layers[layer], expected.numpy())
    assert found.labels.tolist() == [int(corrupted.originals[n, i]) for n, i in places]


def test_embeddings_tell_untouched_tokens_and_not_masked_ones(untrained: Encoder, material: Material) -> None:
    rows = [dict(row) for row in measure(untrained, material)]
    assert {("step", *row) for row in rows} == {COLUMNS}

    def values(positions: str) -> tuple[float, float]:
        place = {"layer": 0, "probe": "identity", "positions": positions}
        return one_value(rows, **place, measure="accuracy"), one_value(rows, **place, measure="majority")

    accuracy, majority = values("untouched")
    assert accuracy > majority + 0.1
    accuracy, majority = values("masked")
    assert accuracy < majority + 0.1


@pytest.fixture(scope="module")
def conllu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file in which a word's tag follows from the word."""
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("ud") / "made.conllu"
    sentences = []
    for number in range(60):
        words = draw.choice(["ba", "ko", "mikomi", "."], size=9)
        tags = [{"ba": "NOUN", "ko": "VERB", "mikomi": "NOUN", ".": "PUNCT"}[word] for word in words]
        lines = [
            f"{i}\t{w}\t{w}\t{t}\t_\t_\t0\troot\t_\t_" for i, (w, t) in enumerate(zip(words, tags, strict=True), 1)
        ]
        sentences.append(f"# sent_id = {number}\n" + "\n".join(lines) + "\n\n")
    path.write_text("".join(sentences))
    return path


def test_part_of_speech_stands_at_first_pieces(untrained: Encoder, material: Material) -> None:
    sentences = [Tagged(["mikomi", "ba"], ["NOUN", "X"]), Tagged(["ba"] * 99, ["NOUN"] * 99), Tagged(["ko"], ["VERB"])]
    tags = ["NOUN", "PUNCT", "VERB"]
    ((corrupted, labels),) = tagged_batches(sentences, tags, untrained, material)
    assert corrupted.example.tolist() == [2, 0, 1]  # from the shortest to the longest
    pieces = material.corpus.tokenizer.convert_ids_to_tokens(corrupted.originals[1].tolist())
    first = [i for i, piece in enumerate(pieces) if not piece.startswith(("##", "["))]
    assert labels[1].tolist() == [0 if i == first[0] else -1 for i in range(len(pieces))]  # X is no tag of training
    assert sorted(set(labels[0].tolist())) == [-1, 2]
    assert corrupted.attention_mask is not None
    assert corrupted.attention_mask.sum(1).tolist() == [3, pieces.index("[SEP]") + 1, material.config.sequence_length]
    assert bool((corrupted.originals[~corrupted.attention_mask] == material.special.pad_id).all())
    assert bool((position_kinds(corrupted, material.special)[~corrupted.attention_mask] == -1).all())


def test_sentences_are_masked_alike_in_any_batches(untrained: Encoder, material: Material) -> None:
    draw = np.random.default_rng(0)
    sentences = [Tagged(["ba", "ko"] * n, ["NOUN", "VERB"] * n) for n in draw.integers(1, 7, 30).tolist()]
    seen = []
    for size in (30, 4):
        other = replace(material, settings=replace(material.settings, batch_size=size))
        rows: dict[int, list[int]] = {}
        for corrupted, _ in tagged_batches(sentences, ["NOUN", "VERB"], untrained, other):
            assert corrupted.attention_mask is not None
            for number, ids, real in zip(
                corrupted.example.tolist(), corrupted.input_ids, corrupted.attention_mask, strict=True
            ):
                rows[number] = ids[real].tolist()
        seen.append(rows)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 30


def test_part_of_speech_of_visible_words_is_read(untrained: Encoder, material: Material, conllu: Path) -> None:
    settings = replace(material.settings, conllu_train=str(conllu), conllu_test=str(conllu))
    rows = [dict(row) for row in measure(untrained, replace(material, settings=settings))]
    place = {"layer": 0, "probe": "part_of_speech", "positions": "untouched"}
    assert one_value(rows, **place, measure="accuracy") > one_value(rows, **place, measure="majority") + 0.2


def test_no_files_no_part_of_speech_and_a_word_about_it(
    untrained: Encoder, material: Material, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        rows = list(measure(untrained, material))
    assert {row["probe"] for row in rows} == {"identity"}
    assert "conllu_train=" in caplog.text
