"""Examples of a task: from the official TSV files, from JSON lines, or from the hub, with labels by name."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taco_cli.config.glue import TaskConfig

logger = logging.getLogger(__name__)

HUB = "nyu-mll/glue"
_SUFFIXES = (".tsv", ".jsonl")
# What hidden labels look like: test sets on the hub have -1, and MNLI marks what its annotators disagree on.
_HIDDEN = frozenset({"", "-1", "-", "-1.0"})
_MOST_SHORT_LINES = 0.01  # QQP's official files have a few broken lines; more of them is another layout

Label = str | float | None
Row = tuple[str, dict[str, str]]  # where it is, for errors; its columns


@dataclass
class Examples:
    """Examples of one split; `labels` are names, scores, or None where hidden."""

    texts: list[tuple[str, ...]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices: list[int]) -> Examples:
        """Return some of the examples, in the given order."""
        return Examples([self.texts[i] for i in indices], [self.labels[i] for i in indices])

    def labelled(self, what: str) -> Examples:
        """Return the examples whose label is known; those without one are never scored."""
        known = [i for i, label in enumerate(self.labels) if label is not None]
        if len(known) < len(self):
            logger.warning(
                "%s: %d of %d examples have no label and are left out", what, len(self) - len(known), len(self)
            )
        return self.take(known)

    def digest(self) -> str:
        """Return 16 hexadecimal digits over texts and labels."""
        content = json.dumps([self.texts, self.labels], ensure_ascii=True)
        return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def read(task: TaskConfig, split: str, data_dir: str | None, every_line: bool = False) -> Examples:
    """Read one split of a task.

    Args:
        task: from the table, or one's own.
        split: a file name of the task: `task.train`, one of `task.dev_sets` or `task.test_sets`.
        data_dir: folder of the official files; None: the hub.
        every_line: keep lines with too few columns, with the texts that they have: submissions count lines.

    Raises:
        ValueError: no file (the places looked at are named), a column that is not there, a label that the
            task does not have (file and line are named).
    """
    path = find(task, split, data_dir)
    if path is None:
        return _from_hub(task, split)
    examples = Examples()
    for where, row in _rows(path, task, every_line):
        examples.texts.append(tuple(row[column] for column in task.texts))
        examples.labels.append(_label(task, row.get(task.label), where))
    if not len(examples):
        raise ValueError(f"{path}: has no examples; take the complete file of {task.name}")
    return examples


def find(task: TaskConfig, split: str, data_dir: str | None) -> Path | None:
    """Return the file of a split; None where the hub is to be asked.

    Raises:
        ValueError: there is no such file.
    """
    if data_dir is None and task.hub:
        return None
    looked = list(_candidates(task, split, data_dir))
    for path in looked:
        if path.is_file():
            return path
    source = "data_dir" if data_dir is not None else "task.folder"
    raise ValueError(
        f"task {task.name}: no file for {split!r}; looked for {', '.join(map(str, looked))}. "
        f"Correct {source}, or leave data_dir out to load the GLUE tasks from the Hugging Face hub"
    )


def _candidates(task: TaskConfig, split: str, data_dir: str | None) -> Iterator[Path]:
    root = Path(data_dir or "").expanduser()
    own = Path(task.folder).expanduser()
    folders = [root / own] if own.is_absolute() or task.hub == "" else [root / own, root / "glue" / own]
    for folder in folders:
        if Path(split).suffix in _SUFFIXES:
            yield folder / split
        else:
            yield from (folder / f"{split}{suffix}" for suffix in _SUFFIXES)


def _rows(path: Path, task: TaskConfig, every_line: bool) -> Iterator[Row]:
    rows = _json_rows(path) if path.suffix == ".jsonl" else _tsv_rows(path, task, every_line)
    for where, row in rows:
        missing = [column for column in task.texts if column not in row]
        if missing:
            raise ValueError(f"{where}: no column {', '.join(missing)}; there are {', '.join(row)}")
        yield where, row


def _json_rows(path: Path) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), start=1):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{where}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise ValueError(f"{where}: must be an object with the task's columns, not a {type(row).__name__}")
        yield where, {key: "" if value is None else str(value) for key, value in row.items()}


def _tsv_rows(path: Path, task: TaskConfig, every_line: bool) -> Iterator[Row]:
    """Read tab-separated values without any quoting: a quotation mark is a character like others."""
    lines = _lines(path)
    first = lines[0].split("\t") if lines else []
    has_header = all(column in first for column in task.texts)
    if not has_header and not task.no_header:
        raise ValueError(
            f"{path}, line 1: the header has no column {', '.join(c for c in task.texts if c not in first)}; "
            f"it has {', '.join(first)}"
        )
    names = first if has_header else task.no_header
    needed = max(names.index(column) for column in task.texts if column in names) + 1
    short = []
    for number, line in enumerate(lines[has_header:], start=1 + has_header):
        fields = line.split("\t")
        if len(fields) < needed or (task.label in names and len(fields) <= names.index(task.label)):
            short.append(number)
            if not every_line:
                continue
            fields += [""] * (needed - len(fields))
        yield f"{path}, line {number}", dict(zip(names, fields, strict=False))
    _tell_of_short_lines(path, short, len(lines), every_line)


def _tell_of_short_lines(path: Path, short: list[int], lines: int, kept: bool) -> None:
    if len(short) > max(1.0, _MOST_SHORT_LINES * lines):
        raise ValueError(
            f"{path}, line {short[0]}: too few columns, as in {len(short)} of {lines} lines; is it the official "
            "file, separated by tabs?"
        )
    if short:
        logger.warning(
            "%s: %d lines have too few columns and are %s (first: line %d)",
            path,
            len(short),
            "read with what they have" if kept else "left out",
            short[0],
        )


def _lines(path: Path) -> list[str]:
    """Cut at line feeds alone: the texts hold other characters that Python takes for ends of lines."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8; convert the file") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _label(task: TaskConfig, value: str | None, where: str) -> Label:
    if value is None or _is_hidden(task, value.strip()):
        return None
    if task.labels:
        name = task.values.get(value.strip(), value.strip())
        if name in task.labels:
            return name
        allowed = ", ".join([*task.values] or task.labels)
        raise ValueError(f"{where}: {task.label} is {value!r}; task {task.name} has the labels {allowed}")
    try:
        score = float(value)
    except ValueError:
        raise ValueError(f"{where}: {task.label} is {value!r}, which is no number") from None
    if not math.isfinite(score) and not task.bounds:
        raise ValueError(f"{where}: {task.label} is {value!r}, which is no finite number")
    if task.bounds and not task.bounds[0] <= score <= task.bounds[1]:
        raise ValueError(
            f"{where}: {task.label} is {score:g}; scores of task {task.name} go from {task.bounds[0]:g} to "
            f"{task.bounds[1]:g}"
        )
    return score


def _is_hidden(task: TaskConfig, value: str) -> bool:
    """Whether a label is hidden; -1 is none where it is a class of the task, or within the bounds of its scores."""
    possible = value in task.values or value in task.labels
    if value.startswith("-1") and task.bounds:
        possible = task.bounds[0] <= -1 <= task.bounds[1]
    return value in _HIDDEN and not possible


def _from_hub(task: TaskConfig, split: str) -> Examples:
    name = split.replace("dev", "validation", 1)
    rows, names = _load_hub(task, name)
    texts = task.hub_texts or task.texts
    examples = Examples()
    for number, row in enumerate(rows):
        value = row.get("label")
        if names is not None and isinstance(value, int) and value >= 0:
            value = names[value]
        examples.texts.append(tuple(str(row[column]) for column in texts))
        examples.labels.append(
            _label(task, None if value is None else str(value), f"{HUB} {task.hub} {name}, row {number}")
        )
    return examples


def _load_hub(task: TaskConfig, split: str) -> tuple[Any, list[str] | None]:
    from datasets import load_dataset

    try:
        rows = load_dataset(HUB, task.hub, split=split)
    except Exception as fault:  # the library and those below it raise many kinds
        raise ValueError(
            f"task {task.name}: cannot load {HUB} {task.hub} {split} from the hub: {type(fault).__name__}: {fault}. "
            "Without a network give data_dir=<folder> with the official files, e.g. "
            f"<folder>/{task.folder}/{task.train}.tsv"
        ) from fault
    names = getattr(rows.features.get("label"), "names", None)
    return rows, names
