"""Linear probes of frozen states: what can be read at masked, at kept and at untouched positions?

A probe is a ridge classifier in closed form on standardised states (one-against-all least squares), so it has no
learning rate, no seed and no stopping rule.

Legend: N sequences, L positions, P labelled positions, d hidden size.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from taco_cli.analysis.figures import LAST, Headline, View
from taco_cli.analysis.material import Material
from taco_cli.analysis.tables import Row
from taco_cli.data.conllu import Tagged, read_conllu, tokenize_words
from taco_cli.encoder import Encoder
from taco_cli.objectives import Batch, Corrupted, SpecialTokens

logger = logging.getLogger(__name__)

COLUMNS = ("step", "layer", "probe", "positions", "measure", "value")
QUESTION = "Probes: what can be read from states at masked and at untouched positions? (dashed: always the majority)"

_RIDGE = 10.0
_ACCURACY = {"measure": "accuracy"}
_MAJORITY = {"measure": "majority"}
_TITLES = {"identity": "token identity", "part_of_speech": "part of speech"}
VIEWS = (
    *(
        View(f"{title} by layer, last step", "layer", "positions",
             {"probe": probe, **_ACCURACY, "step": LAST}, "accuracy", _MAJORITY)
        for probe, title in _TITLES.items()
    ),
    *(
        View(f"{title}, last layer", "step", "positions",
             {"probe": probe, **_ACCURACY, "layer": LAST}, "accuracy", _MAJORITY)
        for probe, title in _TITLES.items()
    ),
)  # fmt: skip
COMPARED = tuple(
    View(f"{title}, {positions}, last step", "layer", "",
         {"probe": probe, "positions": positions, **_ACCURACY, "step": LAST}, "accuracy", _MAJORITY)
    for probe, title in _TITLES.items()
    for positions in ("masked", "kept", "untouched")
)  # fmt: skip
HEADLINE = Headline(
    "accuracy of the identity of untouched tokens in the last layer",
    {"probe": "identity", "positions": "untouched", **_ACCURACY, "step": LAST, "layer": LAST},
)

KINDS = ("masked", "kept", "untouched")
_NO_LABEL = -1


@dataclass(frozen=True)
class LabelledStates:
    """States with labels.

    Attributes:
        layers: states ``(P, d)`` of each layer.
        labels: ``(P,)``.
        kinds: ``(P,)``, index into KINDS.
    """

    layers: list[npt.NDArray[np.float32]]
    labels: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]


def measure(encoder: Encoder, material: Material) -> Iterator[Row]:
    """Yield ``accuracy``, ``majority`` (of the training labels' most frequent class) and ``examples`` of each probe.

    ``identity``: the original token, among those of the `probe_tokens` most frequent ones; learnt from training
    sequences, tested on held-out ones. ``part_of_speech``: the tag of the word of which a token is the first piece;
    learnt from `conllu_train`, tested on `conllu_test`. Inputs are corrupted as published. ``masked`` positions show
    [MASK], ``kept`` ones were selected and show the original, ``untouched`` ones were not selected. There are two
    probes, one for masked positions and one learnt from about as many untouched ones; the latter also reads kept
    positions, which the encoder cannot tell from untouched ones.
    """
    frequent_V = _frequent_labels(material.frequencies(), material.special, material.settings.probe_tokens)
    frequent_V = frequent_V.to(material.device)
    train, test = (
        collect(encoder, ((c, frequent_V[c.originals]) for c in map(material.corrupt, batches)), material, thin=thin)
        for batches, thin in ((material.training(), True), (material.held_out, False))
    )
    yield from probe(train, test, "identity")
    settings = material.settings
    if settings.conllu_train is None or settings.conllu_test is None:
        logger.warning("no part-of-speech probe: give conllu_train=<file> and conllu_test=<file> (CoNLL-U)")
        return
    sentences = [
        read_conllu(path)[: settings.probe_sentences] for path in (settings.conllu_train, settings.conllu_test)
    ]
    tags = sorted({tag for sentence in sentences[0] for tag in sentence.tags})
    train, test = (
        collect(encoder, tagged_batches(part, tags, encoder, material), material, thin=thin)
        for part, thin in zip(sentences, (True, False), strict=True)
    )
    yield from probe(train, test, "part_of_speech")


@torch.no_grad()
def collect(
    encoder: Encoder, batches: Iterable[tuple[Corrupted, Tensor]], material: Material, thin: bool
) -> LabelledStates:
    """Return the states at labelled positions; ``thin``: of untouched ones about as many as there are masked ones."""
    layers: list[list[Tensor]] = []
    labels, kinds = [], []
    for corrupted, labels_NL in batches:
        kind_NL = position_kinds(corrupted, material.special)
        if thin:
            kind_NL = kind_NL.masked_fill((kind_NL == KINDS.index("untouched")) & ~material.few(corrupted), _NO_LABEL)
        chosen_NL = (kind_NL != _NO_LABEL) & (labels_NL != _NO_LABEL)
        states = encoder.layers(corrupted.input_ids, corrupted.attention_mask)
        layers.append([states_NLd[chosen_NL].cpu() for states_NLd in states])
        labels.append(labels_NL[chosen_NL].cpu())
        kinds.append(kind_NL[chosen_NL].cpu())
    return LabelledStates(
        [torch.cat(parts).float().numpy() for parts in zip(*layers, strict=True)],
        torch.cat(labels).numpy(),
        torch.cat(kinds).numpy(),
    )


def position_kinds(corrupted: Corrupted, special: SpecialTokens) -> Tensor:
    """Return ``(N, L)``: index into KINDS, -1 at special tokens, padding, and where a random token stands."""
    masked_NL = corrupted.selected & (corrupted.input_ids == special.mask_id)
    kept_NL = corrupted.selected & (corrupted.input_ids == corrupted.originals)
    kind_NL = torch.full_like(corrupted.input_ids, _NO_LABEL)
    for index, where_NL in enumerate((masked_NL, kept_NL, corrupted.eligible & ~corrupted.selected)):
        kind_NL[where_NL] = index
    return kind_NL


def probe(train: LabelledStates, test: LabelledStates, name: str) -> Iterator[Row]:
    """Learn and test the probes of each layer; a kind of position without examples is left out with a warning."""
    for layer, (train_Pd, test_Pd) in enumerate(zip(train.layers, test.layers, strict=True)):
        for kind, learnt_from in (("masked", "masked"), ("kept", "untouched"), ("untouched", "untouched")):
            source, target = train.kinds == KINDS.index(learnt_from), test.kinds == KINDS.index(kind)
            labels_P, wanted_P = train.labels[source], test.labels[target]
            if len(np.unique(labels_P)) < 2 or not len(wanted_P):
                if layer == 0:
                    logger.warning("%s probe at %s positions: too few examples, left out", name, kind)
                continue
            accuracy = np.mean(_classify(train_Pd[source], labels_P, test_Pd[target]) == wanted_P)
            place: Row = {"layer": layer, "probe": name, "positions": kind}
            yield place | {"measure": "accuracy", "value": float(accuracy)}
            yield place | {"measure": "majority", "value": float(np.mean(wanted_P == np.bincount(labels_P).argmax()))}
            yield place | {"measure": "examples", "value": len(labels_P)}


def tagged_batches(
    sentences: list[Tagged], tags: list[str], encoder: Encoder, material: Material
) -> Iterator[tuple[Corrupted, Tensor]]:
    """Yield corrupted batches of sentences with the tag's index at each word's first piece, -1 elsewhere.

    They come from the shortest to the longest, so that little is padding.
    """
    length = min(material.config.sequence_length, encoder.positions)
    index = {tag: number for number, tag in enumerate(tags)}
    encoded = list(tokenize_words(sentences, material.corpus.tokenizer, length))
    order = sorted(range(len(encoded)), key=lambda number: len(encoded[number].ids))
    for start in range(0, len(order), material.settings.batch_size):
        numbers = order[start : start + material.settings.batch_size]
        part = [encoded[number] for number in numbers]
        lengths_N = torch.tensor([len(sentence.ids) for sentence in part])
        real_NL = torch.arange(int(lengths_N.max())) < lengths_N[:, None]
        ids_NL = torch.full(real_NL.shape, material.special.pad_id)
        ids_NL[real_NL] = torch.tensor([token for sentence in part for token in sentence.ids])
        labels_NL = torch.full_like(ids_NL, _NO_LABEL)
        for row, sentence in enumerate(part):
            for place, tag in zip(sentence.places, sentence.tags, strict=True):
                labels_NL[row, place] = index.get(tag, _NO_LABEL)
        example_N = torch.tensor(numbers)
        batch = Batch(ids_NL, example_N, torch.zeros_like(example_N), real_NL)
        yield material.corrupt(material.on_device(batch)), labels_NL.to(material.device)


def _classify(
    train_Pd: npt.NDArray[np.float32], labels_P: npt.NDArray[np.int64], test_Pd: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    model = make_pipeline(StandardScaler(), RidgeClassifier(alpha=_RIDGE, solver="cholesky"))
    model.fit(train_Pd.astype(np.float64), labels_P)
    predicted: npt.NDArray[np.int64] = model.predict(test_Pd.astype(np.float64))
    return predicted


def _frequent_labels(counts_V: Tensor, special: SpecialTokens, number: int) -> Tensor:
    """Return ``(V,)``: rank of each of the most frequent tokens that are no special ones, -1 for the others."""
    counts_V = counts_V.clone()
    counts_V[list(special.special_ids)] = 0
    frequent = torch.argsort(counts_V, descending=True, stable=True)[:number]
    frequent = frequent[counts_V[frequent] > 0]
    label_V = torch.full_like(counts_V, _NO_LABEL)
    label_V[frequent] = torch.arange(len(frequent))
    return label_V
