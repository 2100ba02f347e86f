"""Where the gradient of each loss term arrives: at which positions of every layer, at which rows of the vocabulary.

A loss that is defined on masked positions alone trains the others as well: through attention, the state at a masked
position is a function of all states below it (method, section 2).

Legend: N sequences, L positions, d hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from taco_cli.analysis.figures import LAST, Headline, View
from taco_cli.analysis.material import SEED, Material
from taco_cli.analysis.tables import Row
from taco_cli.encoder import Encoder, EncoderOutput
from taco_cli.objectives import Corrupted, Objective, SpecialTokens, Term, build_objective

COLUMNS = ("step", "term", "at", "layer", "group", "measure", "value")
QUESTION = "Gradients: which positions, and which rows of the vocabulary, does each loss term train?"

_SHARE = {"measure": "share"}
VIEWS = (
    *(
        View(f"{term}: positions by layer, last step", "layer", "group",
             {"term": term, "at": "states", **_SHARE, "step": LAST}, "share of squared norm")
        for term in ("mlm", "tc", "tp")
    ),
    *(
        View(f"{term}: unmasked positions, embeddings", "step", "",
             {"term": term, "at": "states", "group": "unmasked", **_SHARE, "layer": 0}, "share of squared norm")
        for term in ("mlm", "tc", "tp")
    ),
    *(
        View(f"{term}: vocabulary rows, as input", "step", "group",
             {"term": term, "at": "words_input", **_SHARE}, "share of squared norm")
        for term in ("mlm", "tc", "tp")
    ),
)  # fmt: skip
COMPARED = tuple(
    View(f"{term}: unmasked positions, last step", "layer", "",
         {"term": term, "at": "states", "group": "unmasked", **_SHARE, "step": LAST}, "share of squared norm")
    for term in ("mlm", "tc", "tp")
)  # fmt: skip
HEADLINE = Headline(
    "share of MLM's gradient that reaches the embeddings of unmasked tokens at the last step",
    {"term": "mlm", "at": "states", "group": "unmasked", **_SHARE, "layer": 0, "step": LAST},
)


def measure(encoder: Encoder, material: Material) -> Iterator[Row]:
    """Yield where the gradient of each of the run's own terms arrives, with the run's own masking, in evaluation mode.

    At ``states`` of each layer (0: the embeddings): of the positions that are selected for prediction (``masked``), of
    other words (``unmasked``), and of special tokens (``special``): ``norm``, the root of the summed squares of the
    gradient of the batch's mean loss, averaged in square over batches; ``share`` of the squared norm; ``norm_mean``,
    the mean norm of a position. At ``words``, the word-embedding table tied to the decoder, and at ``words_input``,
    what it gets as input alone: rows of tokens that are masked originals of the batch, of other words that the encoder
    saw, of special tokens ([MASK] is one), and of neither.
    """
    config = material.config
    objective = build_objective(config.objective, config.masking, material.special, SEED)
    totals: dict[tuple[str, str, int | str, str], _Total] = {}
    for batch in material.held_out:
        corrupted = objective.corrupt(batch)
        groups = {"states": position_groups(corrupted), "words": row_groups(corrupted, material.special)}
        for (term, at, layer), gradient in term_gradients(encoder, objective, corrupted).items():
            squares = gradient.detach().double().square().sum(-1)
            for group, members in groups["states" if at == "states" else "words"].items():
                totals.setdefault((term, at, layer, group), _Total()).add(squares[..., : members.shape[-1]][members])
    for (term, at, layer, group), total in totals.items():
        whole = sum(other.squares for key, other in totals.items() if key[:3] == (term, at, layer))
        place: Row = {"term": term, "at": at, "layer": layer, "group": group}
        yield place | {"measure": "share", "value": total.squares / whole if whole else 0.0}
        yield place | {"measure": "norm", "value": (total.squares / len(material.held_out)) ** 0.5}
        yield place | {"measure": "norm_mean", "value": total.norms / max(total.members, 1)}


def position_groups(corrupted: Corrupted) -> dict[str, Tensor]:
    """Return ``(N, L)`` bool by group; every real token is in one."""
    real = corrupted.attention_mask
    special_NL = ~corrupted.eligible if real is None else ~corrupted.eligible & real
    return {
        "masked": corrupted.selected,
        "unmasked": corrupted.eligible & ~corrupted.selected,
        "special": special_NL,
    }


def row_groups(corrupted: Corrupted, special: SpecialTokens) -> dict[str, Tensor]:
    """Return ``(V,)`` bool by group; a masked original that is also visible somewhere counts as masked original."""
    shape, device = (3, special.vocab_size), corrupted.input_ids.device
    original_V, seen_V, special_V = torch.zeros(shape, dtype=torch.bool, device=device)
    original_V[corrupted.originals[corrupted.selected]] = True
    seen_V[corrupted.input_ids.flatten()] = True
    special_V[list(special.special_ids)] = True
    visible_V = seen_V & ~original_V & ~special_V
    return {
        "masked_original": original_V,
        "visible": visible_V,
        "special": special_V,
        "neither": ~(original_V | visible_V | special_V),
    }


def term_gradients(
    encoder: Encoder, objective: Objective, corrupted: Corrupted
) -> dict[tuple[str, str, int | str], Tensor]:
    """Return the gradient of each term's mean loss, by (term, at, layer): in the states ``(N, L, d)``, in the table."""
    table_Vd = encoder.word_embeddings.requires_grad_()  # also where the run had it frozen
    states = encoder.layers(corrupted.input_ids, corrupted.attention_mask)
    output = EncoderOutput(states[0], states[-1])
    gradients: dict[tuple[str, str, int | str], Tensor] = {}
    for name, term in objective.terms.items():
        in_states = _gradients(term, encoder, output, corrupted, [*states, table_Vd])
        gradients |= {(name, "states", layer): gradient for layer, gradient in enumerate(in_states[:-1])}
        gradients[name, "words", ""] = in_states[-1]
        one_way = _ConstantTables(encoder)
        gradients[name, "words_input", ""] = _gradients(term, one_way, output, corrupted, [table_Vd])[0]
    return gradients


def _gradients(
    term: Term, encoder: Encoder | _ConstantTables, output: EncoderOutput, corrupted: Corrupted, inputs: list[Tensor]
) -> tuple[Tensor, ...]:
    loss = term.sum(encoder, output, corrupted) / term.count(corrupted).clamp(min=1)
    return torch.autograd.grad(loss, inputs, retain_graph=True, materialize_grads=True)


class _ConstantTables:
    """An encoder whose tables, used as decoder, are constants: what is left reaches them through the input."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.predict = encoder.predict
        self.word_embeddings = encoder.word_embeddings

    def __call__(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> EncoderOutput:
        output: EncoderOutput = self._encoder(input_ids, attention_mask)
        return output

    @property
    def decoder_weight(self) -> Tensor:
        return self._encoder.decoder_weight.detach()

    @property
    def decoder_bias(self) -> Tensor | None:
        return self._encoder.decoder_bias


@dataclass
class _Total:
    """Sums over batches: of squared norms, of norms, and how many there were."""

    squares: float = 0.0
    norms: float = 0.0
    members: int = 0

    def add(self, squares_P: Tensor) -> None:
        self.squares += float(squares_P.sum())
        self.norms += float(squares_P.sqrt().sum())
        self.members += len(squares_P)
