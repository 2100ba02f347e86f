"""What users have today, written plainly: the slow side of each pair.

Float32, stock Hugging Face `AutoModelForMaskedLM` with the head on every position, all negatives gathered as one
``(N, L, K, d)`` tensor, and index draws row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.case import Case

NEGATIVES = 50


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
    output = model(input_ids=input_ids, labels=labels, output_hidden_states=negatives > 0)
    if not negatives:
        mlm: Tensor = output.loss
        return mlm
    positive, negative = draw_indices(*input_ids.shape, negatives)
    states = output.hidden_states
    total: Tensor = output.loss + contrast(states[-1], states[0], positive, negative, temperature=0.07)
    return total


def model_of(case: Case) -> Any:
    """Return the stock masked-LM model of a case, with fresh weights."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    from benchmarks.material import encoder_sizes

    sizes = encoder_sizes(case.encoder)
    names = {"bert": ("hidden_dropout_prob", "attention_probs_dropout_prob")}.get(sizes["architecture"], ())
    config = AutoConfig.for_model(
        sizes["architecture"],
        vocab_size=case.vocab_size,
        num_hidden_layers=sizes["layers"],
        hidden_size=sizes["hidden_size"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["intermediate_size"],
        pad_token_id=0,
        **dict.fromkeys(names, case.dropout),
    )
    return AutoModelForMaskedLM.from_config(config).train()


def training_step(case: Case, objective: str) -> Callable[[], None]:
    """Return one step on random ids of the case's shape."""
    model = model_of(case)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        ids = torch.randint(5, case.vocab_size, (case.batch_size, case.length))
        labels = torch.where(torch.rand(ids.shape) < 0.15, ids, -100)
        loss(model, ids, labels, NEGATIVES if objective == "taco" else 0).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def difference_of_contrast() -> float:
    """Return the relative difference of the contrast, plain and tool, on the same small states and draws."""
    from taco_cli.objectives import token_contrast_loss

    torch.manual_seed(0)
    hidden, embeddings = torch.randn(4, 16, 32), torch.randn(4, 16, 32)
    positive, negative = draw_indices(4, 16, 8)
    ours = token_contrast_loss(hidden, embeddings, positive.flatten(), negative.flatten(0, 1))
    return _relative(ours, contrast(hidden, embeddings, positive, negative, 0.07))


def difference_of_mlm(encoder_name: str = "bert_tiny") -> float:
    """Return the relative difference of MLM on the same weights and masks: a head everywhere, and the tool's."""
    from benchmarks.material import encoder_sizes
    from taco_cli.config.compose import restored
    from taco_cli.encoder import build_encoder
    from taco_cli.objectives import Batch, SpecialTokens, build_objective

    sizes = encoder_sizes(encoder_name) | {"dropout": 0.0}
    config = restored({"encoder": sizes, "objective": {"mlm": {"weight": 1}, "tc": {"weight": 0}}})
    special = SpecialTokens(mask_id=4, pad_id=0, special_ids=(0, 1, 2, 3, 4), vocab_size=1000)
    encoder = build_encoder(config.encoder, special, 32, seed=0)
    objective = build_objective(config.objective, config.masking, special, seed=0)
    ids = torch.randint(5, 1000, (4, 32), generator=torch.Generator().manual_seed(0))
    corrupted = objective.corrupt(Batch(ids, torch.arange(4), torch.zeros(4, dtype=torch.int64)))
    ours = objective.sums(encoder, corrupted)["mlm"] / objective.counts(corrupted)["mlm"]
    return _relative(ours, loss(encoder.model, corrupted.input_ids, corrupted.labels, negatives=0))


def _relative(ours: Tensor, theirs: Tensor) -> float:
    return float(((ours - theirs).abs() / theirs).detach())
