"""Measures that train nothing: minimal pairs by pseudo-log-likelihood, and similarity of sentences.

Legend: N sequences, L positions, R masked copies, P predictions, d hidden size, V vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from taco_cli.evaluation.metrics import spearman
from taco_cli.evaluation.model import Model
from taco_cli.evaluation.reading import Examples
from taco_cli.evaluation.states import OnShare, sentence_states
from taco_cli.evaluation.tokens import IntArray, Tokens, tokenize

_TOKENS_AT_ONCE = 4096  # states of more fall out of a processor's caches
_ROWS_AT_ONCE = 32  # of logits, for the same reason
_LENGTH = 128
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Minimal pairs of one paradigm."""

    paradigm: str
    good: list[str]
    bad: list[str]


def read_pairs(data_dir: str | None) -> list[Pairs]:
    """Read BLiMP's files, one paradigm each: JSON lines with `sentence_good` and `sentence_bad`.

    Raises:
        ValueError: no file, or a line that is no pair.
    """
    if data_dir is None:
        raise ValueError("task blimp: give data_dir=<folder> with blimp/<paradigm>.jsonl in it")
    root = Path(data_dir).expanduser()
    files = sorted((root / "blimp").glob("*.jsonl"))
    if not files:
        raise ValueError(f"task blimp: no file matches {root / 'blimp' / '*.jsonl'}; correct data_dir")
    return [_read_paradigm(file) for file in files]


def _read_paradigm(file: Path) -> Pairs:
    pairs = Pairs(file.stem, [], [])
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            pairs.good.append(str(row["sentence_good"]))
            pairs.bad.append(str(row["sentence_bad"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{file}, line {number}: no pair with sentence_good and sentence_bad ({error!r})"
            ) from error
    if not pairs.good:
        raise ValueError(f"{file}: has no pairs")
    return pairs


def minimal_pairs(model: Model, paradigms: Sequence[Pairs], on_share: OnShare = lambda share: None) -> dict[str, float]:
    """Return the share of pairs whose good sentence is the likelier one, in points; chance is 50, ties count half.

    Returns:
        `accuracy` over all pairs, and `accuracy_of_<paradigm>`.
    """
    sentences = list(dict.fromkeys(s for pairs in paradigms for s in (*pairs.good, *pairs.bad)))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    scores = pseudo_log_likelihoods(model, sentences, on_share)
    wins: dict[str, Array] = {}
    for pairs in paradigms:
        good, bad = (scores[[place[s] for s in side]] for side in (pairs.good, pairs.bad))
        wins[pairs.paradigm] = (good > bad) + 0.5 * (good == bad)
    details = {f"accuracy_of_{paradigm}": 100.0 * float(won.mean()) for paradigm, won in wins.items()}
    return {"accuracy": 100.0 * float(np.concatenate(list(wins.values())).mean()), **details}


@torch.inference_mode()
def pseudo_log_likelihoods(model: Model, sentences: Sequence[str], on_share: OnShare = lambda share: None) -> Array:
    """Return the pseudo-log-likelihood of each sentence: every token predicted with that token alone masked.

    Nats, summed over the tokens but the special ones (Salazar et al. 2020). Sentences of one length go
    together, so there is no padding; masked copies that two sentences share are encoded once.
    """
    tokens = tokenize([(s,) for s in sentences], model.tokenizer, min(_LENGTH, model.encoder.positions))
    totals = np.zeros(len(sentences))
    done = 0
    lengths = tokens.lengths
    with model.machine.autocast():  # around everything: weights are cast once
        for length in np.unique(lengths)[::-1]:
            members = np.flatnonzero(lengths == length)
            for sentence, scores in _scored(model, tokens, members):
                np.add.at(totals, sentence, scores)
                done += len(scores)
                on_share(done / len(tokens.flat))
    return totals


def _scored(model: Model, tokens: Tokens, members: IntArray) -> Iterator[tuple[IntArray, Array]]:
    """Yield (sentence, log-probability) of every token of sentences of equal length, some at a time."""
    ids_NL = tokens.batch(members)[0].numpy()
    row, column = np.nonzero(~np.isin(ids_NL, model.markers.cpu().numpy()))
    if not len(row):
        return
    copies_RL = ids_NL[row].astype(np.int32)
    copies_RL[np.arange(len(row)), column] = model.special.mask_id
    copies_RL, copy_P = _distinct(copies_RL)
    order = np.argsort(copy_P, kind="stable")
    row, column, copy_P = row[order], column[order], copy_P[order]
    size = max(1, _TOKENS_AT_ONCE // copies_RL.shape[1])
    for start in range(0, len(copies_RL), size):
        first, last = np.searchsorted(copy_P, [start, start + size])
        some = slice(first, last)
        inputs_RL = torch.from_numpy(copies_RL[start : start + size]).long()
        words_P = torch.from_numpy(ids_NL[row[some], column[some]])
        scores = _log_probabilities(model, inputs_RL, torch.from_numpy(copy_P[some] - start), words_P)
        yield members[row[some]], scores.double().cpu().numpy()


def _distinct(copies_RL: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], IntArray]:
    """Return the distinct rows and, for each row, which of them it is."""
    packed = np.ascontiguousarray(copies_RL).view(np.dtype((np.void, copies_RL.itemsize * copies_RL.shape[1])))
    _, first, inverse = np.unique(packed.ravel(), return_index=True, return_inverse=True)
    return copies_RL[first], inverse.astype(np.int64)


def _log_probabilities(model: Model, inputs_RL: Tensor, copy_P: Tensor, words_P: Tensor) -> Tensor:
    device = model.machine.device_type
    inputs_RL, copy_P, words_P = inputs_RL.to(device), copy_P.to(device), words_P.to(device)
    # The masked position of each copy; the texts themselves hold no mask, for it is no word of theirs.
    masked_R = (inputs_RL == model.special.mask_id).int().argmax(1)
    states_RLd = model.encoder(inputs_RL).hidden_states
    logits_RV = model.encoder.logits(states_RLd[torch.arange(len(inputs_RL), device=device), masked_R])
    normaliser_R = torch.cat([rows.float().logsumexp(1) for rows in logits_RV.split(_ROWS_AT_ONCE)])
    return logits_RV[copy_P, words_P].float() - normaliser_R[copy_P]


def similarity(model: Model, examples: Examples, on_share: OnShare = lambda share: None) -> dict[str, float]:
    """Return Spearman's correlation, in points, of human scores with the cosine of mean states.

    Returns:
        `spearman` of the last layer, and `spearman_of_layer_<k>`, 0 being the embeddings.
    """
    sentences = list(dict.fromkeys(text for pair in examples.texts for text in pair))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    tokens = tokenize([(s,) for s in sentences], model.tokenizer, min(_LENGTH, model.encoder.positions))
    left, right = ([place[pair[side]] for pair in examples.texts] for side in (0, 1))
    gold = np.array(examples.labels, dtype=np.float64)
    values = []
    for means_Nd in sentence_states(model, tokens, on_share):
        cosine = functional.cosine_similarity(means_Nd[left].double(), means_Nd[right].double())
        values.append(100.0 * spearman(cosine.numpy(), gold))
    return {"spearman": values[-1], **{f"spearman_of_layer_{k}": value for k, value in enumerate(values)}}
