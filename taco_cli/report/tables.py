"""The comparison as CSV and JSON files."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from taco_cli.config.compare import Axis
from taco_cli.report.arms import Bools
from taco_cli.report.curves import Floats
from taco_cli.report.results import Comparison, Result
from taco_cli.report.statistics import Estimate, mean_interval

FORMAT = "taco-compare 1"
ENDS = ("value", "low", "high")


def summary_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row per metric and arm: final value, difference to the baseline, and what matching it takes."""
    return [_row(comparison, result) for results in comparison.results.values() for result in results]


def _row(comparison: Comparison, result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {
        "metric": result.metric,
        "arm": result.arm,
        "baseline": comparison.baseline,
        "seeds": len(result.replicates.seeds),
        "step": result.step,
        **_estimate("final", result.final),
        "difference_step": result.difference.step if result.difference else None,
        **_estimate("difference", result.difference.estimate if result.difference else None),
    }
    match = result.match
    row |= {
        "match_target": match.target if match else None,
        "match_seeds": len(match.seeds) if match else None,
        "match_reached": match.reached if match else None,
    }
    for axis in comparison.axes:
        row[f"match_{axis.value}"] = match.at.get(axis) if match else None
        row |= _estimate(f"match_{axis.value}_ratio", match.ratio.get(axis) if match else None)
    return row


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    return {f"{name}_{end}": getattr(estimate, end) if estimate else None for end in ENDS}


def summary_csv(comparison: Comparison) -> str:
    """Write the summary; infinite stands as `not reached`, what cannot be said as an empty field."""
    rows = summary_rows(comparison)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: plain(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def curves_csv(comparison: Comparison) -> bytes:
    """Write every arm's mean curve: metric, arm, step, tokens, seconds, mean, low, high, n (seeds)."""
    parts = [
        _curve_table(result, comparison.config.confidence)
        for results in comparison.results.values()
        for result in results
    ]
    sink = io.BytesIO()
    pyarrow.csv.write_csv(pa.concat_tables(parts), sink)
    return sink.getvalue()


def _curve_table(result: Result, confidence: float) -> pa.Table:
    data = result.replicates.settled()
    mean, low, high, n = mean_interval(data.values, data.present, confidence)
    columns: dict[str, Any] = {
        "metric": pa.array([result.metric] * len(n), pa.string()),
        "arm": pa.array([result.arm] * len(n), pa.string()),
        "step": data.steps,
        "tokens": _mean_clock(data.clock(Axis.tokens), data.present),
        "seconds": _mean_clock(data.clock(Axis.seconds), data.present),
        "mean": mean,
    }
    columns |= {name: pa.array(ends, mask=np.isnan(ends)) for name, ends in (("low", low), ("high", high))}
    return pa.table(columns | {"n": n})


def _mean_clock(clock_SP: Floats, present_SP: Bools) -> Floats:
    total_P: Floats = np.where(present_SP, clock_SP, 0.0).sum(axis=0)
    mean_P: Floats = total_P / present_SP.sum(axis=0)
    return mean_P


def comparison_json(comparison: Comparison, files: list[str]) -> str:
    """Write everything found as one JSON document; its `format` marks the folder as ours to replace."""
    document = {
        "format": FORMAT,
        "metric": comparison.metric,
        "axis": comparison.config.axis.value,
        "baseline": comparison.baseline,
        "confidence": comparison.config.confidence,
        "files": files,
        "notices": comparison.notices,
        "arms": {
            arm.name: [
                {"seed": run.seed, "status": run.status, "folder": str(run.folder)}
                for _, run in sorted(arm.runs.items())
            ]
            for arm in comparison.arms
        },
        "results": [
            {key: plain(value) for key, value in row.items()} | {"final_by_seed": by_seed}
            for row, by_seed in zip(summary_rows(comparison), _by_seed(comparison), strict=True)
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, default=str, allow_nan=False) + "\n"


def _by_seed(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {str(seed): plain(value) for seed, value in result.final_by_seed.items()}
        for results in comparison.results.values()
        for result in results
    ]


def plain(value: Any) -> Any:
    """Make a value fit for CSV and JSON, which have no infinity."""
    if isinstance(value, float) and math.isinf(value):
        return "not reached"
    return None if isinstance(value, float) and math.isnan(value) else value
