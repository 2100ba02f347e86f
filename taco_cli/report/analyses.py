"""Whatever tables analyses left in the run folders, brought side by side: rows by key, one column per arm."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taco_cli.report.arms import Arm

logger = logging.getLogger(__name__)

# Numeric columns that say where a value is from, not what it is.
KEY_COLUMNS = {"step", "layer", "k", "epoch", "position", "fold"}
SEED = "seed"
Key = tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """One table of the same name in several run folders; a cell is the mean over rows and seeds of an arm."""

    name: str
    keys: list[str]
    cells: dict[Key, dict[str, float]]
    arms: list[str]


def read_analyses(arms: Sequence[Arm]) -> list[Analysis]:
    """Read every analysis/*.csv of every run; a file that is no table is left out with a warning."""
    gathered: dict[str, tuple[list[str], dict[Key, dict[str, list[float]]]]] = {}
    for arm, file, name in _files(arms, ".csv"):
        try:
            header, rows = _read(file)
        except (ValueError, csv.Error, StopIteration) as error:
            logger.warning("%s is left out: %s", file, error)
            continue
        values = _value_columns(header, rows)
        keys = [column for column in header if column not in values and column != SEED]
        known_keys, cells = gathered.setdefault(name, ([*keys, *(["of"] if len(values) > 1 else [])], {}))
        if known_keys[: len(keys)] != keys:
            logger.warning("%s is left out: its columns are not those of the other runs", file)
            continue
        for row in rows:
            _add(cells, arm.name, row, keys, values)
    names = [arm.name for arm in arms]
    return [
        Analysis(
            name,
            keys,
            {key: {arm: float(np.mean(values)) for arm, values in by_arm.items()} for key, by_arm in cells.items()},
            [arm for arm in names if any(arm in by_arm for by_arm in cells.values())],
        )
        for name, (keys, cells) in gathered.items()
        if cells
    ]


def shared_pictures(folders: Sequence[Path]) -> list[tuple[str, Path]]:
    """List the pictures of all runs together, which analyses leave in analysis/ beside the arms."""
    files = sorted(file for folder in folders for file in (folder / "analysis").glob("*.png"))
    return [(file.stem, file) for file in files]


def pictures(arms: Sequence[Arm]) -> list[tuple[str, Path]]:
    """List the pictures that analyses left in run folders, each with the arm and seed that it is from."""
    return [(f"{arm.name}, seed {file_seed(arm, file)}: {name}", file) for arm, file, name in _files(arms, ".png")]


def file_seed(arm: Arm, file: Path) -> int:
    """Tell which seed of an arm a file is from."""
    return next(seed for seed, run in arm.runs.items() if file.is_relative_to(run.folder))


def _files(arms: Sequence[Arm], suffix: str) -> Iterator[tuple[Arm, Path, str]]:
    for arm in arms:
        for _, run in sorted(arm.runs.items()):
            for file in run.analyses:
                if file.suffix == suffix:
                    yield arm, file, str(file.relative_to(run.folder / "analysis").with_suffix(""))


def _read(file: Path) -> tuple[list[str], list[dict[str, str]]]:
    with file.open(newline="", encoding="utf-8") as text:
        reader = csv.DictReader(text)
        rows = [{key: row[key] or "" for key in reader.fieldnames or []} for row in reader]
    if not reader.fieldnames:
        raise ValueError("it is empty")
    return list(reader.fieldnames), rows


def _value_columns(header: list[str], rows: list[dict[str, str]]) -> list[str]:
    """The column `value` where there is one, else every numeric column that is no key."""
    if "value" in header:
        return ["value"]
    return [
        column
        for column in header
        if column not in KEY_COLUMNS and column != SEED and all(_number(row[column]) is not None for row in rows)
    ]


def _add(
    cells: dict[Key, dict[str, list[float]]],
    arm: str,
    row: dict[str, str],
    keys: list[str],
    values: list[str],
) -> None:
    key = tuple(row[name] for name in keys)
    for column in values:
        value = _number(row[column])
        if value is not None:
            whole = (*key, column) if len(values) > 1 else key
            cells.setdefault(whole, {}).setdefault(arm, []).append(value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
