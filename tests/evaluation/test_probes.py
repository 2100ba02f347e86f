from __future__ import annotations

import torch
from torch.nn import functional

from taco_cli.evaluation.probes import Probe, by_layer
from taco_cli.randomness import permutation, stream_key


def clusters(count: int, spread: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    classes = torch.randint(3, (count,), generator=draw)
    centres = 2 * torch.eye(3, 8)
    return centres[classes] + spread * torch.randn(count, 8, generator=draw), classes


def test_fit_minimises_what_it_says() -> None:
    features, classes = clusters(200, 1.0)
    probe = Probe(features, classes)
    x = (features - features.mean(0)) / features.std(0, correction=0)
    weights = torch.zeros(3, 9, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=500, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = functional.linear(x.double(), weights[:, :-1], weights[:, -1])
        value = functional.cross_entropy(logits, classes) + 0.5 * probe.penalty * weights[:, :-1].square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    torch.testing.assert_close(
        torch.tensor(probe._model.coef_).double(), weights[:, :-1].detach(), atol=5e-3, rtol=2e-2
    )


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


def test_a_class_that_is_held_out_altogether() -> None:
    features, classes = clusters(100, 0.3)
    lonely = permutation(stream_key(0, "probe/held_out"), 0, 101)[0]
    features = torch.cat([features[:lonely], torch.full((1, 8), 9.0), features[lonely:]])
    classes = torch.cat([classes[:lonely], torch.tensor([3]), classes[lonely:]])
    assert Probe(features, classes).accuracy(features, classes) == 1.0
