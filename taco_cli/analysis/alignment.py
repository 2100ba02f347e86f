"""Alignment and uniformity of what each loss pulls together; the shape of states and vocabulary (method, section 7).

Legend: N sequences, L positions, P positions chosen, A anchors, d hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from taco_cli.analysis.figures import LAST, Headline, View
from taco_cli.analysis.material import Material, unmasked_states
from taco_cli.analysis.spectra import alignment, anisotropy, effective_rank, uniformity
from taco_cli.analysis.tables import Row
from taco_cli.encoder import Encoder
from taco_cli.objectives import content_mask
from taco_cli.objectives.token_contrast import normalised_semantics

COLUMNS = ("step", "of", "decile", "measure", "value")
QUESTION = "Alignment: how close are positive pairs, how spread out is everything else?"

_DECILES = 10
_MOST_VECTORS = 16_384  # that uniformity, which grows with the square, is taken over
_ALL = {"decile": ""}
VIEWS = (
    View("distance of positive pairs", "step", "of", {"measure": "alignment", **_ALL}, "mean squared distance"),
    View("uniformity (lower: more spread out)", "step", "of", {"measure": "uniformity", **_ALL}, "log mean potential"),
    View("effective rank", "step", "of", {"measure": "effective_rank", **_ALL}, "directions"),
    View("anisotropy", "step", "of", {"measure": "anisotropy", **_ALL}, "mean cosine"),
    View("effective rank by frequency, last step", "decile", "of",
         {"measure": "effective_rank", "step": LAST, "decile": None}, "directions"),
    View("anisotropy by frequency, last step", "decile", "of",
         {"measure": "anisotropy", "step": LAST, "decile": None}, "mean cosine"),
)  # fmt: skip
COMPARED = tuple(
    View(f"{measure} of {of}".replace("_", " "), "step", "", {"measure": measure, "of": of, **_ALL}, unit)
    for measure, of, unit in (
        ("alignment", "mlm", "mean squared distance"),
        ("alignment", "tc", "mean squared distance"),
        ("uniformity", "tc", "log mean potential"),
        ("uniformity", "vocabulary", "log mean potential"),
        ("effective_rank", "states", "directions"),
        ("anisotropy", "states", "mean cosine"),
    )
)
HEADLINE = Headline(
    "effective rank of the states at the last step", {"measure": "effective_rank", "of": "states", **_ALL, "step": LAST}
)


@torch.no_grad()
def measure(encoder: Encoder, material: Material) -> Iterator[Row]:
    """Yield values by what they are of.

    ``mlm``: pairs (state at a selected position after the head's transformation, which is what the decoder compares;
    row of the original token); ``mlm_state``: the same with the plain last state; ``tc``: pairs (g of an anchor, g of
    its positive), with the run's own window and embedding; ``vocabulary``: word-embedding rows of tokens that the
    training text has; ``states``: last hidden states of words of unmasked sequences. ``decile`` 1 holds the tenth of
    those tokens that is most frequent, 10 the rarest; a state belongs to the decile of its token.
    """
    yield from _pairs(encoder, material)
    occurring_V, decile_V = frequency_deciles(material.frequencies(), material.special.special_ids)
    rows_Vd = encoder.word_embeddings[: len(occurring_V)].detach()[occurring_V.to(material.device)]
    yield _row("vocabulary", "uniformity", uniformity(_sample(rows_Vd)))
    yield from _shape("vocabulary", rows_Vd, decile_V[occurring_V].to(material.device))
    states_Pd, token_P = _words(encoder, material)
    yield _row("states", "uniformity", uniformity(_sample(states_Pd)))
    yield from _shape("states", states_Pd, decile_V.to(material.device)[token_P])


def frequency_deciles(counts_V: Tensor, special_ids: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return which tokens occur, special ones left out, ``(V,)`` bool, and each one's decile, 1 the most frequent.

    Deciles have equally many tokens; those that do not occur get 0.
    """
    occurring_V = counts_V > 0
    occurring_V[list(special_ids)] = False
    order = torch.argsort(counts_V.masked_fill(~occurring_V, -1), descending=True, stable=True)
    number = int(occurring_V.sum())
    decile_V = torch.zeros_like(counts_V)
    decile_V[order[:number]] = 1 + torch.arange(number) * _DECILES // max(number, 1)
    return occurring_V, decile_V


def _pairs(encoder: Encoder, material: Material) -> Iterator[Row]:
    parts: dict[str, list[Tensor]] = {}
    contrast = material.contrast(material.config.objective.tc.negative_positions)
    for batch in material.held_out:
        corrupted = material.corrupt(batch)
        output = encoder(corrupted.input_ids, corrupted.attention_mask)
        states_Pd = output.hidden_states[corrupted.selected]
        units_Md = normalised_semantics(output.hidden_states, contrast.embeddings(encoder, output, corrupted))
        positive_A, _ = contrast.draw(None, corrupted, rank=0, ranks=1)
        found = {
            "state": states_Pd,
            "predicted": encoder.predict(states_Pd),
            "original": encoder.decoder_weight[corrupted.originals[corrupted.selected]],
            "anchor": units_Md,
            "positive": units_Md[positive_A],
        }
        for name, vectors in found.items():
            parts.setdefault(name, []).append(vectors)
    vectors = {name: torch.cat(several) for name, several in parts.items()}
    yield _row("mlm", "alignment", alignment(vectors["predicted"], vectors["original"]))
    if vectors["state"].shape == vectors["original"].shape:
        yield _row("mlm_state", "alignment", alignment(vectors["state"], vectors["original"]))
    yield _row("tc", "alignment", alignment(vectors["anchor"], vectors["positive"]))
    yield _row("tc", "uniformity", uniformity(_sample(vectors["anchor"])))


def _words(encoder: Encoder, material: Material) -> tuple[Tensor, Tensor]:
    """Return last states ``(P, d)`` of the words of unmasked sequences, and their tokens ``(P,)``."""
    states, tokens = [], []
    for batch, layers in unmasked_states(encoder, material.held_out):
        words_NL = content_mask(batch, material.special)
        states.append(layers[-1][words_NL])
        tokens.append(batch.input_ids[words_NL])
    return torch.cat(states), torch.cat(tokens)


def _shape(of: str, vectors_Pd: Tensor, decile_P: Tensor) -> Iterator[Row]:
    """Yield effective rank, anisotropy and number of vectors: of all, and by decile where there are two or more."""
    for decile in ("", *range(1, _DECILES + 1)):
        part_Pd = vectors_Pd if decile == "" else vectors_Pd[decile_P == decile]
        if len(part_Pd) < 2:
            continue
        yield _row(of, "effective_rank", effective_rank(part_Pd), decile)
        yield _row(of, "anisotropy", anisotropy(part_Pd), decile)
        yield _row(of, "vectors", len(part_Pd), decile)


def _sample(vectors_Pd: Tensor) -> Tensor:
    """Return at most so many vectors, spread evenly."""
    count = len(vectors_Pd)
    if count <= _MOST_VECTORS:
        return vectors_Pd
    return vectors_Pd[torch.arange(_MOST_VECTORS, device=vectors_Pd.device) * count // _MOST_VECTORS]


def _row(of: str, what: str, value: float, decile: int | str = "") -> Row:
    return {"of": of, "decile": decile, "measure": what, "value": value}
