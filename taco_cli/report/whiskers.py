"""Small drawings of an interval, one per table row and all of a column on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taco_cli.report.statistics import Estimate

WIDTH, HEIGHT = 104, 18


def scale(estimates: Sequence[Estimate | None], reference: float | None) -> tuple[float, float]:
    """Range that holds all values and interval ends of a column, and its reference value."""
    numbers = [reference] if reference is not None else []
    for estimate in estimates:
        if estimate is not None:
            numbers += [end for end in (estimate.value, estimate.low, estimate.high) if end is not None]
    numbers = [number for number in numbers if math.isfinite(number)]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    margin = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return low - margin, high + margin


def whisker(estimate: Estimate | None, ends: tuple[float, float], reference: float | None, colour: int) -> str:
    """Draw value, interval and reference line as SVG; an end that is not reached runs off as an arrow."""

    def x(value: float) -> float:
        share = (value - ends[0]) / (ends[1] - ends[0])
        return round(4 + (WIDTH - 8) * min(max(share, 0.0), 1.0), 1)

    middle = HEIGHT / 2
    marks = []
    if reference is not None:
        marks.append(f'<line class="reference" x1="{x(reference)}" x2="{x(reference)}" y1="0" y2="{HEIGHT}"/>')
    if estimate is not None and not math.isnan(estimate.value):
        if estimate.low is not None and estimate.high is not None and math.isfinite(estimate.low):
            right = WIDTH if math.isinf(estimate.high) else x(estimate.high)
            marks.append(f'<line class="bar" x1="{x(estimate.low)}" x2="{right}" y1="{middle}" y2="{middle}"/>')
        if math.isfinite(estimate.value):
            marks.append(f'<circle cx="{x(estimate.value)}" cy="{middle}" r="4"/>')
        if math.inf in (estimate.value, estimate.high):
            tip = f"M{WIDTH - 6} {middle - 4}L{WIDTH} {middle}L{WIDTH - 6} {middle + 4}"
            marks.append(f'<path class="bar" d="{tip}"/>')
    return (
        f'<svg class="whisker arm-{colour}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'aria-hidden="true">{"".join(marks)}</svg>'
    )
