"""Linear probes: multinomial logistic regression on frozen states, its regularisation chosen inside training.

Legend: N examples, d features, C classes.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from taco_cli.randomness import permutation, stream_key

PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)  # from strong to weak, each fit starts where the last one ended
_HELD_OUT = 0.2  # share of training that chooses among them
_ITERATIONS = 100


class Probe:
    """A fitted probe.

    Attributes:
        penalty: the one chosen.
        held_out: accuracy on the held-out part of training, in [0, 1].
    """

    def __init__(self, features_Nd: Tensor, classes_N: Tensor) -> None:
        """Fit to features ``(N, d)`` and class indices ``(N,)``; the result is a function of them alone."""
        self._scaler = StandardScaler().fit(features_Nd.numpy())
        x_Nd, y_N = self._scaler.transform(features_Nd.numpy()), classes_N.numpy()
        order = permutation(stream_key(0, "probe/held_out"), 0, len(x_Nd)).numpy()
        held, kept = order[: (cut := max(1, round(_HELD_OUT * len(order))))], order[cut:]
        self.penalty, self.held_out = PENALTIES[0], -1.0
        trial = LogisticRegression(max_iter=_ITERATIONS, warm_start=True)
        for penalty in PENALTIES:
            _fit(trial, x_Nd[kept], y_N[kept], penalty)
            accuracy = float(trial.score(x_Nd[held], y_N[held]))
            if accuracy > self.held_out:
                self.penalty, self.held_out = penalty, accuracy
        self._model = LogisticRegression(max_iter=_ITERATIONS)  # afresh: it may see a class that the trial did not
        _fit(self._model, x_Nd, y_N, self.penalty)

    def accuracy(self, features_Nd: Tensor, classes_N: Tensor) -> float:
        """Return the share of examples classified correctly, in [0, 1]."""
        return float(self._model.score(self._scaler.transform(features_Nd.numpy()), classes_N.numpy()))


def _fit(model: LogisticRegression, x_Nd: Any, y_N: Any, penalty: float) -> None:
    """Minimise mean cross-entropy + penalty / 2 · |W|²; scikit-learn's C weighs the sum of losses."""
    model.set_params(C=1.0 / (penalty * len(x_Nd)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # weak penalties on separable classes have no optimum
        model.fit(x_Nd, y_N)


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
