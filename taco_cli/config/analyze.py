"""What ``taco-analyze`` is asked: which checkpoints, which measures, on which text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from taco_cli.config.checks import ConfigError
from taco_cli.config.schema import (
    CorpusConfig,
    MaskingConfig,
    ObjectiveConfig,
    TokenizerConfig,
    TokenizerKind,
    TrackingConfig,
)
from taco_cli.config.subject import as_list, steps_problems, subject_problems


class Measure(StrEnum):
    """One analysis; each answers one question (method, section 7)."""

    similarity = "similarity"  # are tokens of one sequence closer to each other than to other sequences?
    alignment = "alignment"  # how close are positive pairs, how spread out is everything else?
    gradients = "gradients"  # which positions and which rows does each loss term train?
    probes = "probes"  # what can be read from states at masked and at untouched positions?
    shortcut = "shortcut"  # how much of the contrast is solved by knowing where a token is?


@dataclass
class OwnTokenizerConfig(TokenizerConfig):
    """The tokenizer of `model`; `path` null: the model's own."""

    kind: TokenizerKind = TokenizerKind.pretrained


@dataclass
class AnalyzeConfig:
    """One analysis of checkpoints."""

    run: Any = None  # run folder, folder with runs below it, or a list
    model: Any = None  # Hugging Face masked-LM folder or hub name, or a list
    output: str | None = None  # where results of `model` go; null: outputs/analysis/<name>
    measures: list[Measure] = field(default_factory=lambda: list(Measure))
    steps: Any = "all"  # all (step 0 is the initial encoder), last, or a list of pre-training steps
    sequences: int = 256  # most held-out sequences that are read
    batch_size: int = 64  # sequences of a forward pass, and of TC's pool
    probe_sequences: int = 512  # most training sequences that probes learn from
    probe_sentences: int = 2048  # most sentences of each CoNLL-U file
    probe_tokens: int = 100  # the token-identity probe knows so many of the most frequent tokens
    conllu_train: str | None = None  # CoNLL-U file that the part-of-speech probe learns from
    conllu_test: str | None = None  # CoNLL-U file that it is tested on
    device: str = "auto"  # auto, cpu, cuda
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    # Of `model` alone; a run has its own.
    sequence_length: int = 128
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    tokenizer: OwnTokenizerConfig = field(default_factory=OwnTokenizerConfig)


OF_A_RUN = ("sequence_length", "objective", "masking", "corpus", "tokenizer")


def check_analyze(config: AnalyzeConfig) -> None:
    """Raise :class:`ConfigError` naming every rule that ``config`` breaks."""
    problems = [*_subject(config), *_numbers(config)]
    if problems:
        raise ConfigError("\n".join(problems))


def _subject(config: AnalyzeConfig) -> Iterator[str]:
    yield from subject_problems(config.run, config.model, config.output)
    if not config.measures:
        yield f"measures is empty; choose from [{','.join(Measure)}]"
    yield from steps_problems(config.steps, as_list(config.steps))
    if (config.conllu_train is None) != (config.conllu_test is None):
        yield "conllu_train and conllu_test: give both files or none"


def _numbers(config: AnalyzeConfig) -> Iterator[str]:
    for key in ("sequences", "batch_size", "probe_sequences", "probe_sentences", "probe_tokens"):
        value = getattr(config, key)
        if value < 2:
            yield f"{key}={value}: must be at least 2"
    if config.sequence_length < 8:
        yield f"sequence_length={config.sequence_length}: must be at least 8"
    if config.device not in ("auto", "cpu", "cuda"):
        yield f"device={config.device}: allowed are auto, cpu, cuda"
