"""Linear probes: multinomial logistic regression on frozen states, its regularisation chosen inside training.

Legend: N examples, d features, C classes.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from taco_cli.randomness import permutation, stream_key

PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)  # from strong to weak, each fit starts where the last one ended
_HELD_OUT = 0.2  # share of training that chooses among them
_ITERATIONS = 60


class Probe:
    """A fitted probe.

    Attributes:
        penalty: the one chosen.
        held_out: accuracy on the held-out part of training, in [0, 1].
    """

    def __init__(self, features_Nd: Tensor, classes_N: Tensor) -> None:
        """Fit to features ``(N, d)`` and class indices ``(N,)``; the result is a function of them alone."""
        self._mean_d = features_Nd.mean(0)
        self._scale_d = features_Nd.std(0, correction=0).clamp(min=1e-6)
        x_Nd = self._standard(features_Nd)
        count = int(classes_N.max()) + 1
        order = permutation(stream_key(0, "probe/held_out"), 0, len(x_Nd))
        kept, held = order[(cut := max(1, round(_HELD_OUT * len(order)))) :], order[:cut]
        weights = torch.zeros(count, x_Nd.shape[1] + 1)
        self.penalty, self.held_out, best = PENALTIES[0], -1.0, weights
        for penalty in PENALTIES:
            weights = _fit(x_Nd[kept], classes_N[kept], penalty, weights)
            accuracy = _accuracy(weights, x_Nd[held], classes_N[held])
            if accuracy > self.held_out:
                self.penalty, self.held_out, best = penalty, accuracy, weights
        self._weights = _fit(x_Nd, classes_N, self.penalty, best)

    def accuracy(self, features_Nd: Tensor, classes_N: Tensor) -> float:
        """Return the share of examples classified correctly, in [0, 1]."""
        return _accuracy(self._weights, self._standard(features_Nd), classes_N)

    def _standard(self, features_Nd: Tensor) -> Tensor:
        return (features_Nd - self._mean_d) / self._scale_d


def _fit(x_Nd: Tensor, classes_N: Tensor, penalty: float, start: Tensor) -> Tensor:
    """Minimise mean cross-entropy + penalty / 2 · |W|² by L-BFGS; the last column, the bias, is free."""
    weights = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=_ITERATIONS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = (
            functional.cross_entropy(_logits(weights, x_Nd), classes_N) + 0.5 * penalty * weights[:, :-1].square().sum()
        )
        value.backward()
        return value

    optimizer.step(loss)
    return weights.detach()


def _logits(weights: Tensor, x_Nd: Tensor) -> Tensor:
    return functional.linear(x_Nd, weights[:, :-1], weights[:, -1])


def _accuracy(weights: Tensor, x_Nd: Tensor, classes_N: Tensor) -> float:
    return float((_logits(weights, x_Nd).argmax(1) == classes_N).double().mean())


def by_layer(train_DNd: Tensor, train_N: Tensor, test_DNd: Tensor, test_N: Tensor) -> dict[str, float]:
    """Probe every layer; return accuracies in points.

    Returns:
        `accuracy` of the last layer, and `accuracy_of_layer_<k>`, 0 being the embeddings.
    """
    layers = [
        100.0 * Probe(train_Nd, train_N).accuracy(test_Nd, test_N)
        for train_Nd, test_Nd in zip(train_DNd, test_DNd, strict=True)
    ]
    return {"accuracy": layers[-1], **{f"accuracy_of_layer_{k}": value for k, value in enumerate(layers)}}
