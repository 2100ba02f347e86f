"""Objectives as training sees them: terms by name, sums that add up, one encoder call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.config.schema import (
    Anchors,
    MaskedLMConfig,
    MaskingConfig,
    ObjectiveConfig,
    TokenContrastConfig,
)
from taco_cli.objectives import Batch, Objective, build_objective
from tests.objectives.tiny import SPECIAL, TinyEncoder, make_batch

NOTHING = MaskingConfig(rate=0.0)


def objective(
    mlm: float = 1.0,
    tc: float = 0.0,
    tp: float = 0.0,
    masking: MaskingConfig | None = None,
    anchors: Anchors = Anchors.all,
) -> Objective:
    config = ObjectiveConfig(tc=TokenContrastConfig(weight=tc, negatives=5, anchors=anchors))
    config.mlm.weight, config.tp.weight = mlm, tp
    return build_objective(config, masking or MaskingConfig(), SPECIAL, seed=1)


def test_terms_are_those_with_a_weight() -> None:
    encoder, corrupted = TinyEncoder(), objective().corrupt(make_batch())
    for weights in ({"mlm": 1.0}, {"tc": 0.5}, {"mlm": 1.0, "tc": 2.0}, {"mlm": 1.0, "tp": 1.0}):
        built = objective(**{"mlm": 0.0} | weights)
        assert built.weights == weights
        assert set(built.counts(corrupted)) == set(built.sums(encoder, corrupted)) == set(weights)


def test_the_encoder_is_called_once() -> None:
    encoder, built = TinyEncoder(), objective(tc=1.0, tp=1.0)
    built.sums(encoder, built.corrupt(make_batch()))
    assert encoder.calls == 1


def test_mlm_and_tp_predict_every_word_once() -> None:
    built, batch, encoder = objective(tp=1.0), make_batch(padded=True), TinyEncoder().double()
    corrupted = built.corrupt(batch)
    counts, sums = built.counts(corrupted), built.sums(encoder, corrupted)
    assert batch.attention_mask is not None
    words = batch.attention_mask & ~torch.isin(batch.input_ids, torch.tensor(SPECIAL.special_ids))
    assert int(counts["mlm"] + counts["tp"]) == int(words.sum())
    states = encoder(corrupted.input_ids, batch.attention_mask).hidden_states
    logits = encoder.predict(states) @ encoder.decoder_weight.T + encoder.bias
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch.input_ids, reduction="none")
    torch.testing.assert_close(sums["mlm"], losses[corrupted.selected].sum())
    torch.testing.assert_close(sums["tp"], losses[words & ~corrupted.selected].sum())


@settings(deadline=None, max_examples=10)
@given(size=st.integers(1, 6), padded=st.booleans())
def test_sums_and_gradients_of_micro_batches_add_up(size: int, padded: bool) -> None:
    built = objective(tp=1.0, masking=MaskingConfig(rate=0.4))
    results = []
    for step in (6, size):
        encoder = TinyEncoder().double()
        corrupted = built.corrupt(make_batch(padded=padded))
        counts = built.counts(corrupted)
        total = 0.0
        for part in corrupted.split(step):
            sums = built.sums(encoder, part)
            loss = torch.stack([built.weights[name] * sums[name] / counts[name] for name in sums]).sum()
            loss.backward()
            total += loss.item()
        results.append((total, encoder.words.grad, sum(int(n) for n in counts.values())))
    assert results[0][0] == pytest.approx(results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1])


@settings(deadline=None, max_examples=10)
@given(size=st.integers(1, 6), anchors=st.sampled_from(list(Anchors)), padded=st.booleans())
def test_counts_of_micro_batches_add_up(size: int, anchors: Anchors, padded: bool) -> None:
    built = objective(tc=1.0, tp=1.0, anchors=anchors)
    corrupted = built.corrupt(make_batch(padded=padded))
    for name, count in built.counts(corrupted).items():
        assert not count.is_floating_point()
        assert int(count) == sum(int(built.counts(part)[name]) for part in corrupted.split(size))


def test_counts_are_what_sums_sum_over() -> None:
    # With all logits and all scores equal, every prediction costs the logarithm of its choices.
    built = objective(tc=1.0, tp=1.0)
    encoder = TinyEncoder().double()
    with torch.no_grad():
        encoder.mix.zero_()
        encoder.head.zero_()
        encoder.bias.zero_()
        encoder.words.copy_(encoder.words[:1].expand_as(encoder.words))
    corrupted = built.corrupt(make_batch(padded=True))
    counts, sums = built.counts(corrupted), built.sums(encoder, corrupted)
    for name, choices in (("mlm", 40), ("tp", 40), ("tc", 6)):
        expected = counts[name] * torch.tensor(choices, dtype=torch.float64).log()
        torch.testing.assert_close(sums[name].detach(), expected)


@pytest.mark.parametrize("autocast", [False, True])
def test_a_batch_without_predictions_gives_zeros(autocast: bool) -> None:
    built = objective(tc=1.0, masking=NOTHING, anchors=Anchors.masked)
    encoder = TinyEncoder()
    corrupted = built.corrupt(make_batch())
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        sums = built.sums(encoder, corrupted)
    assert {name: value.item() for name, value in sums.items()} == {"mlm": 0.0, "tc": 0.0}
    assert {name: int(value) for name, value in built.counts(corrupted).items()} == {"mlm": 0, "tc": 0}
    torch.stack(list(sums.values())).sum().backward()
    for parameter in encoder.parameters():
        assert parameter.grad is not None
        assert not parameter.grad.any()


def test_a_batch_is_corrupted_alike_by_every_arm() -> None:
    batch = make_batch(rows=20)
    arms = [objective(), objective(tc=1.0), objective(tp=1.0), objective(tc=1.0, anchors=Anchors.masked)]
    seen = [arm.corrupt(batch).input_ids for arm in arms]
    assert all(torch.equal(seen[0], other) for other in seen)


def test_epochs_are_corrupted_differently() -> None:
    built, batch = objective(), make_batch(rows=20)
    later = Batch(batch.input_ids, batch.example, batch.epoch + 1)
    assert not torch.equal(built.corrupt(batch).selected, built.corrupt(later).selected)


def test_nothing_to_learn_is_refused() -> None:
    with pytest.raises(ValueError, match=r"objective.mlm.weight"):
        objective(mlm=0.0)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_none_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"objective\.tc\.weight"):
        objective(tc=weight)


def test_a_term_that_is_not_registered_is_refused() -> None:
    @dataclass
    class Extended(ObjectiveConfig):
        sop: MaskedLMConfig = field(default_factory=MaskedLMConfig)

    with pytest.raises(ValueError, match=r"objective\.sop.*mlm, tc, tp"):
        build_objective(Extended(), MaskingConfig(), SPECIAL, seed=1)
    without = replace(Extended(), sop=MaskedLMConfig(weight=0.0))
    assert build_objective(without, MaskingConfig(), SPECIAL, seed=1).weights == {"mlm": 1.0}
