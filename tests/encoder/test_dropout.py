from __future__ import annotations

import pytest
import torch

from taco_cli.encoder.dropout import Dropout, Site, draw_factors


def factors(probability: float, *sizes: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return draw_factors([Site(size, probability) for size in sizes], dtype)


def dropped(probability: float, seed: int = 0, size: int = 400_000) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(True, factors(probability, size))(torch.ones(size), probability)


@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5, 0.9])
def test_share_and_expectation(probability: float) -> None:
    result = dropped(probability)
    share = (result == 0).double().mean().item()
    error = (probability * (1 - probability) / result.numel()) ** 0.5
    assert abs(share - probability) < 5 * error
    kept = result[result != 0]
    assert torch.all(kept == kept[0])
    assert kept[0].item() == pytest.approx(1 / (1 - probability), rel=1e-4)


def test_neighbours_are_independent() -> None:
    gone = (dropped(0.3) == 0).double()
    for lag in range(1, 9):  # four elements come from one word
        assert abs(torch.corrcoef(torch.stack((gone[lag:], gone[:-lag])))[0, 1]) < 5 / len(gone) ** 0.5


def test_calls_of_a_pass_take_different_factors() -> None:
    dropout = Dropout(True, factors(0.5, 1000, 1000))
    first, second = dropout(torch.ones(10, 100), 0.5), dropout(torch.ones(10, 100), 0.5)
    assert not torch.equal(first, second)
    assert dropout.used == 2


def test_gradient_passes_where_the_value_did() -> None:
    x = torch.ones(1000, requires_grad=True)
    result = Dropout(True, factors(0.4, 1000))(x, 0.4)
    result.sum().backward()
    assert torch.equal(x.grad, result.detach())


def test_inactive_and_zero_return_the_input() -> None:
    x = torch.ones(5)
    assert Dropout(False)(x, 0.5) is x
    assert Dropout(True)(x, 0.0) is x


def test_without_factors_it_is_torchs_own() -> None:
    torch.manual_seed(4)
    ours = Dropout(True)(torch.ones(100), 0.5)
    torch.manual_seed(4)
    assert torch.equal(ours, torch.nn.functional.dropout(torch.ones(100), 0.5))


def test_half_precision_keeps_its_type() -> None:
    assert (
        Dropout(True, factors(0.1, 8, dtype=torch.bfloat16))(torch.ones(8, dtype=torch.bfloat16), 0.1).dtype
        is torch.bfloat16
    )


def test_every_site_has_its_own_probability() -> None:
    torch.manual_seed(0)
    first, second = draw_factors([Site(99_999, 0.1), Site(50_002, 0.6)], torch.float32)
    assert (len(first), len(second)) == (99_999, 50_002)
    assert abs((first == 0).float().mean() - 0.1) < 0.01
    assert abs((second == 0).float().mean() - 0.6) < 0.02


def test_a_float32_input_keeps_its_type_under_narrow_factors() -> None:
    assert Dropout(True, factors(0.1, 8, dtype=torch.bfloat16))(torch.ones(8), 0.1).dtype is torch.float32
