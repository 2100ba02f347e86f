"""The contrastive loss: agreement with the released code and with loops, its choices, its numerics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from taco_cli.config.schema import (
    Anchors,
    Embedding,
    MaskingConfig,
    NegativePositions,
    ObjectiveConfig,
    StopGradient,
    TokenContrastConfig,
    WindowEdges,
)
from taco_cli.objectives import Objective, build_objective, token_contrast_loss
from taco_cli.objectives.token_contrast import TokenContrast
from tests.objectives.reference import loop_token_contrast
from tests.objectives.tiny import SPECIAL, TinyEncoder, TinyOutput, make_batch

GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "token_contrast.json"


def contrast(seed: int = 1, **choices: Any) -> Objective:
    config = ObjectiveConfig(tc=TokenContrastConfig(weight=1.0, negatives=7, **choices))
    config.mlm.weight = 0.0
    return build_objective(config, MaskingConfig(rate=0.4), SPECIAL, seed)


def random_case(seed: int, rows: int = 4, length: int = 5, hidden: int = 6, negatives: int = 3) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    states, embeddings = (torch.randn(rows, length, hidden, generator=generator, dtype=torch.float64) for _ in range(2))
    size = rows * length
    positive = torch.randint(size, (size,), generator=generator)
    negative = torch.randint(size, (size, negatives), generator=generator)
    return [states.requires_grad_(), embeddings.requires_grad_(), positive, negative]


def golden_cases() -> list[dict[str, Any]]:
    return json.loads(GOLDEN.read_text())["cases"] if GOLDEN.exists() else []


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"{GOLDEN.name} of the released code is not beside the project")
def test_agrees_with_the_released_code() -> None:
    cases = golden_cases()
    assert {case["anchors"] for case in cases} == {"all", "masked", "unmasked"}
    for case in cases:
        shape = (case["batch"], case["length"], case["hidden"])
        array = {
            name: torch.tensor(case[name], dtype=torch.float64).view(shape)
            for name in ("hidden_states", "embeddings", "grad_hidden_states", "grad_embeddings")
        }
        states, embeddings = array["hidden_states"].requires_grad_(), array["embeddings"].requires_grad_()
        masked = torch.tensor(case["labels"]).flatten() != -100
        place = {"all": None, "masked": masked.nonzero()[:, 0], "unmasked": (~masked).nonzero()[:, 0]}
        anchors = place[case["anchors"]]
        rows = slice(None) if anchors is None else anchors
        positive = torch.tensor(case["positive_index"])[rows]
        negative = torch.tensor(case["negative_index"])[rows]
        loss = token_contrast_loss(states, embeddings, positive, negative, anchors, case["temperature"])
        loss.backward()
        assert abs(loss.item() - case["tc_loss"]) < 1e-9
        assert states.grad is not None
        assert embeddings.grad is not None
        torch.testing.assert_close(states.grad, array["grad_hidden_states"], rtol=0, atol=1e-9)
        torch.testing.assert_close(embeddings.grad, array["grad_embeddings"], rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), subset=st.booleans(), temperature=st.sampled_from([0.01, 0.07, 1.0]))
def test_agrees_with_loops(seed: int, subset: bool, temperature: float) -> None:
    states, embeddings, positive, negative = random_case(seed)
    anchors = torch.tensor([17, 3, 3, 8]) if subset else None
    if anchors is not None:
        positive, negative = positive[:4], negative[:4]
    loss = token_contrast_loss(states, embeddings, positive, negative, anchors, temperature)
    loops = loop_token_contrast(states, embeddings, positive, negative, anchors, temperature) / len(positive)
    torch.testing.assert_close(loss, loops, rtol=1e-12, atol=1e-12)
    fast, slow = (torch.autograd.grad(value, (states, embeddings)) for value in (loss, loops))
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)


def test_no_anchors_give_zero_and_a_zero_gradient() -> None:
    states, embeddings, positive, negative = random_case(0)
    loss = token_contrast_loss(states, embeddings, positive[:0], negative[:0], torch.tensor([], dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0.0
    assert states.grad is not None
    assert not states.grad.any()


@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("temperature", [0.001, 0.07])
def test_finite_at_low_temperature(autocast: torch.dtype | None, temperature: float) -> None:
    objective = contrast(temperature=temperature)
    encoder = TinyEncoder()
    corrupted = objective.corrupt(make_batch())
    with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
        loss = objective.sums(encoder, corrupted)["tc"]
    loss.backward()
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)
    assert encoder.words.grad is not None
    assert torch.isfinite(encoder.words.grad).all()
    assert encoder.words.grad.any()


def test_a_state_equal_to_its_embedding_has_a_finite_gradient() -> None:
    states, _, positive, negative = random_case(0)
    same = states.detach().float().requires_grad_()
    token_contrast_loss(same, states.detach().float(), positive, negative, temperature=0.001).backward()
    assert same.grad is not None
    assert torch.isfinite(same.grad).all()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("anchors", list(Anchors))
@pytest.mark.parametrize("matched", list(NegativePositions))
def test_term_is_the_loss_over_its_own_draws(padded: bool, anchors: Anchors, matched: NegativePositions) -> None:
    objective = contrast(anchors=anchors, negative_positions=matched)
    encoder, term = TinyEncoder().double(), objective.terms["tc"]
    assert isinstance(term, TokenContrast)
    corrupted = objective.corrupt(make_batch(padded=padded))
    flat = corrupted.anchors.flatten().nonzero()[:, 0]
    positive, negative = term.draw(flat, corrupted, 0, 1)
    output = encoder(corrupted.input_ids, corrupted.attention_mask)
    expected = loop_token_contrast(output.hidden_states, output.embeddings, positive, negative, flat, 0.07)
    torch.testing.assert_close(objective.sums(encoder, corrupted)["tc"], expected)
    assert int(objective.counts(corrupted)["tc"]) == len(flat) > 0


@pytest.mark.parametrize("choice", list(Embedding))
def test_embedding_that_is_subtracted(choice: Embedding) -> None:
    objective, encoder = contrast(embedding=choice), TinyEncoder().double()
    corrupted = objective.corrupt(make_batch())
    states = encoder(corrupted.input_ids).hidden_states

    def fake(input_ids: Tensor, attention_mask: Tensor | None = None) -> TinyOutput:
        return TinyOutput(3 * encoder.words[input_ids], states)

    fake.word_embeddings = encoder.words  # type: ignore[attr-defined]
    subtracted = {
        Embedding.layer_output: 3 * encoder.words[corrupted.input_ids],
        Embedding.original_word: encoder.words[corrupted.originals],
        Embedding.input_word: encoder.words[corrupted.input_ids],
    }[choice]
    term = objective.terms["tc"]
    assert isinstance(term, TokenContrast)
    positive, negative = term.draw(None, corrupted, 0, 1)
    expected = loop_token_contrast(states, subtracted, positive, negative, None, 0.07)
    torch.testing.assert_close(objective.sums(fake, corrupted)["tc"], expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("choice", list(StopGradient))
def test_where_the_gradient_ends(choice: StopGradient) -> None:
    objective = contrast(stop_gradient=choice)
    corrupted = objective.corrupt(make_batch())
    states, embeddings = random_case(3, 6, 12)[:2]
    loss = objective.sums(lambda *_: TinyOutput(embeddings, states), corrupted)["tc"]  # type: ignore[arg-type]
    term = objective.terms["tc"]
    assert isinstance(term, TokenContrast)
    positive, negative = term.draw(None, corrupted, 0, 1)
    constant = embeddings.detach() if choice is StopGradient.keys_and_embeddings else embeddings
    attached = choice is StopGradient.none
    loops = loop_token_contrast(states, constant, positive, negative, None, 0.07, constant_keys=not attached)
    for variable in (states, embeddings):
        fast, slow = (torch.autograd.grad(x, variable, retain_graph=True, allow_unused=True)[0] for x in (loss, loops))
        torch.testing.assert_close(fast, slow)
    constant_gradient = torch.autograd.grad(loss, embeddings, allow_unused=True)[0]
    assert (constant_gradient is None) == (choice is StopGradient.keys_and_embeddings)


def test_a_pool_of_one_sequence_is_refused() -> None:
    objective, encoder = contrast(), TinyEncoder()
    corrupted = objective.corrupt(make_batch())
    with pytest.raises(ValueError, match="micro_batch_size"):
        objective.sums(encoder, corrupted.split(1)[0])


@pytest.mark.parametrize(
    ("choice", "key"),
    [({"window": 4}, "window"), ({"window": 1}, "window"), ({"temperature": 0.0}, "temperature")],
)
def test_impossible_settings_are_refused(choice: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=f"objective.tc.{key}"):
        contrast(**choice)


@settings(deadline=None, max_examples=10)
@given(order=st.permutations(range(6)))
def test_positives_do_not_depend_on_the_batch(order: list[int]) -> None:
    objective, batch = contrast(edges=WindowEdges.sequence), make_batch()
    term = objective.terms["tc"]
    assert isinstance(term, TokenContrast)
    moved = replace(batch, input_ids=batch.input_ids[order], example=batch.example[order])
    columns = [term.draw(None, objective.corrupt(each), 0, 1)[0].view(6, 12) % 12 for each in (batch, moved)]
    assert torch.equal(columns[0][order], columns[1])


def test_draws_differ_between_epochs_and_seeds() -> None:
    batch = make_batch()
    draws = []
    for seed, epoch in ((1, 0), (1, 1), (2, 0)):
        objective = contrast(seed)
        term = objective.terms["tc"]
        assert isinstance(term, TokenContrast)
        later = replace(batch, epoch=torch.full_like(batch.epoch, epoch))
        draws.append(term.draw(None, objective.corrupt(later), 0, 1)[1])
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
