"""Tidy tables: one row per value, the columns before it say what it is of."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, str | int | float]


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Write a CSV file in one move; what a row lacks stays empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)
    replace_file(path, text.getvalue().encode())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _short(value: str | int | float) -> str | int | float:
    return f"{value:.8g}" if isinstance(value, float) else value
