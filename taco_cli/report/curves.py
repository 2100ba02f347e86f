"""Reads learning curves from metrics.csv, many and long ones fast."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

METRIC_COLUMNS: dict[str, pa.DataType] = {
    "step": pa.int64(),
    "tokens": pa.float64(),
    "seconds": pa.float64(),
    "metric": pa.dictionary(pa.int32(), pa.string()),
    "value": pa.float64(),
}


@dataclass(frozen=True)
class Curve:
    """One metric of one run, by increasing step: steps, tokens, seconds and values, each (P,)."""

    steps: Integers
    tokens: Floats
    seconds: Floats
    values: Floats


def read_metrics(file: Path) -> dict[str, Curve]:
    """Read a tidy metrics.csv into one curve per metric; a missing file has none.

    Where a step was written twice, as by a run killed after its last checkpoint, the later row counts. A last
    line without its end is one in the writing, and is left out.
    """
    table = read_table(file, METRIC_COLUMNS)
    if table is None:
        return {}
    table = table.filter(pc.and_(pc.is_valid(table["step"]), pc.is_valid(table["metric"])))
    metric = table.unify_dictionaries()["metric"].combine_chunks()
    codes = metric.indices.to_numpy(zero_copy_only=False)
    steps, tokens, seconds, values = (table[name].to_numpy() for name in ("step", "tokens", "seconds", "value"))
    order = np.lexsort((steps, codes))  # stable: rows of one metric and step stay as written
    ends = np.searchsorted(codes[order], np.arange(len(metric.dictionary) + 1))
    curves = {}
    for code, name in enumerate(metric.dictionary.to_pylist()):
        rows = order[ends[code] : ends[code + 1]]
        is_last = np.append(steps[rows][1:] != steps[rows][:-1], True)
        rows = rows[is_last]
        curves[name] = Curve(steps[rows], tokens[rows], seconds[rows], values[rows])
    return curves


def read_table(file: Path, columns: dict[str, Any]) -> pa.Table | None:
    """Read a CSV file that has at least these columns, or None where there is none or nothing in it.

    Raises:
        ValueError: a column is missing, or a row does not parse.
    """
    if not file.is_file():
        return None
    whole = file.read_bytes()
    whole = whole[: whole.rfind(b"\n") + 1]
    if not whole:
        return None
    types = {name: kind for name, kind in columns.items() if kind is not None}
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(whole),
            read_options=pyarrow.csv.ReadOptions(use_threads=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=types),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    if missing := [name for name in columns if name not in table.column_names]:
        raise ValueError(f"{file} has no column {', '.join(missing)}; it has {', '.join(table.column_names)}")
    return table if len(table) else None
