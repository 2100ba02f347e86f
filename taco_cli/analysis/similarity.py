"""Intra- and inter-context similarity: are tokens of one sequence closer to each other than to other sequences?

Everything is exact, over all pairs: pairs within a sequence from its Gram matrix, pairs between sequences from sums of
unit vectors (method, section 7).

Legend: N sequences, L positions, d hidden size, U token types of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from taco_cli.analysis.figures import LAST, Headline, View
from taco_cli.analysis.material import Material, unmasked_states
from taco_cli.analysis.tables import Row
from taco_cli.encoder import Encoder
from taco_cli.objectives import content_mask, similarities, similarity_sums

COLUMNS = ("step", "layer", "vector", "distance", "measure", "value")
QUESTION = "Similarity: are tokens closer to their own sequence than to others?"

_LAST = {"layer": LAST, "distance": ""}
_MAIN = ("intra", "inter", "inter_matched")
VIEWS = (
    View("h, last layer", "step", "measure", {"vector": "h", "measure": _MAIN, **_LAST}, "mean cosine"),
    View("g = h − e, last layer", "step", "measure", {"vector": "g", "measure": _MAIN, **_LAST}, "mean cosine"),
    View("no pairs of equal tokens, last layer", "step", "vector",
         {"measure": "gap_distinct", **_LAST}, "intra − inter"),
    View("h by layer, last step", "layer", "measure",
         {"step": LAST, "vector": "h", "distance": "", "measure": _MAIN}, "mean cosine"),
    View("g by layer, last step", "layer", "measure",
         {"step": LAST, "vector": "g", "distance": "", "measure": _MAIN}, "mean cosine"),
    View("by distance in the sequence, last step", "distance", "vector",
         {"step": LAST, "layer": LAST, "measure": "intra", "distance": None}, "mean cosine"),
)  # fmt: skip
COMPARED = tuple(
    View(f"{measure} of {vector}", "step", "", {"vector": vector, "measure": measure, **_LAST}, "mean cosine")
    for vector in ("h", "g")
    for measure in ("intra", "inter", "gap")
)

HEADLINE = Headline("intra − inter of h at the last step", {"vector": "h", "measure": "gap", **_LAST, "step": LAST})


def measure(encoder: Encoder, material: Material) -> Iterator[Row]:
    """Yield mean cosines of ``h`` and ``g = h - e`` at every layer, over pairs of words of unmasked sequences.

    ``intra`` (averaged over sequences), ``inter`` and their ``gap``; ``_distinct``: without pairs of equal tokens;
    ``inter_matched`` and ``gap_matched``: pairs between sequences at the same position alone. ``intra`` with a
    ``distance`` averages over all pairs so far apart: 1, 2 to 3, 4 to 7 and so on, named by the first.
    """
    used_U = torch.cat([batch.input_ids.flatten() for batch in material.held_out]).unique()
    sums: dict[tuple[int, str], PairSums] = {}
    for batch, states in unmasked_states(encoder, material.held_out):
        words_NL = content_mask(batch, material.special)
        types_NL = torch.searchsorted(used_U, batch.input_ids)
        for layer, states_NLd in enumerate(states):
            vectors = {"h": states_NLd} | ({"g": states_NLd - states[0]} if layer else {})
            for name, vectors_NLd in vectors.items():
                sums.setdefault((layer, name), PairSums(len(used_U), words_NL.shape[1])).add(
                    vectors_NLd, words_NL, types_NL
                )
    for (layer, name), pairs in sums.items():
        place: Row = {"layer": layer, "vector": name}
        for what, value in pairs.means().items():
            yield place | {"distance": "", "measure": what, "value": value}
        for distance, value in pairs.by_distance().items():
            yield place | {"distance": distance, "measure": "intra", "value": value}


class PairSums:
    """Sums over batches from which mean cosines over all pairs follow; sequences are of one length.

    Args:
        types: number U of token types.
        length: L.
    """

    def __init__(self, types: int, length: int) -> None:
        self._plain: dict[str, Tensor] = {}
        self._by_type, self._by_position = _GroupSums(types), _GroupSums(length)
        self._intra_distinct = self._sequences_distinct = 0.0
        self._own_equal = self._own_equal_pairs = 0.0
        self._cosines_LL: Tensor | float = 0.0
        self._pairs_LL: Tensor | float = 0.0

    def add(self, vectors_NLd: Tensor, words_NL: Tensor, types_NL: Tensor) -> None:
        """Add a batch: vectors, the positions that count, and each token's type in ``range(U)``."""
        for name, value in similarity_sums(vectors_NLd, words_NL).items():
            self._plain[name] = self._plain[name] + value if name in self._plain else value
        units_NLd = functional.normalize(vectors_NLd.float(), dim=-1) * words_NL[..., None]
        position_NL = torch.arange(words_NL.shape[1], device=words_NL.device).expand_as(words_NL)
        self._by_type.add(units_NLd[words_NL], types_NL[words_NL])
        self._by_position.add(units_NLd[words_NL], position_NL[words_NL])
        self._add_own(units_NLd, words_NL, types_NL)

    def means(self) -> dict[str, float]:
        """Return the mean cosines by name; NaN where there is no pair."""
        plain = similarities(self._plain)
        intra, inter = plain["intra"], plain["inter"]
        intra_distinct = _ratio(self._intra_distinct, self._sequences_distinct)
        inter_distinct, inter_matched = self._inter_distinct(), self._inter_matched()
        return {
            "intra": intra,
            "inter": inter,
            "gap": intra - inter,
            "intra_distinct": intra_distinct,
            "inter_distinct": inter_distinct,
            "gap_distinct": intra_distinct - inter_distinct,
            "inter_matched": inter_matched,
            "gap_matched": intra - inter_matched,
        }

    def by_distance(self) -> dict[int, float]:
        """Return the mean cosine within a sequence by distance: 1, 2 to 3, 4 to 7, ..., named by the first."""
        cosines_LL, pairs_LL = torch.as_tensor(self._cosines_LL), torch.as_tensor(self._pairs_LL)
        position_L = torch.arange(len(cosines_LL), device=cosines_LL.device)
        distance_LL = (position_L[:, None] - position_L).abs()
        result, first = {}, 1
        while first < len(cosines_LL):
            near = (distance_LL >= first) & (distance_LL < 2 * first)
            if pairs_LL[near].sum() > 0:
                result[first] = float(cosines_LL[near].sum() / pairs_LL[near].sum())
            first *= 2
        return result

    def _add_own(self, units_NLd: Tensor, words_NL: Tensor, types_NL: Tensor) -> None:
        """Add the pairs within sequences."""
        gram_NLL = (units_NLd @ units_NLd.transpose(1, 2)).double()
        both_NLL = words_NL[:, :, None] & words_NL[:, None, :]
        equal_NLL = both_NLL & (types_NL[:, :, None] == types_NL[:, None, :])
        self._cosines_LL = self._cosines_LL + gram_NLL.sum(0)
        self._pairs_LL = self._pairs_LL + both_NLL.sum(0).double()
        self._own_equal += float((gram_NLL * equal_NLL).sum())
        self._own_equal_pairs += float(equal_NLL.sum())
        distinct_NLL = both_NLL & ~equal_NLL
        pairs_N = distinct_NLL.sum((1, 2))
        self._intra_distinct += float(((gram_NLL * distinct_NLL).sum((1, 2)) / pairs_N.clamp(min=1)).sum())
        self._sequences_distinct += float((pairs_N > 0).sum())

    def _inter_distinct(self) -> float:
        plain = self._plain
        equal, equal_pairs = self._by_type.products()
        cosines = plain["direction"].square().sum() - plain["own"] - (equal - self._own_equal)
        pairs = plain["tokens"].square() - plain["own_pairs"] - (equal_pairs - self._own_equal_pairs)
        return _ratio(float(cosines), float(pairs))

    def _inter_matched(self) -> float:
        cosines, pairs = self._by_position.products()
        tokens = float(self._plain["tokens"])
        return _ratio(cosines - tokens, pairs - tokens)  # without each token's pair with itself


class _GroupSums:
    """Sums of unit vectors by group, for the sum of all products within groups."""

    def __init__(self, groups: int) -> None:
        self._sums_Gd: Tensor | float = 0.0
        self._counts_G: Tensor | float = 0.0
        self._groups = groups

    def add(self, units_Pd: Tensor, group_P: Tensor) -> None:
        sums_Gd = units_Pd.new_zeros(self._groups, units_Pd.shape[1]).index_add_(0, group_P, units_Pd)
        self._sums_Gd = self._sums_Gd + sums_Gd
        self._counts_G = self._counts_G + torch.bincount(group_P, minlength=self._groups)

    def products(self) -> tuple[float, float]:
        """Return the summed cosines of all ordered pairs within groups, a token with itself too, and their number."""
        sums_Gd, counts_G = torch.as_tensor(self._sums_Gd), torch.as_tensor(self._counts_G)
        return float(sums_Gd.double().square().sum()), float(counts_G.double().square().sum())


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan
