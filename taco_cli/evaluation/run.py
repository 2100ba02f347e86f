"""One evaluation, in the order in which it happens: checkpoint by checkpoint, task by task, seed by seed.

Each measurement is written as soon as it is made, under a key of everything that decides it; the same command again
makes only those that are missing.
"""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from taco_cli.config.glue import GlueConfig, TaskConfig
from taco_cli.evaluation import tasks
from taco_cli.evaluation.checkpoints import Checkpoint, find_checkpoints
from taco_cli.evaluation.classifier import Classifier
from taco_cli.evaluation.finetune import fine_tune, predict, targets_of
from taco_cli.evaluation.frozen import Measure, load_measure
from taco_cli.evaluation.metrics import measure
from taco_cli.evaluation.model import Model, load_model, sizes
from taco_cli.evaluation.progress import Progress
from taco_cli.evaluation.protocol import Settings, key_of, resolve
from taco_cli.evaluation.reading import Examples, find, read
from taco_cli.evaluation.results import Results, Row
from taco_cli.evaluation.submission import submission_file, write_submission
from taco_cli.machine import Machine, choose_machine
from taco_cli.tracking import now

logger = logging.getLogger(__name__)


@dataclass
class Evaluated:
    """The rows of one checkpoint, old and new."""

    checkpoint: Checkpoint
    rows: list[Row] = field(default_factory=list)
    computed: int = 0  # measurements made now


@dataclass(frozen=True)
class TaskData:
    """The splits of a task that training and scoring read."""

    task: TaskConfig
    train: Examples
    dev: dict[str, Examples]

    @functools.cached_property
    def digest(self) -> str:
        """16 hexadecimal digits over all of it and, for a task of one's own, over what is learnt and measured."""
        dev = {suffix: examples.digest() for suffix, examples in self.dev.items()}
        return key_of(self.train.digest(), dev, *self._own)

    @property
    def _own(self) -> list[object]:
        task = self.task
        if tasks.TASKS.get(task.name) == task:
            return []
        return [sorted(task.labels), task.metrics, task.headline, task.positive]


def evaluate(config: GlueConfig) -> list[Evaluated]:
    """Measure every checkpoint on every task; return the rows of each.

    Raises:
        ValueError: checkpoints, tasks or files that are not there, before anything is computed.
    """
    machine = choose_machine(config.trainer)
    fine_tuned, frozen = tasks.choose(config.tasks, config.task)
    known = tasks.table(config.task)
    _check_files(config, fine_tuned)
    checkpoints = find_checkpoints(config)
    measures = [load_measure(name, known, config) for name in frozen]
    logger.info(
        "%d checkpoints, tasks %s, on %s", len(checkpoints), " ".join([*(t.name for t in fine_tuned), *frozen]), machine
    )
    data = functools.cache(lambda name: _read_all(known[name], config.data_dir))
    total = len(checkpoints) * (len(fine_tuned) * len(config.seeds) + len(measures))
    with Progress(total) as progress:
        return [
            _Evaluation(config, checkpoint, machine, progress).run([t.name for t in fine_tuned], data, measures)
            for checkpoint in checkpoints
        ]


class _Evaluation:
    """The evaluation of one checkpoint."""

    def __init__(self, config: GlueConfig, checkpoint: Checkpoint, machine: Machine, progress: Progress) -> None:
        self._config, self._checkpoint, self._machine, self._progress = config, checkpoint, machine, progress
        self._results = Results(checkpoint.results / "glue.csv")
        self._candidates = Results(checkpoint.results / "glue_candidates.csv")
        self._fingerprint = checkpoint.fingerprint()
        self._found = Evaluated(checkpoint)
        self._told: str = f"{checkpoint.label} step {checkpoint.step}"

    @functools.cached_property
    def _model(self) -> Model:
        return load_model(self._checkpoint, self._machine, self._config.protocol.dropout)

    @functools.cached_property
    def _settings(self) -> list[Settings]:
        return resolve(self._config.protocol, *sizes(self._checkpoint))  # the weights may not be needed at all

    def run(self, names: list[str], data: Callable[[str], TaskData], measures: list[Measure]) -> Evaluated:
        for name in names:
            for seed in self._config.seeds:
                self._fine_tuned(data(name), seed)
                self._progress.advance()
        for one in measures:
            self._frozen(one)
            self._progress.advance()
        return self._found

    def _fine_tuned(self, data: TaskData, seed: int) -> None:
        """Measure one task with one seed: one fine-tuning per learning rate, the best of which is reported."""
        task, grid = data.task, self._settings
        if len(grid) == 1:
            self._found.rows += self._measured(self._results, data, grid[0], seed)
            return
        scored = []
        for settings in grid:
            rows = self._measured(self._candidates, data, settings, seed)
            values = {row["metric"]: float(row["value"]) for row in rows}
            scored.append((sum(values[name] for name in tasks.headline(task)), rows))
        best = max(scored, key=lambda item: item[0])[1]  # of equals the first
        rates = " ".join(f"{settings.lr:g}" for settings in grid)
        reported = [row | {"lr_grid": rates, "key": key_of(row["key"], rates)} for row in best]
        if not self._results.find(reported[0]["key"]):
            self._results.add(reported)
        self._found.rows += reported

    def _measured(self, table: Results, data: TaskData, settings: Settings, seed: int) -> list[Row]:
        wanted = [
            submission_file(self._submissions(settings, seed), data.task, suffix) for suffix in data.task.test_sets
        ]
        wanted = wanted if self._config.predictions else []
        wanted += [self._saved(data.task, settings, seed)] if self._config.save_models else []
        row = self._row(data, settings, seed)
        complete = all(_is_made_by(row["key"], path) for path in wanted)
        return self._keep(table, row, lambda: self._score(data, settings, seed, row["key"]), complete)

    def _score(self, data: TaskData, settings: Settings, seed: int, key: str) -> list[Row]:
        task, model = data.task, self._model
        train = model.tokens(data.train.digest(), data.train.texts, settings.length)
        describe = f"{self._told}  {task.name} seed {seed}"
        tuned = fine_tune(
            model.encoder,
            task,
            train,
            targets_of(task, data.train.labels),
            settings,
            seed,
            self._machine,
            lambda done, total: self._progress.within(describe, done / total),
        )
        rows = []
        for suffix, examples in data.dev.items():
            tokens = model.tokens(examples.digest(), examples.texts, settings.length)
            predicted = predict(tuned, tokens, self._machine)
            gold = [label for label in examples.labels if label is not None]
            values, flag = measure(task, suffix, predicted, gold)
            rows += [
                {"metric": m, "value": f"{v:.6g}", "flag": flag, "dev_examples": str(len(gold))}
                for m, v in values.items()
            ]
        if self._config.save_models:
            saved = self._saved(task, settings, seed)
            with _made_by(key, saved):
                tuned.save(saved, model.tokenizer)
        if self._config.predictions:
            self._predict_tests(task, tuned, self._submissions(settings, seed), settings.length, key)
        return rows

    def _predict_tests(self, task: TaskConfig, tuned: Classifier, folder: Path, length: int, key: str) -> None:
        for suffix, split in task.test_sets.items():
            examples = read(task, split, self._config.data_dir, every_line=True)
            tokens = self._model.tokens(examples.digest(), examples.texts, length)
            predicted = predict(tuned, tokens, self._machine)
            with _made_by(key, submission_file(folder, task, suffix)):
                write_submission(folder, task, suffix, predicted)

    def _submissions(self, settings: Settings, seed: int) -> Path:
        return self._place("predictions", f"seed_{seed}", settings)

    def _saved(self, task: TaskConfig, settings: Settings, seed: int) -> Path:
        return self._place("fine_tuned", f"{task.name}-seed_{seed}", settings)

    def _place(self, kind: str, name: str, settings: Settings) -> Path:
        one_of_many = f"-lr_{settings.lr:g}" if len(self._settings) > 1 else ""
        return self._checkpoint.results / "glue" / kind / f"step-{self._checkpoint.step:06d}" / f"{name}{one_of_many}"

    def _frozen(self, one: Measure) -> None:
        row = self._complete({"task": one.name, "seed": "0", "protocol": "frozen", **one.facts})

        def compute() -> list[Row]:
            values = one.score(self._model, lambda share: self._progress.within(f"{self._told}  {one.name}", share))
            return [{"metric": metric, "value": f"{value:.6g}"} for metric, value in values.items()]

        self._found.rows += self._keep(self._results, row, compute)

    def _row(self, data: TaskData, settings: Settings, seed: int) -> Row:
        facts = settings.facts()
        examples = min(settings.train_limit or len(data.train), len(data.train))
        steps = settings.epochs * -(-examples // settings.batch_size)
        facts |= {"warmup_steps": str(settings.warmup(steps)), "train_examples": str(examples)}
        return self._complete({"task": data.task.name, "seed": str(seed), "data_hash": data.digest, **facts})

    def _complete(self, row: Row) -> Row:
        """Add what identifies checkpoint and machine, and the key over everything that decides the value."""
        row |= {
            "step": str(self._checkpoint.step),
            "checkpoint": self._checkpoint.place,
            "checkpoint_hash": self._fingerprint,
            "device": self._machine.device_type,
            "precision": str(self._machine.precision),
        }
        return row | {"key": key_of({name: value for name, value in row.items() if name != "checkpoint"})}

    def _keep(self, table: Results, row: Row, compute: Callable[[], list[Row]], complete: bool = True) -> list[Row]:
        """Return the rows of a measurement: those that are there, or new ones, written at once."""
        rows = table.find(row["key"])
        if not (rows and complete):
            start = time.perf_counter()
            values = compute()
            ended = {"seconds": f"{time.perf_counter() - start:.1f}", "finished": now(), **_versions()}
            rows = table.add([{**row, **value, **ended} for value in values])
            self._found.computed += 1
        return rows


@contextmanager
def _made_by(key: str, path: Path) -> Iterator[None]:
    """Note beside a file or folder which measurement wrote it: that of another protocol or checkpoint has its name."""
    note = _note(path)
    note.unlink(missing_ok=True)
    yield
    note.write_text(key, encoding="utf-8")


def _is_made_by(key: str, path: Path) -> bool:
    note = _note(path)
    return path.exists() and note.is_file() and note.read_text(encoding="utf-8") == key


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.key")


def _check_files(config: GlueConfig, wanted: list[TaskConfig]) -> None:
    problems, there = [], []
    for task in wanted:
        splits = [task.train, *task.dev_sets.values(), *(task.test_sets.values() if config.predictions else [])]
        try:
            for split in splits:
                find(task, split, config.data_dir)
            there.append(task.name)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        hint = [f"The others are complete: tasks=[{','.join(there)}]"] if there else []
        raise ValueError("\n".join([*problems, *hint]))


def _read_all(task: TaskConfig, data_dir: str | None) -> TaskData:
    train = read(task, task.train, data_dir).labelled(f"{task.name} {task.train}")
    dev = {
        suffix: read(task, split, data_dir).labelled(f"{task.name} {split}") for suffix, split in task.dev_sets.items()
    }
    for split, examples in [(task.train, train), *((task.dev_sets[suffix], found) for suffix, found in dev.items())]:
        if not len(examples):
            raise ValueError(
                f"task {task.name}: no example of {split} has a label, so there is nothing to learn or score"
            )
    return TaskData(task, train, dev)


def _versions() -> Row:
    return {
        "taco_cli": importlib.metadata.version("taco-cli"),
        "torch": torch.__version__,
        "transformers": importlib.metadata.version("transformers"),
    }
