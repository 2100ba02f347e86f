"""Rules that a run's configuration must keep, checked before anything is read, built or written.

Types and key names are the schema's business; here are the rules about values and across fields.
Every rule that is broken is reported, each with its key, what was found and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from taco_cli.config.budget import Budget
from taco_cli.config.schema import Architecture, CorpusSource, RunConfig, TokenizerKind


class ConfigError(ValueError):
    """A configuration that cannot be run."""


def check(config: RunConfig) -> None:
    """Raise :class:`ConfigError` naming every rule that ``config`` breaks."""
    problems = [problem for rule in _RULES for problem in rule(config)]
    if problems:
        raise ConfigError("\n".join(problems))


def _budget(config: RunConfig) -> Iterator[str]:
    try:
        Budget.parse(config.budget)
    except ValueError as error:
        yield str(error)


def _counts(config: RunConfig) -> Iterator[str]:
    for key in ("batch_size", "validate_every", "checkpoint_every", "keep_checkpoints"):
        value = getattr(config, key)
        if value < 1:
            yield f"{key}={value}: must be at least 1"
    if config.validation_sequences < 2:
        yield f"validation_sequences={config.validation_sequences}: must be at least 2"
    if config.tracking.log_every < 1:
        yield f"tracking.log_every={config.tracking.log_every}: must be at least 1"
    if config.zero_shot.every is not None and config.zero_shot.every < 1:
        yield f"zero_shot.every={config.zero_shot.every}: must be at least 1, or null for validate_every"
    if config.trainer.workers < 0:
        yield f"trainer.workers={config.trainer.workers}: must be 0 or more"


def _names(config: RunConfig) -> Iterator[str]:
    for key in ("name", "label"):
        value = getattr(config, key)
        if value is not None and not re.fullmatch(r"[\w][\w.+-]*", value):
            yield (
                f"{key}={value!r}: it names a folder, so it must begin with a letter or digit and hold "
                "only letters, digits and . _ + -"
            )


def _batches(config: RunConfig) -> Iterator[str]:
    micro = config.batch_size if config.micro_batch_size is None else config.micro_batch_size
    if micro < 1 or config.batch_size % micro:
        yield (
            f"micro_batch_size={micro}: must be at least 1 and divide batch_size={config.batch_size}, "
            f"e.g. {_divisors(config.batch_size)}"
        )
    elif config.objective.tc.weight > 0 and micro < 2:
        yield (
            f"micro_batch_size={micro}: token contrast draws its negatives from the other sequences of the "
            "micro-batch, and there are none; use at least 2 (the larger, the harder the negatives)"
        )


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, number + 1) if number % n == 0)


def _objective(config: RunConfig) -> Iterator[str]:
    objective, tc = config.objective, config.objective.tc
    weights = {"mlm": objective.mlm.weight, "tc": tc.weight, "tp": objective.tp.weight}
    for name, weight in weights.items():
        if weight < 0:
            yield f"objective.{name}.weight={weight}: must be 0 (left out) or more"
    if not any(weight > 0 for weight in weights.values()):
        yield "objective: every weight is 0, so there is nothing to train on; set objective.mlm.weight=1"
    if tc.negatives < 1:
        yield f"objective.tc.negatives={tc.negatives}: must be at least 1"
    if tc.window < 3 or tc.window % 2 == 0:
        yield (
            f"objective.tc.window={tc.window}: the full width of the window must be odd and at least 3 "
            "(5 draws positives from two tokens on either side)"
        )
    if not tc.temperature > 0:
        yield f"objective.tc.temperature={tc.temperature}: must be above 0"


def _masking(config: RunConfig) -> Iterator[str]:
    masking = config.masking
    for key in ("rate", "mask", "random"):
        value = getattr(masking, key)
        if not 0 <= value <= 1:
            yield f"masking.{key}={value}: is a share, from 0 to 1"
    if masking.mask + masking.random > 1 + 1e-9:
        yield f"masking.mask={masking.mask} + masking.random={masking.random}: together at most 1"
    if masking.rate * config.batch_size * (config.sequence_length - 2) < 1:
        yield (
            f"masking.rate={masking.rate}: would select less than one token of a batch of "
            f"{config.batch_size} x {config.sequence_length}; 0.15 is the published rate"
        )


def _encoder(config: RunConfig) -> Iterator[str]:
    encoder = config.encoder
    if encoder.architecture is Architecture.hf:
        if not encoder.path:
            yield "encoder.path is not set: encoder=hf needs a folder or a hub name, e.g. encoder.path=my/model"
        return
    if encoder.path:
        yield f"encoder.path={encoder.path}: only encoder=hf loads a checkpoint; add encoder=hf or leave the path out"
    for key in ("layers", "hidden_size", "heads", "intermediate_size", "positions"):
        value = getattr(encoder, key)
        if value is None or value < 1:
            yield f"encoder.{key}={value}: must be at least 1 for encoder.architecture={encoder.architecture}"
    if encoder.hidden_size and encoder.heads and encoder.hidden_size % encoder.heads:
        yield f"encoder.heads={encoder.heads}: must divide encoder.hidden_size={encoder.hidden_size}"
    if encoder.dropout is not None and not 0 <= encoder.dropout < 1:
        yield f"encoder.dropout={encoder.dropout}: must be from 0 to below 1"
    if encoder.positions and config.sequence_length > encoder.positions:
        yield (
            f"sequence_length={config.sequence_length}: the encoder has positions for encoder.positions="
            f"{encoder.positions}; shorten the one or enlarge the other"
        )


def _data(config: RunConfig) -> Iterator[str]:
    corpus, tokenizer = config.corpus, config.tokenizer
    if config.sequence_length < 8:
        yield f"sequence_length={config.sequence_length}: must be at least 8"
    if corpus.source is CorpusSource.files and not corpus.files:
        yield "corpus.files is empty: name the files, e.g. corpus=text 'corpus.files=[wiki/*.jsonl.xz]'"
    if corpus.source is not CorpusSource.files and corpus.files:
        yield (
            f"corpus.files={_listed(corpus.files)}: corpus={corpus.name} reads no files; add corpus=text or leave them "
            "out"
        )
    if corpus.source is not CorpusSource.hub and corpus.hub:
        paths = [dataset.path for dataset in corpus.hub]
        yield (
            f"corpus.hub={_listed(paths)}: corpus={corpus.name} loads nothing from the hub; set corpus.source=hub or "
            "leave it out"
        )
    if not 0 < corpus.validation_fraction < 1 and not corpus.validation_files:
        yield f"corpus.validation_fraction={corpus.validation_fraction}: must be between 0 and 1"
    if not 0 < corpus.fraction <= 1:
        yield f"corpus.fraction={corpus.fraction}: must be above 0 and at most 1"
    if corpus.processes is not None and corpus.processes < 1:
        yield f"corpus.processes={corpus.processes}: must be at least 1, or null for all cores"
    if tokenizer.kind is TokenizerKind.pretrained and not tokenizer.path:
        yield (
            "tokenizer.path is not set: tokenizer=pretrained needs a folder, a tokenizer.json, a vocab.txt or a hub "
            "name"
        )
    if tokenizer.kind is not TokenizerKind.pretrained and tokenizer.path:
        yield (
            f"tokenizer.path={tokenizer.path}: only tokenizer=pretrained loads one; add tokenizer=pretrained or leave "
            "the path out"
        )
    if tokenizer.kind is TokenizerKind.wordpiece and tokenizer.vocab_size < 16:
        yield f"tokenizer.vocab_size={tokenizer.vocab_size}: must be at least 16"


def _listed(values: list[str]) -> str:
    return ", ".join(values[:3]) + (f" and {len(values) - 3} more" if len(values) > 3 else "")


def _optimizer(config: RunConfig) -> Iterator[str]:
    optimizer = config.optimizer
    for key in ("lr", "muon_lr", "eps"):
        value = getattr(optimizer, key)
        if not value > 0:
            yield f"optimizer.{key}={value}: must be above 0"
    for key in ("weight_decay", "muon_weight_decay", "clip"):
        value = getattr(optimizer, key)
        if value < 0:
            yield f"optimizer.{key}={value}: must be 0 or more"
    for key in ("warmup", "decay"):
        value = getattr(optimizer, key)
        if not 0 <= value <= 1:
            yield f"optimizer.{key}={value}: is a share of the budget, from 0 to 1"
    if len(optimizer.betas) != 2 or not all(0 <= beta < 1 for beta in optimizer.betas):
        yield f"optimizer.betas={optimizer.betas}: must be two numbers from 0 to below 1"


def _trainer(config: RunConfig) -> Iterator[str]:
    trainer = config.trainer
    if trainer.compile.lower() not in ("auto", "true", "false"):
        yield f"trainer.compile={trainer.compile}: allowed are auto, true, false"
    if trainer.devices != "auto" and not re.fullmatch(r"[1-9]\d*", trainer.devices):
        yield f"trainer.devices={trainer.devices}: must be auto or a number of devices"


_RULES = (_budget, _counts, _names, _batches, _objective, _masking, _encoder, _data, _optimizer, _trainer)
