"""Tidy tables: one row per value, the columns before it say what it is of; they grow step by step.

What was measured of a checkpoint is kept and not measured again, as long as the checkpoint and the settings are the
same. Beside the tables, `computed.json` says which they were.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

Row = dict[str, str | int | float]
EARLIER = "earlier"  # folder of tables that were made with other settings


class Table:
    """One measure's table in a folder of analyses, with the steps that are in it."""

    def __init__(self, folder: Path, measure: str, columns: Sequence[str], settings: str) -> None:
        """Read what is there; a table of other `settings` moves to `earlier/`, for one table has one setting."""
        self._folder, self._measure, self._columns = folder, measure, columns
        self._path, self._index = folder / f"{measure}.csv", folder / "computed.json"
        self._settings, self._steps, self._rows = settings, dict[int, str](), list[Row]()
        known = self._read_index().get(measure)
        if not self._path.is_file():
            return
        if known is not None and known["settings"] == settings:
            self._steps = {int(step): checkpoint for step, checkpoint in known["steps"].items()}
            self._rows = [row for row in read_table(self._path) if row["step"] in self._steps]
        else:
            self._put_aside(known["settings"] if known else "unknown")

    def rows(self, steps: Iterable[int]) -> list[Row]:
        """Return the rows of these steps, as they are in the file."""
        wanted = set(steps)
        return [row for row in self._rows if row["step"] in wanted]

    def has(self, step: int, checkpoint: str) -> bool:
        """Whether this very checkpoint was measured."""
        return self._steps.get(step) == checkpoint

    def put(self, step: int, checkpoint: str, rows: Iterable[Row]) -> None:
        """Write the rows of a checkpoint, instead of those of another one of that step."""
        others = [row for row in self._rows if row["step"] != step]
        made = sorted([*others, *({"step": step, **row} for row in rows)], key=lambda row: int(row["step"]))
        text = io.StringIO()
        write_rows(text, self._columns, made)
        if self._steps.pop(step, None) is not None:
            self._write_index()  # killed before the table is written, nothing stands for what it does not have
        replace_file(self._path, text.getvalue().encode())
        self._rows = [parsed(row) for row in csv.DictReader(text.getvalue().splitlines())]
        self._steps[step] = checkpoint
        self._write_index()

    def _read_index(self) -> dict[str, Any]:
        try:
            index = json.loads(self._index.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ValueError(
                f"{self._index}: not valid JSON ({error}); delete it, and all is measured again"
            ) from error
        return dict(index)

    def _write_index(self) -> None:
        steps = {str(step): self._steps[step] for step in sorted(self._steps)}
        index = self._read_index() | {self._measure: {"settings": self._settings, "steps": steps}}
        replace_file(self._index, (json.dumps(index, indent=2, sort_keys=True) + "\n").encode())

    def _put_aside(self, settings: str) -> None:
        target = self._folder / EARLIER / f"{self._measure}-{settings}.csv"
        number = 1
        while target.exists():
            number += 1
            target = target.with_name(f"{self._measure}-{settings}-{number}.csv")
        target.parent.mkdir(exist_ok=True)
        self._path.replace(target)
        logger.warning("%s was made with other settings; it is now %s", self._path, target)


def write_rows(text: io.StringIO, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Write rows as CSV; what a row lacks stays empty."""
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)


def read_table(path: Path) -> list[Row]:
    """Read a table, numbers as numbers."""
    return [parsed(row) for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]


def parsed(row: dict[str, str]) -> Row:
    """Turn the cells of a row into numbers where they are numbers."""
    return {key: _number(cell) for key, cell in row.items()}


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _number(cell: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _short(value: str | int | float) -> str | int | float:
    return f"{value:.8g}" if isinstance(value, float) else value
