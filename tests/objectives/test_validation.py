"""Validation: the same masks and draws for every arm, and similarities as defined."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from taco_cli.config.schema import Anchors, TokenContrastConfig
from taco_cli.objectives import content_mask, similarities, similarity_sums, validation_sums
from tests.objectives.tiny import SPECIAL, TinyEncoder, make_batch

TC = TokenContrastConfig(negatives=9)


def measure(tc: TokenContrastConfig = TC, epoch: int = 0, seed: int = 0) -> dict[str, Tensor]:
    batch = make_batch(rows=30)
    return validation_sums(TinyEncoder(), replace(batch, epoch=batch.epoch + epoch), SPECIAL, seed, tc)


def test_measures_the_same_each_time_and_for_each_arm() -> None:
    first = measure()
    assert set(first) == {"mlm_loss", "mlm_hits", "mlm_count", "tc_loss", "tc_hits", "tc_count"}
    for other in (measure(), measure(epoch=3), measure(replace(TC, weight=1.0, anchors=Anchors.masked))):
        assert all(torch.equal(first[name], other[name]) for name in first)
    assert not torch.equal(first["mlm_loss"], measure(seed=1)["mlm_loss"])


def test_counts_and_chance_level() -> None:
    sums = measure()
    assert int(sums["tc_count"]) == 30 * 12
    assert 20 < int(sums["mlm_count"]) < 70  # 15 % of 300 words
    assert 0 <= int(sums["mlm_hits"]) <= int(sums["mlm_count"])
    assert 0 < int(sums["tc_hits"]) < int(sums["tc_count"])
    assert not any(value.requires_grad for value in sums.values())


def test_a_pool_of_one_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sums = validation_sums(TinyEncoder(), make_batch(rows=1), SPECIAL, 0, TC)
    assert "one sequence" in caplog.text
    assert int(sums["tc_count"]) == 0


def test_content_leaves_out_special_tokens_and_padding() -> None:
    batch = make_batch(padded=True)
    assert batch.attention_mask is not None
    words = batch.attention_mask & (batch.input_ids > 4)
    assert torch.equal(content_mask(batch, SPECIAL), words)


def test_similarities_agree_with_all_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    batches = [
        (torch.randn(3, 5, 4, generator=generator) + 0.5, torch.rand(3, 5, generator=generator) < 0.7) for _ in range(2)
    ]
    sums: dict[str, Tensor] = {}
    for states, tokens in batches:
        for name, value in similarity_sums(states, tokens).items():
            sums[name] = sums.get(name, torch.zeros_like(value)) + value
    sequences = [s[t] for states, tokens in batches for s, t in zip(states, tokens, strict=True)]
    intra, inter = [], []
    for i, first in enumerate(sequences):
        for j, second in enumerate(sequences):
            cosines = functional.cosine_similarity(first[:, None], second[None], dim=-1)
            if i == j and len(first) > 1:
                intra.append(cosines[~torch.eye(len(first), dtype=torch.bool)].mean())
            elif i != j:
                inter.append(cosines.flatten())
    result = similarities(sums)
    assert result["intra"] == pytest.approx(float(torch.stack(intra).mean()), abs=1e-6)
    assert result["inter"] == pytest.approx(float(torch.cat(inter).mean()), abs=1e-6)


def test_similarity_of_states_that_are_all_alike_is_one() -> None:
    result = similarities(similarity_sums(torch.ones(3, 4, 5), torch.ones(3, 4, dtype=torch.bool)))
    assert result == pytest.approx({"intra": 1.0, "inter": 1.0})
