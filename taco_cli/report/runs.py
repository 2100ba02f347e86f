"""Reads what runs left behind: manifests, learning curves, GLUE scores, analyses."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from taco_cli.tracking.manifest import identity

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

METRIC_COLUMNS: dict[str, pa.DataType] = {
    "step": pa.int64(),
    "tokens": pa.float64(),
    "seconds": pa.float64(),
    "metric": pa.dictionary(pa.int32(), pa.string()),
    "value": pa.float64(),
}
GLUE_COLUMNS = ("task", "step", "seed", "metric", "value")
# Facts of the manifest that count like configuration: the same files may hold another text now.
FINGERPRINTS = {"corpus data": "corpus", "tokenizer data": "tokenizer"}
# Folders of a run that hold no other run and can be large.
INNER_FOLDERS = {"checkpoints", "hf", "wandb", "analysis", "comparison"}


@dataclass(frozen=True)
class Curve:
    """One metric of one run, by increasing step: steps, tokens, seconds and values, each (P,)."""

    steps: Integers
    tokens: Floats
    seconds: Floats
    values: Floats


@dataclass(frozen=True)
class Run:
    """One run folder as it is now; `status` is the manifest's, or `killed`: running, but by no process."""

    folder: Path
    label: str
    seed: int
    status: str
    manifest: dict[str, Any] = field(repr=False)
    curves: dict[str, Curve] = field(repr=False)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers, as dotted keys: configuration less names and places, fingerprints."""
        keys = identity(self.manifest["config"])
        for name, entry in FINGERPRINTS.items():
            if fingerprint := (self.manifest.get(entry) or {}).get("fingerprint"):
                keys[name] = fingerprint
        return keys

    @property
    def analyses(self) -> list[Path]:
        """Tables and pictures that analyses left in the run folder."""
        kinds = {".csv", ".png"}
        return sorted(p for p in (self.folder / "analysis").rglob("*") if p.suffix in kinds and p.is_file())


@dataclass(frozen=True)
class Outputs:
    """All runs found, and those that could not be read, with the reason."""

    runs: list[Run]
    unreadable: dict[Path, str]


def read_runs(paths: Sequence[str | Path]) -> Outputs:
    """Read every run folder at or below the given paths, finished or not.

    Raises:
        ValueError: a path is not a folder, or no run is found below it, or none can be read.
    """
    folders: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            raise ValueError(f"runs={path}: no such folder; give that of an experiment, as outputs/<name>")
        found = list(run_folders(path))
        if not found:
            raise ValueError(
                f"runs={path}: no run below it; a run is a folder <label>/seed_<seed>/ with a manifest.json"
            )
        folders += found
    # The reader releases the interpreter lock, so threads read as many files at once as there are cores.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(_try_read, dict.fromkeys(folder.resolve() for folder in folders)))
    runs = [result for result in results if isinstance(result, Run)]
    unreadable = dict(result for result in results if not isinstance(result, Run))
    for folder, reason in unreadable.items():
        logger.warning("%s is left out: %s", folder, reason)
    if not runs:
        raise ValueError("none of the runs can be read: " + "; ".join(unreadable.values()))
    return Outputs(sorted(runs, key=lambda run: (run.label, run.seed)), unreadable)


def run_folders(path: Path) -> Iterator[Path]:
    """Find the folders with a manifest.json at or below `path`."""
    for folder, names, files in os.walk(path):
        if "manifest.json" in files:
            yield Path(folder)
            names.clear()
        names[:] = sorted(name for name in names if name not in INNER_FOLDERS and not name.startswith("."))


def _try_read(folder: Path) -> Run | tuple[Path, str]:
    try:
        return read_run(folder)
    except ValueError as error:
        return folder, str(error)


def read_run(folder: Path) -> Run:
    """Read one run folder.

    Raises:
        ValueError: its manifest or a table in it is not what a run writes.
    """
    file = folder / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        label, seed, status = str(manifest["label"]), int(manifest["seed"]), str(manifest["status"])
        identity(manifest["config"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not a run's manifest, which has label, seed, status and config: {error!r}"
        ) from error
    if status == "running" and not is_locked(folder):
        status = "killed"
    curves = read_metrics(folder / "metrics.csv")
    curves |= read_glue(folder / "glue.csv", curves)
    return Run(folder, label, seed, status, manifest, curves)


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
    steps, tokens, seconds, values = (
        table[name].to_numpy() for name in ("step", "tokens", "seconds", "value")
    )
    order = np.lexsort((steps, codes))  # stable: rows of one metric and step stay as written
    ends = np.searchsorted(codes[order], np.arange(len(metric.dictionary) + 1))
    curves = {}
    for code, name in enumerate(metric.dictionary.to_pylist()):
        rows = order[ends[code] : ends[code + 1]]
        is_last = np.append(steps[rows][1:] != steps[rows][:-1], True)
        rows = rows[is_last]
        curves[name] = Curve(steps[rows], tokens[rows], seconds[rows], values[rows])
    return curves


def read_glue(file: Path, curves: dict[str, Curve]) -> dict[str, Curve]:
    """Read glue.csv into curves ``glue/<task>/<metric>``, each the mean over fine-tuning seeds.

    Tokens and seconds of a checkpoint are those that metrics.csv has at its step (interpolated).
    """
    table = read_table(file, dict.fromkeys(GLUE_COLUMNS))
    if table is None:
        return {}
    clock = max(curves.values(), key=lambda curve: len(curve.steps), default=None)
    scores: dict[str, dict[int, list[float]]] = {}
    for task, step, metric, value in zip(
        *(table[name].to_pylist() for name in ("task", "step", "metric", "value")), strict=True
    ):
        if step is not None and value is not None:
            by_step = scores.setdefault(f"glue/{task}/{metric}", {})
            by_step.setdefault(int(step), []).append(float(value))
    return {name: _score_curve(by_step, clock) for name, by_step in scores.items()}


def _score_curve(by_step: dict[int, list[float]], clock: Curve | None) -> Curve:
    steps = np.array(sorted(by_step), dtype=np.int64)
    values = np.array([np.mean(by_step[step]) for step in steps.tolist()])
    if clock is None:
        unknown = np.full(len(steps), np.nan)
        return Curve(steps, unknown, unknown, values)
    tokens = np.interp(steps, clock.steps, clock.tokens)
    return Curve(steps, tokens, np.interp(steps, clock.steps, clock.seconds), values)


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


def is_locked(folder: Path) -> bool:
    """Whether a live process holds the run folder, as :class:`taco_cli.tracking.RunFolder` locks it."""
    try:
        with (folder / ".lock").open("rb") as lock:
            fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
