"""The learning curves of the main metric as a figure for papers and slides."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

from taco_cli.config.compare import Axis
from taco_cli.report.curves import Floats
from taco_cli.report.payload import envelope
from taco_cli.report.results import Comparison, Result
from taco_cli.report.statistics import mean_interval

# Okabe and Ito's colours, told apart with any kind of colour vision; the first is the baseline's.
COLOURS = ("#3c3c42", "#0069b0", "#c44c00", "#00845f", "#b0468c", "#8f6a00", "#22789f")
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
INK = "#62626a"
MOST_POINTS = 1000


def draw(comparison: Comparison) -> dict[str, bytes]:
    """Draw the curves and return them as PNG and SVG files by name."""
    figure = curves(comparison)
    files = {}
    for kind in ("png", "svg"):
        sink = io.BytesIO()
        # Without a date, and with names of its parts that are no random numbers, the same runs give the same file.
        with rc_context({"svg.hashsalt": "curves"}):
            figure.savefig(sink, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)
        files[f"curves.{kind}"] = sink.getvalue()
    return files


def curves(comparison: Comparison) -> Figure:
    """Draw the mean over seeds with its interval for each arm, each named at its end."""
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ends = [_curve(axes, comparison, index, result) for index, result in enumerate(comparison.primary)]
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#c8c8c4")
    axes.tick_params(colors=INK, labelsize=9, length=3)
    axes.grid(axis="y", color="#e6e6e2", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.margins(x=0)
    _limits(axes, comparison)
    axes.set_title(comparison.metric, loc="left", fontsize=11)
    axes.set_xlabel(_axis_name(comparison.config.axis), color=INK, fontsize=9, loc="right")
    axes.xaxis.set_major_formatter(_formatter(comparison.config.axis))
    _name_ends(axes, [end for end in ends if end is not None])
    return figure


End = tuple[float, float, str, str]


def _curve(axes: Axes, comparison: Comparison, index: int, result: Result) -> End | None:
    data = result.replicates.settled()
    data = data.at(envelope(data.values, MOST_POINTS))
    if not len(data.steps):
        return None
    clock_SP = data.clock(comparison.config.axis)
    x_P = np.where(data.present, clock_SP, 0.0).sum(axis=0) / data.present.sum(axis=0)
    mean_P, low_P, high_P, _ = mean_interval(data.values, data.present, comparison.config.confidence)
    colour, dash = style(comparison, index)
    axes.plot(x_P, mean_P, color=colour, linestyle=dash, linewidth=1.8, marker="o" if len(x_P) == 1 else None)
    axes.fill_between(x_P, low_P, high_P, color=colour, alpha=0.13, linewidth=0)
    return float(x_P[-1]), float(mean_P[-1]), result.arm, colour


def style(comparison: Comparison, index: int) -> tuple[str, object]:
    """Colour and dash of an arm: neutral for the baseline, which is the first arm."""
    if comparison.baseline is not None:
        if index == 0:
            return COLOURS[0], DASHES[0]
        index -= 1
    others = len(COLOURS) - 1
    return COLOURS[1 + index % others], DASHES[index // others % len(DASHES)]


def _limits(axes: Axes, comparison: Comparison) -> None:
    """Leave the steep first tenth out of the frame where it would press all else flat."""
    values, late = [], []
    for result in comparison.primary:
        data = result.replicates.settled()
        mean_P, *_ = mean_interval(data.values, data.present)
        values.append(mean_P)
        late.append(mean_P[data.steps >= 0.1 * data.steps.max(initial=0)])
    low, high = _extent(np.concatenate(values))
    near_low, near_high = _extent(np.concatenate(late))
    if near_low < near_high and near_high - near_low < 0.75 * (high - low):
        margin = 0.07 * (near_high - near_low)
        axes.set_ylim(near_low - margin, near_high + margin)


def _extent(values: Floats) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (math.nan, math.nan)


def _name_ends(axes: Axes, ends: list[End]) -> None:
    """Write each arm's name beside its curve's end, pushed apart where ends are close."""
    low, high = axes.get_ylim()
    gap = 0.045 * (high - low)
    at = -math.inf
    right = max((x for x, *_ in ends), default=0.0)
    for _, y, name, colour in sorted((end for end in ends if math.isfinite(end[1])), key=lambda end: end[1]):
        at = max(min(max(y, low), high), at + gap)
        place: dict[str, Any] = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(name, (right, at), color=colour, fontsize=9, annotation_clip=False, **place)


def _axis_name(axis: Axis) -> str:
    return {Axis.seconds: "training time", Axis.flops: "FLOP"}.get(axis, axis.value)


def _formatter(axis: Axis) -> FuncFormatter | EngFormatter:
    if axis is Axis.seconds:
        return FuncFormatter(lambda seconds, _: f"{seconds / 60:g} min" if seconds else "0")
    if axis is Axis.steps:
        return FuncFormatter(lambda steps, _: f"{steps:,.0f}")
    return EngFormatter(sep="")
