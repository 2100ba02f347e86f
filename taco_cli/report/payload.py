"""The learning curves as the page carries them: few enough points to open at once, all extremes kept."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from scipy.special import stdtrit

from taco_cli.config.compare import Axis
from taco_cli.report import words
from taco_cli.report.arms import Replicates
from taco_cli.report.curves import Floats, Integers
from taco_cli.report.results import Comparison, Result

# Seeds x points over all curves of a page: about 6 MB of text.
MOST_VALUES = 400_000
FEWEST_POINTS = 20


def payload(comparison: Comparison) -> dict[str, Any]:
    """Return what the page's script draws: arms, and per metric the downsampled curve of every seed."""
    order = {arm.name: index for index, arm in enumerate(comparison.arms)}
    most = max(len(arm.runs) for arm in comparison.arms)
    share = (1 + comparison.config.confidence) / 2
    points = points_per_curve(comparison)
    return {
        "axes": [axis.value for axis in comparison.axes],
        "axis": comparison.config.axis.value,
        "metric": comparison.metric,
        "baseline": order.get(comparison.baseline or "", -1),
        "interval": words.percent(comparison.config.confidence),
        "t": [0, 0, *(round(float(stdtrit(n - 1, share)), 5) for n in range(2, most + 1))],
        "arms": [{"name": arm.name, "seeds": arm.seeds} for arm in comparison.arms],
        "metrics": [
            {
                "name": metric,
                "series": [_series(order[result.arm], result.replicates, points) for result in results],
                "target": next((result.match.target for result in results if result.match), None),
                "matches": [_match(order[r.arm], r, comparison.axes) for r in results if r.match],
            }
            for metric, results in comparison.results.items()
        ],
    }


def points_per_curve(comparison: Comparison) -> int:
    """How many points a curve may have on the page, so that all curves together stay below the limit."""
    curves = sum(len(result.replicates.seeds) for results in comparison.results.values() for result in results)
    return max(FEWEST_POINTS, min(comparison.config.points, MOST_VALUES // max(curves, 1)))


def envelope(values_SP: Floats, most: int) -> Integers:
    """Choose at most `most` of P points: of equal stretches, the lowest and the highest value of any seed.

    The first and the last point are kept always.
    """
    points = values_SP.shape[1]
    if points <= most:
        return np.arange(points)
    lowest_P = np.where(np.isnan(values_SP), np.inf, values_SP).min(axis=0)
    highest_P = np.where(np.isnan(values_SP), -np.inf, values_SP).max(axis=0)
    kept = {0, points - 1}
    edges = np.linspace(0, points, (most - 2) // 2 + 1).astype(np.int64)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        kept |= {start + int(lowest_P[start:end].argmin()), start + int(highest_P[start:end].argmax())}
    return np.array(sorted(kept))


def as_json(data: dict[str, Any]) -> str:
    """Write JSON that may stand inside a script element: no character there can end it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _series(arm: int, replicates: Replicates, points: int) -> dict[str, Any]:
    kept = replicates.at(envelope(replicates.values, points))
    series: dict[str, Any] = {
        "arm": arm,
        "seeds": kept.seeds,
        "steps": kept.steps.tolist(),
        "values": _rows(kept.values, 6),
        "seconds": _rows(kept.seconds, 5),
        "tokens": _per_step(kept) or _rows(kept.tokens, 9),
    }
    if not np.isnan(kept.flops_per_token).any():
        series["flopsPerToken"] = kept.flops_per_token.tolist()
    return series


def _per_step(replicates: Replicates) -> float | None:
    """Tokens of a step where that is one number, as it nearly always is."""
    steps = replicates.steps
    if not len(steps) or steps[-1] == 0:
        return None
    each = np.nanmax(replicates.tokens[:, -1]) / steps[-1]
    same = np.isnan(replicates.tokens) | np.isclose(replicates.tokens, steps * each, rtol=1e-9)
    return float(each) if same.all() else None


def _rows(array_SP: Floats, digits: int) -> list[list[float | None]]:
    return [[_short(value, digits) for value in row] for row in array_SP.tolist()]


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _match(arm: int, result: Result, axes: list[Axis]) -> dict[str, Any]:
    assert result.match is not None
    at = {axis.value: _short(result.match.at[axis], 6) for axis in axes if axis in result.match.at}
    ratio = {
        axis.value: f"{result.match.ratio[axis].value:.2f} ×"
        for axis in axes
        if axis in result.match.ratio and math.isfinite(result.match.ratio[axis].value)
    }
    return {"arm": arm, "at": at, "ratio": ratio}
