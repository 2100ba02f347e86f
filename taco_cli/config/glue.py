"""What ``taco-glue`` is asked: which checkpoints, which tasks, by which protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from taco_cli.config.checks import ConfigError
from taco_cli.config.schema import TrackingConfig, TrainerConfig
from taco_cli.config.subject import as_list, steps_problems, subject_problems


class Pooling(StrEnum):
    """Which state stands for a sequence."""

    first = "first"  # the state of the first token, [CLS]
    mean = "mean"  # the mean over all tokens but padding


class Score(StrEnum):
    """Metrics of a task, all in points (100 is perfect)."""

    accuracy = "accuracy"
    f1 = "f1"  # of the class `positive`
    matthews = "matthews"
    pearson = "pearson"
    spearman = "spearman"


@dataclass
class TaskConfig:
    """One task of sentences or pairs of sentences, in files that have one example per line."""

    name: str = ""
    folder: str = ""  # below data_dir, or a path of its own
    texts: list[str] = field(default_factory=list)  # columns: one for sentences, two for pairs
    label: str = "label"  # column
    labels: list[str] = field(default_factory=list)  # names of the classes; empty: a score, for regression
    values: dict[str, str] = field(default_factory=dict)  # what the file says -> name, where they differ
    metrics: list[Score] = field(default_factory=lambda: [Score.accuracy])
    headline: Score | None = None  # the metric in averages; null: the first
    positive: str | None = None  # the class whose F1 is measured
    bounds: list[float] = field(default_factory=list)  # lowest and highest score; without them -1 is a hidden one
    train: str = "train"  # file, with or without .tsv or .jsonl
    dev: dict[str, str] = field(default_factory=dict)  # suffix of the metric -> file; empty: dev alone
    test: dict[str, str] = field(default_factory=dict)  # suffix of the submission -> file; empty: test alone
    no_header: list[str] = field(default_factory=list)  # column names of files without a header line
    hub: str = ""  # configuration of nyu-mll/glue
    hub_texts: list[str] = field(default_factory=list)  # columns there, where they differ
    in_average: bool = False

    @property
    def dev_sets(self) -> dict[str, str]:
        """Suffix of the metric -> file of what is scored."""
        return self.dev or {"": "dev"}

    @property
    def test_sets(self) -> dict[str, str]:
        """Suffix of the submission -> file of what is predicted."""
        return self.test or {"": "test"}


@dataclass
class ProtocolConfig:
    """How a checkpoint is fine-tuned."""

    name: str = "taco"
    length: int = 128  # longest sequence; longer ones lose tokens of the longer text
    batch_size: int = 32
    lr: list[float] = field(default_factory=list)  # several: the best on dev counts; none: by hidden size
    epochs: int | None = None  # null: by hidden size
    warmup_steps: int = 100
    weight_decay: float = 0.01  # not on biases and norms
    clip: float = 1.0  # largest gradient norm
    dropout: float | None = 0.1  # null: what the checkpoint says, and none in the head
    pooling: Pooling = Pooling.first
    train_examples: int | None = None  # most examples to train on, a random subset; null: all


@dataclass
class GlueConfig:
    """One evaluation of checkpoints."""

    run: Any = None  # run folder, folder with runs below it, or a list
    model: Any = None  # Hugging Face masked-LM folder or hub name, or a list
    output: str | None = None  # where results of `model` go; null: outputs/glue/<name>
    tasks: Any = None  # names, or a group: all, small, zero_shot; null: `task`, or small
    steps: Any = "last"  # last, all, or a list of pre-training steps
    seeds: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5])  # of fine-tuning
    data_dir: str | None = None  # folder with the official files; null: the Hugging Face hub
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    task: TaskConfig = field(default_factory=TaskConfig)  # one of your own, by +task=<name>
    predictions: bool = False  # also write test predictions in GLUE's submission format
    save_models: bool = False  # keep the fine-tuned models
    probe_examples: int = 10_000  # most sentences that a probe is trained on (tokens: twice as many)
    cache_dir: str = "~/.cache/taco-cli"
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)


def check_glue(config: GlueConfig) -> None:
    """Raise :class:`ConfigError` naming every rule that ``config`` breaks."""
    problems = [*_subject(config), *_protocol(config.protocol), *_numbers(config)]
    if config.task.name:
        problems += check_task(config.task)
    if problems:
        raise ConfigError("\n".join(problems))


def _subject(config: GlueConfig) -> Iterator[str]:
    yield from subject_problems(config.run, config.model, config.output)


def _numbers(config: GlueConfig) -> Iterator[str]:
    if not config.seeds or len(set(config.seeds)) < len(config.seeds):
        yield f"seeds={config.seeds}: must be one or more different numbers, e.g. seeds=[1,2,3]"
    if config.probe_examples < 50:
        yield f"probe_examples={config.probe_examples}: must be at least 50"
    yield from steps_problems(config.steps, as_list(config.steps))


def _protocol(protocol: ProtocolConfig) -> Iterator[str]:
    for key in ("batch_size", "epochs", "train_examples"):
        value = getattr(protocol, key)
        if value is not None and value < 1:
            yield f"protocol.{key}={value}: must be at least 1"
    if protocol.length < 8:
        yield f"protocol.length={protocol.length}: must be at least 8"
    if any(not lr > 0 for lr in protocol.lr):
        yield f"protocol.lr={protocol.lr}: must be above 0"
    for key in ("warmup_steps", "weight_decay", "clip"):
        value = getattr(protocol, key)
        if value < 0:
            yield f"protocol.{key}={value}: must be 0 or more"
    if protocol.dropout is not None and not 0 <= protocol.dropout < 1:
        yield f"protocol.dropout={protocol.dropout}: must be from 0 to below 1"


def check_task(task: TaskConfig) -> list[str]:
    """Return what is wrong with the description of a task."""
    problems = []
    if len(task.texts) not in (1, 2):
        problems.append(f"task.texts={task.texts}: one column for sentences, two for pairs")
    if len(task.labels) == 1 or len(set(task.labels)) < len(task.labels):
        problems.append(f"task.labels={task.labels}: two or more different names, or none for regression")
    unknown = sorted(set(task.values.values()) - set(task.labels))
    if unknown:
        problems.append(f"task.values: {', '.join(unknown)} not among task.labels={task.labels}")
    ranked = {Score.pearson, Score.spearman}
    for metric in task.metrics:
        if (metric in ranked) == bool(task.labels):
            kind = "a score (no labels)" if metric in ranked else "classes (labels)"
            problems.append(f"task.metrics: {metric} is a metric of {kind}")
    if Score.f1 in task.metrics and task.positive not in task.labels:
        problems.append(f"task.positive={task.positive}: f1 needs one of task.labels={task.labels}")
    if not task.metrics or (task.headline is not None and task.headline not in task.metrics):
        problems.append(f"task.headline={task.headline}: must be one of task.metrics={task.metrics}")
    return problems
