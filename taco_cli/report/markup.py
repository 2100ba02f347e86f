"""Pieces of HTML that several sections of the page share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from taco_cli.report.results import Comparison

COLOURS = 7


def colour(comparison: Comparison, arm: str) -> int:
    """Number of an arm's colour: 0, a neutral one, is the baseline's; the page's script counts alike."""
    index = [entry.name for entry in comparison.arms].index(arm)
    if comparison.baseline is None:
        return 1 + index % (COLOURS - 1)
    return 0 if index == 0 else 1 + (index - 1) % (COLOURS - 1)


def arm_name(comparison: Comparison, arm: str) -> str:
    """An arm's name with its colour."""
    return f'<span class="swatch arm-{colour(comparison, arm)}"></span>{escape(arm)}'


def arm_names(comparison: Comparison, names: Sequence[str]) -> list[str]:
    """Arms' names with their colours, as heads of a table."""
    return [arm_name(comparison, name) for name in names]


def fine(text: str) -> str:
    """Text in small print."""
    return f'<span class="fine">{escape(text)}</span>'


def section(heading: str, text: str, body: str) -> str:
    """A section of the page; heading and text are plain text."""
    return f"<section><h2>{escape(heading)}</h2><p>{escape(text)}</p>{body}</section>"


def grid(heads: Sequence[str], rows: Sequence[str], kind: str = "") -> str:
    """A table that scrolls sideways where it is wider than the page; heads and rows are HTML."""
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    return (
        f'<div class="scroll" tabindex="0"><table class="grid {kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(head: str, cells: Sequence[str]) -> str:
    """A table row of HTML texts."""
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
