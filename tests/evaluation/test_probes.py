from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from taco_cli.evaluation.probes import Probe, _fit, by_layer


def clusters(count: int, spread: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    classes = torch.randint(3, (count,), generator=draw)
    centres = 2 * torch.eye(3, 8)
    return centres[classes] + spread * torch.randn(count, 8, generator=draw), classes


@pytest.mark.parametrize("penalty", [1.0, 0.01])
def test_fit_is_scikit_learns(penalty: float) -> None:
    features, classes = clusters(200, 1.0)
    mine = _fit(features, classes, penalty, torch.zeros(3, 9))
    # scikit-learn's C weighs the sum of losses against |W|² / 2
    theirs = LogisticRegression(C=1 / (penalty * 200), max_iter=1000, tol=1e-8).fit(features.numpy(), classes.numpy())
    torch.testing.assert_close(mine[:, :-1], torch.tensor(theirs.coef_, dtype=torch.float32), atol=5e-3, rtol=2e-2)


def test_regularisation_is_chosen_in_training() -> None:
    draw = torch.Generator().manual_seed(1)
    noisy = torch.cat([clusters(120, 1.5)[0], torch.randn(120, 200, generator=draw)], dim=1)
    classes = clusters(120, 1.5)[1]
    probe = Probe(noisy, classes)
    assert probe.penalty > 1e-4  # more features than examples: the weakest penalty learns them by heart
    again = Probe(noisy, classes)
    assert (probe.penalty, probe.held_out) == (again.penalty, again.held_out)


def test_accuracy_by_layer() -> None:
    (near, classes), (far, _) = clusters(300, 0.3), clusters(300, 0.3, seed=9)
    test, test_classes = clusters(100, 0.3, seed=5)
    found = by_layer(torch.stack([far, near]), classes, torch.stack([test, test]), test_classes)
    assert found["accuracy"] == found["accuracy_of_layer_1"] > 95
    assert found["accuracy_of_layer_0"] < 70  # features of other examples than the classes


def test_a_constant_feature_and_a_class_that_is_only_scored() -> None:
    features = torch.cat([torch.ones(40, 1), torch.arange(40.0)[:, None]], dim=1)
    probe = Probe(features, (torch.arange(40) >= 20).long())
    assert probe.accuracy(features, torch.full((40,), 2)) == 0.0
