"""The page's head: what was compared, the main finding, cautions, and the statistics of each metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from taco_cli.config.compare import Axis
from taco_cli.report import words
from taco_cli.report.markup import arm_name, colour, fine
from taco_cli.report.results import Comparison, Result
from taco_cli.report.statistics import ONE_SEED, Estimate
from taco_cli.report.whiskers import scale, whisker

QUIET = '<span class="quiet">{}</span>'


def subtitle(comparison: Comparison) -> str:
    """Say in one line what was compared."""
    seeds = sorted({len(arm.runs) for arm in comparison.arms})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    arms = len(comparison.arms)
    parts = [
        f"{arms} arm{'s' if arms > 1 else ''}",
        f"{count} seed{'s' if seeds[-1] > 1 else ''} each" if arms > 1 else f"{count} seed(s)",
    ]
    if comparison.baseline:
        parts.append(f"baseline {comparison.baseline}")
    corpora = {str((run.manifest.get("corpus") or {}).get("name") or "") for run in comparison.runs} - {""}
    if corpora:
        parts.append("corpus " + ", ".join(sorted(corpora)))
    parts.append(datetime.now(UTC).strftime("%-d %B %Y"))
    return " · ".join(map(escape, parts))


def lead(comparison: Comparison) -> str:
    """State the main finding, or that there is none, in one sentence."""
    axis, metric, base = comparison.config.axis, escape(comparison.metric), escape(comparison.baseline or "")
    matches = [result for result in comparison.primary if result.match]
    finite = [result for result in matches if math.isfinite(_ratio(result, axis))]
    if not comparison.baseline or not matches:
        return ""
    target = words.number(matches[0].match.target) if matches[0].match else ""
    if not finite:
        return f"No arm reaches the final {metric} of {base} ({target})."
    best = min(finite, key=lambda result: _ratio(result, axis))
    assert best.match is not None
    estimate = best.match.ratio[axis]
    rest = words.match(best.match, axis, comparison.config.confidence).partition(", ")[2]
    return (
        f'<strong class="arm-{colour(comparison, best.arm)}">{escape(best.arm)}</strong> reaches the '
        f"final {metric} of {base} ({target}) in "
        f'<strong class="big">{estimate.value:.2f}&thinsp;×</strong> the {axis.value}{fine(rest)}'
    )


def _ratio(result: Result, axis: Axis) -> float:
    return result.match.ratio[axis].value if result.match else math.nan


def notices(comparison: Comparison) -> str:
    """List what a reader must know before trusting the numbers."""
    if not comparison.notices:
        return ""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in comparison.notices)
    return f'<section class="notices"><h2>Before you read on</h2><ul>{items}</ul></section>'


def statistics(comparison: Comparison) -> str:
    """One table per metric, of which the page shows the one that is chosen."""
    return "".join(_statistics(comparison, metric) for metric in comparison.results)


def _statistics(comparison: Comparison, metric: str) -> str:
    results = comparison.results[metric]
    axes = _match_axes(comparison, results)
    heads = ["Arm", "Final value"]
    if comparison.baseline:
        heads += [f"Minus {comparison.baseline}", *(_match_head(axis, axes) for axis in axes)]
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    columns = [_finals(comparison, results)]
    if comparison.baseline:
        columns += [_changes(comparison, results), *(_matches(comparison, results, axis) for axis in axes)]
    rows = []
    for index, result in enumerate(results):
        cells = [f'<th scope="row">{arm_name(comparison, result.arm)}{fine(_where(result))}</th>']
        for title, column in zip(heads[1:], columns, strict=True):
            cells.append(f'<td data-head="{escape(title)}">{column[index]}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    hidden = "" if metric == comparison.metric else " hidden"
    return (
        f'<div class="scroll" data-metric="{escape(metric)}"{hidden}><table class="statistics">'
        f"<caption>{escape(metric)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{_notes(results)}</div>"
    )


def _finals(comparison: Comparison, results: Sequence[Result]) -> list[str]:
    finals = [result.final for result in results]
    base = next((r.final.value for r in results if r.final and r.arm == comparison.baseline), None)
    ends, places = scale(finals, base), comparison.places(results[0].metric)
    return [_value(r.final, places, whisker(r.final, ends, base, colour(comparison, r.arm))) for r in results]


def _changes(comparison: Comparison, results: Sequence[Result]) -> list[str]:
    changes = [result.difference.estimate if result.difference else None for result in results]
    ends, places = scale(changes, 0.0), comparison.places(results[0].metric)
    return [
        QUIET.format("baseline")
        if result.arm == comparison.baseline
        else _value(change, places, whisker(change, ends, 0.0, colour(comparison, result.arm)), sign=True)
        for result, change in zip(results, changes, strict=True)
    ]


def _matches(comparison: Comparison, results: Sequence[Result], axis: Axis) -> list[str]:
    ends = scale([r.match.ratio.get(axis) if r.match else None for r in results], 1.0)
    return [_match(comparison, result, axis, ends) for result in results]


def _match_axes(comparison: Comparison, results: Sequence[Result]) -> list[Axis]:
    """Leave tokens out where they say the same as steps, as with one batch size they do."""
    matches = [result.match for result in results if result.match]
    if not matches:
        return [comparison.config.axis] if any(result.match_note for result in results) else []
    same = all(
        math.isclose(match.ratio[Axis.steps].value, match.ratio[Axis.tokens].value, rel_tol=1e-6) for match in matches
    )
    return [axis for axis in comparison.axes if axis is not Axis.tokens or not same]


def _match_head(axis: Axis, axes: Sequence[Axis]) -> str:
    name = "steps and tokens" if axis is Axis.steps and Axis.tokens not in axes else axis.value
    return f"{name.capitalize()} to match"


def _where(result: Result) -> str:
    seeds = len(result.replicates.seeds)
    step = "no common step" if result.step is None else f"step {result.step:,}"
    return f"{seeds} seed{'s' if seeds > 1 else ''}, {step}"


def _value(estimate: Estimate | None, places: int, drawing: str, sign: bool = False) -> str:
    if estimate is None:
        return QUIET.format("–")
    value = words.decimals(estimate.value, places, sign)
    return _pair("value", value, drawing, words.interval(estimate, places) or estimate.note or "")


def _match(comparison: Comparison, result: Result, axis: Axis, ends: tuple[float, float]) -> str:
    if result.arm == comparison.baseline:
        return ""
    if result.match is None or axis not in result.match.ratio:
        return QUIET.format(escape(result.match_note or "–"))
    estimate, reached = result.match.ratio[axis], result.match.reached
    if math.isnan(estimate.value):
        return QUIET.format(escape(words.match(result.match, axis, comparison.config.confidence)))
    drawing = whisker(estimate, ends, 1.0, colour(comparison, result.arm))
    small = [] if math.isinf(estimate.value) else [words.interval(estimate, 2)]
    if estimate.n == 1:
        small.append(f"an interval {ONE_SEED}")
    if reached < estimate.n:
        small.append(f"{reached} of {estimate.n} seeds reach it")
    text = "; ".join(filter(None, small))
    if math.isinf(estimate.value):
        return _pair("value word", words.not_reached(result.match), drawing, text)
    return _pair("value", f"{estimate.value:.2f}&thinsp;×", drawing, text)


def _pair(kind: str, value: str, drawing: str, text: str) -> str:
    return f'<span class="pair"><span class="{kind}">{value}</span>{drawing}</span>{fine(text)}'


def _notes(results: Sequence[Result]) -> str:
    notes = [r.difference.estimate.note for r in results if r.difference and r.difference.estimate.n > 1]
    return "".join(f'<p class="fine">{escape(_sentence(note))}</p>' for note in dict.fromkeys(notes) if note)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
