"""The plain side computes what the tool computes, so that a ratio of times compares the same work."""

from __future__ import annotations

import pytest
import torch

from benchmarks import plain


def test_contrast_is_the_tools() -> None:
    assert plain.difference_of_contrast() < 1e-5


@pytest.mark.parametrize("encoder", ["bert_tiny", "modernbert_tiny"])
def test_mlm_is_the_tools(encoder: str) -> None:
    assert plain.difference_of_mlm(encoder) < 1e-5


def test_a_wrong_loss_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = plain.loss
    monkeypatch.setattr(plain, "loss", lambda *arguments, **named: right(*arguments, **named) * 1.0001)
    assert plain.difference_of_mlm() > 1e-5


def test_draws_are_of_the_window_and_of_other_rows() -> None:
    positive, negative = plain.draw_indices(3, 16, 5)
    place = torch.arange(3 * 16).view(3, 16)
    assert torch.equal(positive // 16, place // 16)
    assert bool((positive != place).all())
    inner = (positive - place)[:, 2:-2].abs()
    assert int(inner.max()) <= 2
    assert bool((negative // 16 != (place // 16)[..., None]).all())
