"""The measures of frozen models, by name: what they read and what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from taco_cli.config.glue import GlueConfig, TaskConfig
from taco_cli.data.conllu import Tagged, read_conllu
from taco_cli.evaluation import conllu, probes, topic, zero_shot
from taco_cli.evaluation.finetune import subset, targets_of
from taco_cli.evaluation.model import Model
from taco_cli.evaluation.protocol import key_of
from taco_cli.evaluation.reading import Examples, read
from taco_cli.evaluation.results import Row
from taco_cli.evaluation.states import OnShare, sentence_states, token_states
from taco_cli.evaluation.tasks import TASKS, probed
from taco_cli.evaluation.tokens import IntArray

_LENGTH = 128
_TOKENS_PER_EXAMPLE = 2  # probes of tokens are trained on so many times `probe_examples`


@dataclass(frozen=True)
class Measure:
    """A measure with its data read.

    Attributes:
        name: as in `tasks`.
        facts: columns of `glue.csv`; with the data's digest they decide the values.
        score: metrics of a model, in points.
    """

    name: str
    score: Callable[[Model, OnShare], dict[str, float]]
    facts: Row = field(default_factory=dict)


def load_measure(name: str, known: dict[str, TaskConfig], config: GlueConfig) -> Measure:
    """Read the data of a measure.

    Raises:
        ValueError: its files are not there, or not in order.
    """
    if name in _LOADERS:
        return _LOADERS[name](config)
    task = probed(name, known)
    assert task is not None, name
    return _sentence_probe(name, task, config)


def _blimp(config: GlueConfig) -> Measure:
    paradigms = zero_shot.read_pairs(config.data_dir)
    digest = key_of([[pairs.paradigm, pairs.good, pairs.bad] for pairs in paradigms])
    facts = {"data_hash": digest, "dev_examples": str(sum(len(pairs.good) for pairs in paradigms))}
    return Measure("blimp", lambda model, on_share: zero_shot.minimal_pairs(model, paradigms, on_share), facts)


def _similarity(config: GlueConfig) -> Measure:
    task = TASKS["stsb"]
    split = next(iter(task.dev_sets.values()))
    examples = read(task, split, config.data_dir).labelled(f"{task.name} {split}")
    facts = {"data_hash": examples.digest(), "dev_examples": str(len(examples)), "pooling": "mean"}
    return Measure("sts_zero_shot", lambda model, on_share: zero_shot.similarity(model, examples, on_share), facts)


def _sentence_probe(name: str, task: TaskConfig, config: GlueConfig) -> Measure:
    split = next(iter(task.dev_sets.values()))
    train, dev = (read(task, file, config.data_dir).labelled(f"{task.name} {file}") for file in (task.train, split))
    return _probe_of_sentences(name, task, train, dev, config.probe_examples)


def _docstring_topic(config: GlueConfig) -> Measure:
    splits = topic.read_topics(config.cache_dir)
    task = TaskConfig("docstring_topic", labels=sorted({str(label) for label in splits["train"].labels}))
    return _probe_of_sentences("docstring_topic", task, splits["train"], splits["dev"], config.probe_examples)


def _probe_of_sentences(name: str, task: TaskConfig, train: Examples, dev: Examples, limit: int) -> Measure:
    digest = key_of(train.digest(), dev.digest(), task.labels)
    train = train.take(subset(len(train), limit, 0).tolist())

    def score(model: Model, on_share: OnShare) -> dict[str, float]:
        length = min(_LENGTH, model.encoder.positions)
        both = Examples(train.texts + dev.texts, train.labels + dev.labels)
        states_DNd = sentence_states(model, model.tokens(digest, both.texts, length), on_share)
        classes = targets_of(task, both.labels)
        n = len(train)
        return probes.by_layer(states_DNd[:, :n], classes[:n], states_DNd[:, n:], classes[n:])

    facts = {"data_hash": digest, "train_examples": str(len(train)), "dev_examples": str(len(dev)), "pooling": "mean"}
    return Measure(name, score, facts)


def _parts_of_speech(config: GlueConfig) -> Measure:
    train, dev = (read_conllu(path) for path in conllu.find_treebank(config.data_dir))
    digest = key_of([[[s.words, s.tags] for s in split] for split in (train, dev)])
    train = _some_words(train, _TOKENS_PER_EXAMPLE * config.probe_examples)
    names = {tag: i for i, tag in enumerate(sorted({tag for s in [*train, *dev] for tag in s.tags}))}

    def states(model: Model, sentences: list[Tagged], on_share: OnShare) -> tuple[Tensor, Tensor]:
        tokens, places, tags = conllu.first_pieces(sentences, model.tokenizer, min(_LENGTH, model.encoder.positions))
        return token_states(model, tokens, places, on_share), torch.tensor([names[tag] for tag in tags])

    def score(model: Model, on_share: OnShare) -> dict[str, float]:
        return probes.by_layer(*states(model, train, on_share), *states(model, dev, on_share))

    words = [str(sum(len(s.words) for s in split)) for split in (train, dev)]
    return Measure("pos_probe", score, {"data_hash": digest, "train_examples": words[0], "dev_examples": words[1]})


def _some_words(sentences: list[Tagged], words: int) -> list[Tagged]:
    """Return sentences spread over the treebank that have about so many words."""
    share = words / sum(len(s.words) for s in sentences)
    chosen: IntArray = subset(len(sentences), max(1, min(len(sentences), round(share * len(sentences)))), 0)
    return [sentences[i] for i in chosen.tolist()]


_LOADERS: dict[str, Callable[[GlueConfig], Measure]] = {
    "blimp": _blimp,
    "sts_zero_shot": _similarity,
    "pos_probe": _parts_of_speech,
    "docstring_topic": _docstring_topic,
}
