"""Frozen states of a model: means over sentences, and states of chosen tokens, for every layer.

Legend: N sequences, L positions, d hidden size, D layers with the embeddings first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from taco_cli.evaluation.model import Model
from taco_cli.evaluation.tokens import IntArray, Tokens, sorted_batches

_TOKENS_AT_ONCE = 8192
OnShare = Callable[[float], None]  # told the share of the work that is done


@torch.inference_mode()
def sentence_states(model: Model, tokens: Tokens, on_share: OnShare = lambda share: None) -> Tensor:
    """Return the mean state of each sequence in each layer, ``(D, N, d)`` float32, without special tokens."""
    means: Tensor | None = None
    done = 0
    for rows in sorted_batches(tokens.lengths, _TOKENS_AT_ONCE):
        ids_NL, mask = tokens.batch(rows, model.machine.device_type)
        words_NL = (~torch.isin(ids_NL, model.markers)).float()
        weights_NL = words_NL / words_NL.sum(1, keepdim=True).clamp(min=1)  # a text without words has the mean 0
        for layer, states_NLd in enumerate(_layers(model, ids_NL, mask)):
            mean_Nd = torch.bmm(weights_NL[:, None, :], states_NLd.float())[:, 0]
            if means is None:
                means = torch.empty(model.layers, len(tokens), mean_Nd.shape[1])
            means[layer, rows] = mean_Nd.cpu()
        done += len(rows)
        on_share(done / len(tokens))
    assert means is not None
    return means


@torch.inference_mode()
def token_states(
    model: Model, tokens: Tokens, places: Sequence[IntArray], on_share: OnShare = lambda share: None
) -> Tensor:
    """Return the states of chosen positions of each sequence in each layer, ``(D, all chosen, d)`` float32."""
    starts = np.concatenate([[0], np.cumsum([len(chosen) for chosen in places])])
    found: Tensor | None = None
    done = 0
    for rows in sorted_batches(tokens.lengths, _TOKENS_AT_ONCE):
        ids_NL, mask = tokens.batch(rows, model.machine.device_type)
        row = torch.from_numpy(np.repeat(np.arange(len(rows)), [len(places[i]) for i in rows]))
        column = torch.from_numpy(np.concatenate([places[i] for i in rows]))
        target = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in rows])
        for layer, states_NLd in enumerate(_layers(model, ids_NL, mask)):
            if found is None:
                found = torch.empty(model.layers, int(starts[-1]), states_NLd.shape[-1])
            found[layer, target] = states_NLd[row, column].float().cpu()
        done += len(rows)
        on_share(done / len(tokens))
    assert found is not None
    return found


def _layers(model: Model, ids_NL: Tensor, mask_NL: Tensor | None) -> list[Tensor]:
    with model.machine.autocast():
        return model.encoder.layers(ids_NL, mask_NL)
