"""Numbers and findings in words, the same in the terminal, on the page and in figures."""

from __future__ import annotations

import math

from taco_cli.config.compare import Axis
from taco_cli.report.statistics import ONE_SEED, Estimate, Match

NOT_REACHED = "not reached"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with this many significant digits: 2.513, 0.08021, 12,300, 1.2e-05."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size > 8:
        return f"{value:.{digits - 1}g}".replace("-", "−", 1 if value < 0 else 0)
    return f"{value:,.{max(digits - 1 - size, 0)}f}".replace("-", "−")


def decimals(value: float, places: int, sign: bool = False) -> str:
    """Write a number with a fixed number of decimals and a real minus sign."""
    if not math.isfinite(value):
        return number(value)
    return f"{value:{'+' if sign else ''},.{places}f}".replace("-", "−")


def places(value: float, digits: int = 4) -> int:
    """Decimals that show this many significant digits of a value."""
    if not math.isfinite(value) or value == 0:
        return digits - 1
    return min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), 8)


def quantity(value: float, axis: Axis) -> str:
    """Write a position on an axis with its unit: 1,200 steps, 3.1 M tokens, 12 min."""
    if axis is Axis.seconds:
        if value < 120:
            return f"{value:.0f} s"
        return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
    if axis is Axis.flops:
        return f"{value:.2e} FLOP"
    for size, suffix in ((1e9, " B"), (1e6, " M")):
        if value >= size:
            return f"{value / size:.3g}{suffix} {axis.value}"
    return f"{value:,.0f} {axis.value}"


def percent(confidence: float) -> str:
    """Write a share as the name of its interval: 95 %."""
    return f"{100 * confidence:g} %"


def interval(estimate: Estimate, digits: int | None = None) -> str:
    """Write the two ends of an interval, or nothing where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    digits = places(estimate.value) if digits is None else digits
    ends = [NOT_REACHED if math.isinf(end) else decimals(end, digits) for end in (estimate.low, estimate.high)]
    return NOT_REACHED if ends == [NOT_REACHED] * 2 else " to ".join(ends)


def ratio(estimate: Estimate, axis: Axis, confidence: float) -> str:
    """Write a ratio to the baseline: 0.21 × the steps, 95 % interval 0.17 to 0.28, 5 seeds."""
    if math.isnan(estimate.value):
        return f"cannot be said: {estimate.note}"
    parts = [NOT_REACHED if math.isinf(estimate.value) else f"{estimate.value:.2f} × the {axis.value}"]
    ends = interval(estimate, 2)
    if ends and ends != NOT_REACHED:
        parts.append(f"{percent(confidence)} interval {ends}")
    parts.append(f"{estimate.n} seeds" if estimate.n > 1 else f"1 seed (its interval {ONE_SEED})")
    return ", ".join(parts)


def match(found: Match, axis: Axis, confidence: float) -> str:
    """Say what an arm needs to match the baseline; for an arm that ended earlier, up to where this is known."""
    estimate = found.ratio[axis]
    text = ratio(estimate, axis, confidence)
    if math.isinf(estimate.value):
        text = text.replace(NOT_REACHED, not_reached(found), 1)
    if 0 < found.reached < estimate.n:
        text += f" ({found.reached} of {estimate.n} reach it)"
    return text


def not_reached(found: Match) -> str:
    """Say that a target is not reached, and by when where the baseline went further."""
    early = found.last_step < found.target_step
    return f"{NOT_REACHED} by step {found.last_step:,}" if early else NOT_REACHED
