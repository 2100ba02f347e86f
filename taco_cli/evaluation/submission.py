"""Test predictions as the GLUE server takes them: one file per task, ``index<tab>prediction``, from 0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taco_cli.config.glue import TaskConfig


def submission_file(folder: Path, task: TaskConfig, suffix: str) -> Path:
    """Return the file of one test set: ``CoLA.tsv``, ``MNLI-mm.tsv``."""
    name = Path(task.folder).name or task.name
    return folder / f"{name}{f'-{suffix}' if suffix else ''}.tsv"


def write_submission(folder: Path, task: TaskConfig, suffix: str, predicted: Sequence[str | float]) -> Path:
    """Write the predictions of one test set in the order of its examples, in the labels of the official files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = submission_file(folder, task, suffix)
    official = {name: value for value, name in task.values.items()}
    lines = ["index\tprediction", *(f"{i}\t{_official(task, official, p)}" for i, p in enumerate(predicted))]
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
    temporary.replace(path)
    return path


def _official(task: TaskConfig, official: dict[str, str], predicted: str | float) -> str:
    if isinstance(predicted, str):
        return official.get(predicted, predicted)
    low, high = task.bounds or (float("-inf"), float("inf"))
    return f"{min(max(predicted, low), high):.3f}"
