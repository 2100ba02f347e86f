"""Run folders below a folder, and the exports in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from taco_cli.tracking.folder import RunFolder
from taco_cli.tracking.manifest import Manifest

# Folders of a run that hold no other run and can be large.
_INNER_FOLDERS = {"checkpoints", "hf", "wandb", "analysis", "comparison"}


def run_folders(path: Path) -> Iterator[Path]:
    """Find the folders with a manifest.json at or below `path`."""
    for folder, names, files in os.walk(path):
        if "manifest.json" in files:
            yield Path(folder)
            names.clear()
        names[:] = sorted(name for name in names if name not in _INNER_FOLDERS and not name.startswith("."))


def named_run_folders(paths: Iterable[str | Path]) -> list[Path]:
    """Return the run folders at or below what `run=` names, each once.

    Raises:
        ValueError: a path is no folder, or no run is there or below it.
    """
    folders: dict[Path, None] = {}
    for path in (Path(path).expanduser() for path in paths):
        if not path.is_dir():
            raise ValueError(f"run={path}: no such folder; a run is in outputs/<name>/<label>/seed_<seed>")
        found = dict.fromkeys(run_folders(path))
        if not found:
            raise ValueError(
                f"run={path}: neither a run nor a folder with runs below it (no manifest.json); "
                "for a Hugging Face folder say model= instead of run="
            )
        folders |= found
    return list(folders)


def exports_of(run: RunFolder, manifest: Manifest) -> dict[int, Path]:
    """Return a run's Hugging Face folders by step.

    Raises:
        ValueError: there is none yet.
    """
    exports = {int(p.name[5:]): p for p in run.exports.glob("step-*") if re.fullmatch(r"step-\d+", p.name)}
    if not exports:
        raise ValueError(
            f"run={run.path}: no exported checkpoints (hf/step-*); the run is {manifest['status']} at step "
            f"{manifest.get('step', 0)}: continue it with the command it was started with"
        )
    return exports
