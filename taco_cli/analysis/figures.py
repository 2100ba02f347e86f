"""Small multiples: each panel a view of one table, its lines named at their ends.

A :class:`View` says which rows a panel shows, so that a measure needs no drawing code of its own.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, StrMethodFormatter

from taco_cli.analysis.tables import Row, replace_file

# Okabe and Ito's colours, told apart with any kind of colour vision.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3c3c42")
INK = "#62626a"
_PANEL = (3.6, 2.5)  # inches
_TITLE_LETTERS = 11.5  # that fit into an inch
_LONGEST_LINE_NAME = 26
_SHARES = {"accuracy", "share of squared norm"}  # drawn from zero
LAST = object()  # in a view: the largest value that the column has among the rows

Series = tuple[list[float], list[float]]
Lines = Mapping[str, Sequence[Series]]


@dataclass(frozen=True)
class View:
    """Which rows a panel shows.

    Attributes:
        title: of the panel.
        x: column along the axis.
        lines: column that tells lines apart; empty: one line.
        where: column -> the value it must have, several, LAST, or None for any number.
        unit: what the values are.
        baseline: columns in which the rows of a dashed reference line differ from `where`.
    """

    title: str
    x: str
    lines: str
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    baseline: Mapping[str, Any] | None = None

    def series(self, rows: Sequence[Row]) -> dict[str, list[Series]]:
        """Return the lines by name."""
        return _by_line(select(rows, self.where), self.x, self.lines)

    def reference(self, rows: Sequence[Row]) -> dict[str, list[Series]]:
        """Return the dashed lines by name."""
        if self.baseline is None:
            return {}
        return _by_line(select(rows, {**self.where, **self.baseline}), self.x, self.lines)


@dataclass(frozen=True)
class Headline:
    """The one number that answers a measure's question: what it is, and the row that has it."""

    text: str
    where: Mapping[str, Any]

    def __call__(self, rows: Sequence[Row]) -> float | None:
        """Return the value; None where no row, or more than one, fits."""
        found = select(rows, self.where)
        return float(found[0]["value"]) if len(found) == 1 else None


def own_figure(
    question: str, headline: Headline, subject: str, rows: Sequence[Row], views: Sequence[View]
) -> Figure | None:
    """Draw one subject's views; None where no view has a row."""
    value = headline(rows)
    answer = "" if value is None else f": {headline.text} {value:.3g}"
    panels = [Panel(view, view.series(rows), view.reference(rows)) for view in views]
    return small_multiples(f"{question}\n{subject}{answer}", panels)


def compared_figure(
    question: str, headline: Headline, tables: Mapping[str, Sequence[Sequence[Row]]], views: Sequence[View]
) -> Figure | None:
    """Draw the same views over subjects, one line each.

    Args:
        question: the title.
        headline: its answer; of several seeds, their mean.
        tables: label -> the rows of each seed; seeds share a colour.
        views: with an empty `lines`.
    """
    means = []
    for label, seeds in tables.items():
        values = [value for value in map(headline, seeds) if value is not None]
        means += [f"{label} {sum(values) / len(values):.3g}"] if values else []
    answer = f"\n{headline.text}: {', '.join(means)}" if means else ""
    panels = []
    for view in views:
        drawn = {
            label: [line for rows in seeds for line in view.series(rows).get("", [])] for label, seeds in tables.items()
        }
        lines = {label: series for label, series in drawn.items() if series}
        panels.append(Panel(view, lines, view.reference(next(iter(tables.values()))[0])))
    return small_multiples(f"{question}{answer}", panels)


def select(rows: Sequence[Row], where: Mapping[str, Any]) -> list[Row]:
    """Return the rows that a view's conditions keep, applied in their order."""
    kept = list(rows)
    for column, wanted in where.items():
        if wanted is LAST:
            wanted = max((row[column] for row in kept if _is_number(row.get(column))), default=None, key=float)
            kept = [row for row in kept if row.get(column) == wanted]
        elif wanted is None:
            kept = [row for row in kept if _is_number(row.get(column))]
        else:
            allowed = wanted if isinstance(wanted, tuple) else (wanted,)
            kept = [row for row in kept if row.get(column, "") in allowed]
    return kept


@dataclass(frozen=True)
class Panel:
    """One panel: lines by name, and dashed lines for reference."""

    view: View
    lines: Lines
    reference: Lines = field(default_factory=dict)


def small_multiples(title: str, panels: Sequence[Panel]) -> Figure | None:
    """Draw a grid of panels; those without lines are left out, None if all are."""
    shown = [panel for panel in panels if panel.lines]
    if not shown:
        return None
    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    width = _PANEL[0] * max(2, columns)
    lines = [part for line in title.splitlines() for part in wrap(line, round(_TITLE_LETTERS * width))]
    height = _PANEL[1] * rows + 0.25 * len(lines)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=11)
    names = list(dict.fromkeys(name for panel in shown for name in panel.lines if name))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid, shown, strict=False):
        _draw(axes, panel, colours)
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write ``<stem>.png`` and ``<stem>.svg``; the same values give the same files."""
    paths = []
    for kind in ("png", "svg"):
        sink = io.BytesIO()
        with rc_context({"svg.hashsalt": stem.name}):
            figure.savefig(sink, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
        paths.append(stem.with_name(f"{stem.name}.{kind}"))
        replace_file(paths[-1], sink.getvalue())
    return paths


def _by_line(rows: Sequence[Row], x: str, lines: str) -> dict[str, list[Series]]:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        value = float(row["value"])
        if _is_number(row.get(x)) and math.isfinite(value):
            points.setdefault(str(row[lines]) if lines else "", []).append((float(row[x]), value))
    return {name: [_series(sorted(line))] for name, line in points.items()}


def _is_number(value: str | int | float | None) -> bool:
    return isinstance(value, int | float)


def _series(points: list[tuple[float, float]]) -> Series:
    return [x for x, _ in points], [y for _, y in points]


def _draw(axes: Axes, panel: Panel, colours: Mapping[str, str]) -> None:
    view, lines = panel.view, panel.lines
    for name, several in panel.reference.items():
        for x, y in several:
            colour, marker = colours.get(name, INK), "" if len(x) > 1 else "_"
            axes.plot(x, y, color=colour, linewidth=1, linestyle=(0, (4, 3)), marker=marker)
    for name, several in lines.items():
        for x, y in several:
            axes.plot(
                x,
                y,
                color=colours.get(name, COLOURS[0]),
                linewidth=1.6,
                marker="o",
                markersize=2.5 if len(x) > 1 else 5,
            )
    axes.set_title(view.title, loc="left", fontsize=9)
    axes.set_xlabel(view.x, color=INK, fontsize=8, loc="right")
    axes.set_ylabel(view.unit, color=INK, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#c8c8c4")
    axes.tick_params(colors=INK, labelsize=8, length=3)
    axes.grid(axis="y", color="#e6e6e2", linewidth=0.7)
    axes.set_axisbelow(True)
    if view.unit in _SHARES:
        top = axes.get_ylim()[1]
        axes.set_ylim(-0.02 * top, 1.02 * top)
    if view.x == "distance":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    elif len(places := {place for several in lines.values() for x, _ in several for place in x}) == 1:
        axes.xaxis.set_major_locator(FixedLocator(list(places)))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    if any(lines):
        _name_ends(axes, lines, colours)


def _name_ends(axes: Axes, lines: Lines, colours: Mapping[str, str]) -> None:
    """Write each line's name beside its end, pushed apart where ends are close, and none above the panel."""
    low, high = axes.get_ylim()
    gap = 0.085 * (high - low)
    right = max(x[-1] for several in lines.values() for x, _ in several)
    ends = sorted((sum(y[-1] for _, y in several) / len(several), name) for name, several in lines.items())
    for at, (_, name) in zip(_apart([end for end, _ in ends], gap, high), ends, strict=True):
        text = name.replace("_", " ") if len(name) <= _LONGEST_LINE_NAME else f"{name[: _LONGEST_LINE_NAME - 1]}…"
        place: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(text, (right, at), color=colours[name], fontsize=8, annotation_clip=False, **place)


def _apart(places: Sequence[float], gap: float, highest: float) -> list[float]:
    """Return ascending places with at least ``gap`` between them: moved up, and down again from the highest allowed."""
    apart: list[float] = []
    for place in places:
        apart.append(max(place, apart[-1] + gap) if apart else place)
    for index in reversed(range(len(apart))):
        apart[index] = min(apart[index], highest - gap * (len(apart) - 1 - index))
    return apart
