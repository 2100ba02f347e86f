"""The contrastive loss as nested loops: slow, and plainly what the paper says."""

from __future__ import annotations

import torch
from torch import Tensor


def loop_token_contrast(
    hidden_states: Tensor,
    embeddings: Tensor,
    positive_index: Tensor,
    negative_index: Tensor,
    anchors: Tensor | None,
    temperature: float,
    constant_keys: bool = True,
) -> Tensor:
    """Return the loss summed over the anchors."""
    semantics = (hidden_states - embeddings).flatten(0, 1)
    places = list(range(len(semantics))) if anchors is None else anchors.tolist()
    total = semantics.new_zeros(())
    for row, place in enumerate(places):
        scores = []
        for candidate in [int(positive_index[row]), *negative_index[row].tolist()]:
            key = semantics[candidate].detach() if constant_keys else semantics[candidate]
            query = semantics[place]
            scores.append(query.dot(key) / (query.norm() * key.norm()) / temperature)
        total = total + torch.stack(scores).logsumexp(0) - scores[0]
    return total
