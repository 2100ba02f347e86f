from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from taco_cli.evaluation.model import Model
from taco_cli.evaluation.reading import read
from taco_cli.evaluation.states import sentence_states, token_states
from taco_cli.evaluation.tasks import TASKS
from taco_cli.evaluation.tokens import tokenize
from taco_cli.evaluation.zero_shot import Pairs, minimal_pairs, pseudo_log_likelihoods, read_pairs, similarity

from .conftest import sentence


@torch.inference_mode()
def one_at_a_time(model: Model, text: str) -> float:
    """Mask one token, encode one sequence, look up one probability; then the next."""
    ids = torch.tensor(model.tokenizer(text)["input_ids"])
    total = 0.0
    for position in range(1, len(ids) - 1):
        masked = ids.clone()
        masked[position] = model.special.mask_id
        states = model.encoder(masked[None]).hidden_states[0]
        total += float(model.encoder.logits(states[position][None]).log_softmax(-1)[0, ids[position]])
    return total


def test_pseudo_log_likelihood_is_that_of_one_mask_at_a_time(model: Model) -> None:
    draw = random.Random(1)
    texts = [sentence(bool(i % 2), draw) for i in range(12)]
    texts += [texts[0].replace("good", "bad"), "she is xylophones.", "a"]  # shares copies; many pieces; one token
    expected = [one_at_a_time(model, text) for text in texts]
    assert pseudo_log_likelihoods(model, texts).tolist() == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_more_copies_than_one_batch(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(2)
    texts = [sentence(True, draw) for _ in range(20)]
    whole = pseudo_log_likelihoods(model, texts)
    monkeypatch.setattr("taco_cli.evaluation.zero_shot._TOKENS_AT_ONCE", 30)
    np.testing.assert_allclose(pseudo_log_likelihoods(model, texts), whole, rtol=1e-5)


def test_accuracy_by_paradigm_with_ties_as_halves(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    likely = {"x": 0.0, "y": -1.0, "z": -1.0}
    monkeypatch.setattr(
        "taco_cli.evaluation.zero_shot.pseudo_log_likelihoods",
        lambda model, sentences, on_share: np.array([likely[s] for s in sentences]),
    )
    found = minimal_pairs(model, [Pairs("one", ["x", "y"], ["y", "z"]), Pairs("two", ["y", "y"], ["x", "x"])])
    assert found == {"accuracy": 37.5, "accuracy_of_one": 75.0, "accuracy_of_two": 0.0}


def test_reading_of_pairs(data_dir: Path, tmp_path: Path) -> None:
    assert [(pairs.paradigm, len(pairs.good)) for pairs in read_pairs(str(data_dir))] == [
        ("made_one", 6),
        ("made_two", 6),
    ]
    with pytest.raises(ValueError, match=r"no file matches .*blimp"):
        read_pairs(str(tmp_path))
    with pytest.raises(ValueError, match="data_dir"):
        read_pairs(None)
    (tmp_path / "blimp").mkdir()
    (tmp_path / "blimp" / "x.jsonl").write_text('{"sentence_good": "a"}\n')
    with pytest.raises(ValueError, match=r"x\.jsonl, line 1.*sentence_bad"):
        read_pairs(str(tmp_path))


def test_similarity_of_mean_states_in_each_layer(model: Model, data_dir: Path) -> None:
    found = similarity(model, read(TASKS["stsb"], "dev", str(data_dir)))
    assert list(found) == ["spearman", *(f"spearman_of_layer_{k}" for k in range(3))]
    assert found["spearman"] == found["spearman_of_layer_2"]
    assert all(-100 <= value <= 100 for value in found.values())


def test_states_are_those_of_the_words_alone(model: Model) -> None:
    texts = [("the cat ran",), ("a",), ("he was very very good",)]
    tokens = tokenize(texts, model.tokenizer, 32)
    means = sentence_states(model, tokens)
    places = [np.arange(1, length - 1) for length in tokens.lengths]
    states = token_states(model, tokens, places)
    first = 0
    for row, chosen in enumerate(places):
        ids, _ = tokens.batch([row])
        with torch.inference_mode():
            expected = torch.stack([layer[0, 1:-1] for layer in model.encoder.layers(ids)])
        torch.testing.assert_close(states[:, first : first + len(chosen)], expected, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(means[:, row], expected.mean(1), atol=1e-5, rtol=1e-4)
        first += len(chosen)
    assert first == states.shape[1]
