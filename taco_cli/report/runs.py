"""Reads what runs left behind: manifests, learning curves, GLUE scores, analyses."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from taco_cli.report.curves import Curve, read_metrics
from taco_cli.report.glue import Scores, read_glue
from taco_cli.tracking import run_folders
from taco_cli.tracking.manifest import identity

logger = logging.getLogger(__name__)

# Facts of the manifest that count like configuration: the same files may hold another text now.
FINGERPRINTS = {"corpus data": "corpus", "tokenizer data": "tokenizer"}


@dataclass(frozen=True)
class Run:
    """One run folder as it is now.

    `status` is the manifest's, or `killed`: running, but by no process; `curves` has those of `fine_tuning` too.
    """

    folder: Path
    label: str
    seed: int
    status: str
    manifest: dict[str, Any] = field(repr=False)
    curves: dict[str, Curve] = field(repr=False)
    fine_tuning: Scores = field(repr=False, default_factory=Scores)

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
        kinds, folder = {".csv", ".png"}, self.folder / "analysis"
        found = sorted(p for p in folder.rglob("*") if p.suffix in kinds and p.is_file())
        return [path for path in found if path.relative_to(folder).parts[0] != "earlier"]  # made with other settings


@dataclass(frozen=True)
class Outputs:
    """All runs found, and those that could not be read, with the reason."""

    runs: list[Run]
    unreadable: dict[Path, str]


def paths_of(runs: Any) -> list[Path]:
    """Turn `runs=`, which is one path or a list of paths, into a list.

    Raises:
        ValueError: there is none.
    """
    paths = [runs] if isinstance(runs, str | os.PathLike) else list(runs or [])
    if not paths:
        raise ValueError("runs= is missing: give the folder of an experiment, as runs=outputs/ablations")
    return [Path(path).expanduser() for path in paths]


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
    scores = read_glue(folder / "glue.csv", curves)
    return Run(folder, label, seed, status, manifest, curves | scores.curves, scores)


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
