"""The comparison as a table for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taco_cli.report import words
from taco_cli.report.results import Comparison, Result


def render(comparison: Comparison) -> RenderableType:
    """Lay out the main metric of every arm, what to beware of, and what cannot be said."""
    config, baseline = comparison.config, comparison.baseline
    title = f"{comparison.metric}, mean over seeds with {words.percent(config.confidence)} interval"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("arm")
    table.add_column("seeds", justify="right")
    table.add_column("step", justify="right")
    table.add_column("final", justify="right")
    table.add_column("interval")
    if baseline:
        table.add_column(f"minus {baseline}", justify="right")
        table.add_column("interval")
        axis = config.axis
        table.add_column(f"{axis.value} to match {baseline}", min_width=28)
    for result in comparison.primary:
        table.add_row(*_cells(comparison, result))
    notes = [Text(f"! {notice}", style="yellow") for notice in comparison.notices]
    hints = [Text(note, style="dim") for note in _notes(comparison)]
    return Group(table, *notes, *hints)


def _cells(comparison: Comparison, result: Result) -> list[str | Text]:
    config, final = comparison.config, result.final
    places = comparison.places(result.metric)
    cells: list[str | Text] = [
        Text(result.arm),
        str(len(result.replicates.seeds)),
        "–" if result.step is None else f"{result.step:,}",
        "–" if final is None else words.decimals(final.value, places),
        "" if final is None else words.interval(final, places),
    ]
    if comparison.baseline is None:
        return cells
    if result.arm == comparison.baseline:
        return [*cells, Text("baseline", style="dim"), "", ""]
    change = result.difference.estimate if result.difference else None
    cells.append("–" if change is None else words.decimals(change.value, places, sign=True))
    cells.append("" if change is None else words.interval(change, places) or change.note or "")
    match = result.match
    text = words.match(match, config.axis, config.confidence) if match else result.match_note or ""
    return [*cells, text]


def _notes(comparison: Comparison) -> list[str]:
    changes = [result.difference.estimate for result in comparison.primary if result.difference]
    return list(dict.fromkeys(change.note for change in changes if change.note and change.n > 1))
