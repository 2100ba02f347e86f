"""How much of the token contrast is solved by knowing where a token is?

Positives are near the anchor and uniform negatives are not, so a smooth code of position lowers the loss without any
semantics (method, section 3).

Legend: N sequences, L positions, M = N·L, A anchors, d hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from torch import Tensor
from torch.nn import functional

from taco_cli.analysis.figures import LAST, Headline, View
from taco_cli.analysis.material import Material
from taco_cli.analysis.tables import Row
from taco_cli.config.schema import NegativePositions
from taco_cli.encoder import Encoder
from taco_cli.objectives import Batch, token_contrast_loss
from taco_cli.objectives.token_contrast import TokenContrast, normalised_semantics

COLUMNS = ("step", "vector", "negatives", "measure", "value")
QUESTION = "Shortcut: how much of the contrast is solved by knowing where a token is? (dashed: chance)"

_CHANCE = {"measure": "chance"}
VIEWS = (
    View("TC of g", "step", "negatives", {"vector": "g", "measure": "loss"}, "nats", _CHANCE),
    View("TC of the mean g of each position", "step", "negatives",
         {"vector": "position", "measure": "loss"}, "nats", {"vector": "g", **_CHANCE}),
    View("position, read from g", "step", "", {"vector": "g", "measure": "position_r2"}, "R²"),
)  # fmt: skip
COMPARED = (
    View("TC of g, uniform negatives", "step", "",
         {"vector": "g", "negatives": "uniform", "measure": "loss"}, "nats", _CHANCE),
    View("TC of g, position-matched negatives", "step", "",
         {"vector": "g", "negatives": "position_matched", "measure": "loss"}, "nats", _CHANCE),
    View("position, read from g", "step", "", {"vector": "g", "measure": "position_r2"}, "R²"),
)  # fmt: skip
HEADLINE = Headline(
    "TC of g with position-matched negatives less TC with uniform ones, in nats, at the last step",
    {"vector": "g", "negatives": "", "measure": "matched_minus_uniform", "step": LAST},
)


@torch.no_grad()
def measure(encoder: Encoder, material: Material) -> Iterator[Row]:
    """Yield the contrast of held-out sequences, corrupted as published, for both kinds of negatives.

    ``loss`` (nats) and its ``chance`` level ln(1 + K), with the run's own negatives, window, temperature and embedding,
    every position an anchor: of ``g``, and of ``position``: each token's g replaced by the mean direction that g has at
    its position in training sequences, which knows where the token is and nothing else. ``explained``: what the latter
    gains on chance, as a share of what g gains, with uniform negatives. ``position_r2``: share of the variance of
    position that ridge regression reads from g, learnt from training sequences.
    """
    contrasts = {kind: material.contrast(kind) for kind in NegativePositions}
    learnt_MLd = _units(encoder, contrasts[NegativePositions.uniform], material, material.training())
    direction_Ld = functional.normalize(torch.cat(learnt_MLd).mean(0), dim=-1)
    held_out = _units(encoder, contrasts[NegativePositions.uniform], material, material.held_out)
    chance = math.log(1 + material.config.objective.tc.negatives)
    losses: dict[tuple[str, str], float] = {}
    for kind, contrast in contrasts.items():
        for vector in ("g", "position"):
            loss = _mean_loss(contrast, material, held_out, direction_Ld if vector == "position" else None)
            losses[vector, str(kind)] = loss
            yield _row(vector, str(kind), "loss", loss)
            yield _row(vector, str(kind), "chance", chance)
    uniform, matched = losses["g", "uniform"], losses["g", "position_matched"]
    yield _row("g", "", "matched_minus_uniform", matched - uniform)
    if chance > uniform:
        yield _row("position", "uniform", "explained", (chance - losses["position", "uniform"]) / (chance - uniform))
    yield _row("g", "", "position_r2", position_r2(torch.cat(learnt_MLd), torch.cat(held_out)))


def position_r2(train_NLd: Tensor, test_NLd: Tensor) -> float:
    """Return R² of the position within the sequence, read linearly from vectors; first and last token left out."""
    parts = []
    for vectors_NLd in (train_NLd, test_NLd):
        inner_NLd = vectors_NLd[:, 1:-1]
        position_P = torch.arange(inner_NLd.shape[1]).repeat(len(inner_NLd))
        parts += [inner_NLd.flatten(0, 1).double().cpu().numpy(), position_P.double().numpy()]
    model = Ridge(alpha=1e-3, solver="cholesky").fit(parts[0], parts[1])
    return float(r2_score(parts[3], model.predict(parts[2])))


def _units(encoder: Encoder, contrast: TokenContrast, material: Material, batches: list[Batch]) -> list[Tensor]:
    """Return unit vectors of g, ``(N, L, d)`` for each batch."""
    units = []
    for batch in batches:
        corrupted = material.corrupt(batch)
        output = encoder(corrupted.input_ids, corrupted.attention_mask)
        units_Md = normalised_semantics(output.hidden_states, contrast.embeddings(encoder, output, corrupted))
        units.append(units_Md.view(*batch.input_ids.shape, -1))
    return units


def _mean_loss(contrast: TokenContrast, material: Material, units: list[Tensor], instead_Ld: Tensor | None) -> float:
    """Return the mean loss over all anchors; ``instead_Ld``: of these vectors at every position."""
    total, anchors = 0.0, 0
    for batch, units_NLd in zip(material.held_out, units, strict=True):
        vectors_NLd = units_NLd if instead_Ld is None else instead_Ld.expand_as(units_NLd)
        positive_A, negative_AK = contrast.draw(None, material.corrupt(batch), rank=0, ranks=1)
        temperature = material.config.objective.tc.temperature
        loss = token_contrast_loss(
            vectors_NLd, torch.zeros_like(vectors_NLd), positive_A, negative_AK, temperature=temperature
        )
        total += float(loss) * len(positive_A)
        anchors += len(positive_A)
    return total / anchors


def _row(vector: str, negatives: str, what: str, value: float) -> Row:
    return {"vector": vector, "negatives": negatives, "measure": what, "value": value}
