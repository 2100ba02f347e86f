"""What users have today, written plainly: the slow side of each pair.

Float32, stock Hugging Face `AutoModelForMaskedLM` with the head on every position, all negatives gathered as one
``(N, L, K, d)`` tensor, and index draws row by row.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def draw_indices(rows: int, length: int, negatives: int) -> tuple[Tensor, Tensor]:
    """Draw positives ``(N, L)`` within two tokens and negatives ``(N, L, K)`` from other rows, as flat indices."""
    positive, negative = [], []
    for row in range(rows):
        offset = torch.tensor([-2, -1, 1, 2])[torch.randint(4, (length,))]
        column = torch.arange(length) + offset
        outside = (column < 0) | (column >= length)
        column[outside] = (torch.arange(length)[outside] + torch.randint(1, length, (int(outside.sum()),))) % length
        positive.append(row * length + column)
        others = torch.randint(rows - 1, (length, negatives))
        others[others >= row] += 1
        negative.append(others * length + torch.randint(length, (length, negatives)))
    return torch.stack(positive), torch.stack(negative)


def contrast(hidden: Tensor, embeddings: Tensor, positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """Return the mean token-contrast loss; everything gathered at once."""
    g = hidden - embeddings
    keys = g.detach().flatten(0, 1)
    candidates = torch.cat((keys[positive][:, :, None], keys[negative]), dim=2)
    scores = functional.cosine_similarity(g[:, :, None], candidates, dim=-1) / temperature
    return -functional.log_softmax(scores, dim=-1)[..., 0].mean()


def loss(model: Any, input_ids: Tensor, labels: Tensor, negatives: int) -> Tensor:
    """Return MLM plus, for ``negatives`` above 0, the contrast."""
    output = model(input_ids=input_ids, labels=labels, output_hidden_states=True)
    if not negatives:
        return output.loss
    positive, negative = draw_indices(*input_ids.shape, negatives)
    states = output.hidden_states
    return output.loss + contrast(states[-1], states[0], positive, negative, temperature=0.07)


def check_same_loss() -> float:
    """Return the relative difference between this side and the tool on the same small inputs."""
    from taco_cli.objectives import token_contrast_loss

    torch.manual_seed(0)
    hidden, embeddings = torch.randn(4, 16, 32), torch.randn(4, 16, 32)
    positive, negative = draw_indices(4, 16, 8)
    ours = token_contrast_loss(hidden, embeddings, positive.flatten(), negative.flatten(0, 1))
    theirs = contrast(hidden, embeddings, positive, negative, 0.07)
    return float((ours - theirs).abs() / theirs)
