"""Rows: what is measured of what, the target, and the measured value; as text, Markdown and JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.case import Case, Results


@dataclass(frozen=True)
class Series:
    """Numbers that a case gives under a name."""

    case: Case
    name: str


@dataclass(frozen=True)
class Row:
    """One line: ``over``, or the ratio ``over / under``."""

    section: str
    subject: str  # encoder, objective and what else was fixed
    what: str  # of a ratio: what of what
    target: str  # – where there is none
    over: Series
    under: Series | None = None
    form: Callable[[float], str] = "{:.2f}".format

    @property
    def cases(self) -> list[Case]:
        """What must be run for it."""
        return [series.case for series in (self.over, self.under) if series is not None]


@dataclass(frozen=True)
class Value:
    """Median of the rounds, and the lowest and the highest of them."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Measured:
    """A row with its value, or with the reason why there is none."""

    row: Row
    value: Value | None
    failure: str = ""

    @property
    def text(self) -> str:
        """Return ``8.61 (8.40 to 8.90)``: the spread where there is more than one round."""
        if self.value is None:
            return f"failed: {self.failure}"
        form = self.row.form
        spread = f" ({form(self.value.low)} to {form(self.value.high)})" if self.value.rounds > 1 else ""
        return form(self.value.median) + spread


def fill(row: Row, done: Mapping[Case, Results], failed: Mapping[Case, str]) -> Measured:
    """Compute a row from what its cases gave."""
    for case in row.cases:
        if case in failed:
            return Measured(row, None, failed[case])
    over = done[row.over.case][row.over.name]
    numbers = over if row.under is None else _ratios(over, done[row.under.case][row.under.name])
    return Measured(row, Value(statistics.median(numbers), min(numbers), max(numbers), len(numbers)))


def _ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Return the ratio of each round, so that what slows both sides down for a while cancels."""
    if len(over) != len(under):
        return [statistics.median(over) / statistics.median(under)]
    return [left / right for left, right in zip(over, under, strict=True)]


def lines(measured: Iterable[Measured]) -> Iterable[str]:
    """Yield the rows of one section as text, its name first."""
    rows = [(m.row.subject, m.row.what, m.row.target, m.text) for m in measured]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for subject, what, target, text in rows:
        cells = (subject.ljust(widths[0]), what.ljust(widths[1]), f"target {target}".ljust(widths[2] + 7), text)
        yield "  " + "  ".join(cells)


def markdown(measured: Sequence[Measured], about: Mapping[str, str]) -> str:
    """Return the whole table, one heading per section."""
    parts = [f"- {name}: {value}" for name, value in about.items()]
    for section in dict.fromkeys(m.row.section for m in measured):
        parts += ["", f"## {section}", "", "| | what | target | measured |", "|---|---|---|---|"]
        parts += [
            f"| {m.row.subject} | {m.row.what} | {m.row.target} | {m.text.replace('|', '/')} |"
            for m in measured
            if m.row.section == section
        ]
    return "\n".join(parts) + "\n"


def plain_data(measured: Sequence[Measured], about: Mapping[str, str]) -> dict[str, Any]:
    """Return the same as plain JSON values."""
    rows = [
        {
            "section": m.row.section,
            "subject": m.row.subject,
            "what": m.row.what,
            "target": m.row.target,
            **({"failure": m.failure} if m.value is None else vars(m.value)),
        }
        for m in measured
    ]
    return {"about": dict(about), "rows": rows}


def save(folder: Path, name: str, text: str, data: Any) -> list[Path]:
    """Write ``<name>.md`` and ``<name>.json``; return their paths."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.md", folder / f"{name}.json"]
    paths[0].write_text(text)
    paths[1].write_text(json.dumps(data, indent=2) + "\n")
    return paths
