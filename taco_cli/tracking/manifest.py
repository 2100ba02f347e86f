"""``manifest.json``: what a run is, on what it ran, and how far it came."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

from taco_cli.config.budget import Budget
from taco_cli.config.schema import RunConfig
from taco_cli.tracking.environment import git_state, machine, versions

Manifest = dict[str, Any]

# Keys that do not decide the numbers: names, places, speed, bookkeeping. A prefix names a whole group.
_NOT_IDENTITY = (
    "name",
    "label",
    "output_root",
    "resume",
    "checkpoint_every",
    "keep_checkpoints",
    "corpus.cache_dir",
    "corpus.processes",
    "trainer.",
    "tracking.",
    "zero_shot.",
)


_OF_THE_CHECKPOINT = ("corpus", "tokenizer", "precision", "compiled", "started", "seconds", "step", "tokens", "metrics")


class Status(StrEnum):
    """How a run stands."""

    running = "running"
    interrupted = "interrupted"  # by a signal; the same command continues it
    failed = "failed"
    finished = "finished"


def new_manifest(config: RunConfig) -> Manifest:
    """Describe a run that is about to start; corpus and tokenizer are filled in when they are ready."""
    return {
        "status": Status.running.value,
        "label": config.label or config.objective.name,
        "name": config.name,
        "seed": config.seed,
        "config": plain(config),
        "config_hash": config_hash(config),
        "config_hash_without_seed": config_hash(config, with_seed=False),
        "versions": versions(),
        **git_state(Path.cwd()),
        "corpus": {},
        "tokenizer": {},
        "machine": machine(),
        "started": now(),
        "ended": None,
        "seconds": 0.0,
        "step": 0,
        "tokens": 0,
        "metrics": {},
        "wandb_id": None,
        "command": shlex.join([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
        "error": None,
    }


def continued(manifest: Manifest, former: Manifest, *, from_checkpoint: bool) -> Manifest:
    """Return the manifest of a run that is started again: it stays one run at W&B.

    Where there is a checkpoint, what that was made of and had reached stays as well: a start that fails loses
    nothing, least of all what the next one must be compared with.
    """
    kept = ("wandb_id", *(_OF_THE_CHECKPOINT if from_checkpoint else ()))
    return manifest | {key: former[key] for key in kept if key in former}


def read_manifest(path: Path) -> Manifest | None:
    """Return the manifest, or None if there is none.

    Raises:
        ValueError: the file is no manifest.
    """
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path}: not valid JSON ({error}); restore it or delete the run folder") from error
    if not isinstance(manifest, dict) or "config" not in manifest or "status" not in manifest:
        raise ValueError(f"{path}: not the manifest of a run (no config, no status); delete the run folder")
    return manifest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace the file in one move; values that JSON has no number for (nan, inf) become null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(_finite(manifest), file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def now() -> str:
    """Return the time as the manifest writes it: UTC, ISO 8601, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def plain(config: RunConfig) -> dict[str, Any]:
    """Return `config` as nested dictionaries of plain values, enums as their words."""
    resolved = _plain(dataclasses.asdict(config))
    assert isinstance(resolved, dict)
    return resolved


def config_hash(config: RunConfig | Mapping[str, Any], *, with_seed: bool = True) -> str:
    """Return 16 hexadecimal digits over every key that decides the numbers."""
    keys = identity(config)
    if not with_seed:
        del keys["seed"]
    canonical = json.dumps(keys, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


def differences(old: RunConfig | Mapping[str, Any], new: RunConfig | Mapping[str, Any]) -> list[str]:
    """Return ``"key: old -> new"`` for every key that decides the numbers and is not the same."""
    before, after = identity(old), identity(new)
    keys = dict.fromkeys([*before, *after])
    missing = "(not there)"
    return [
        f"{key}: {before.get(key, missing)} -> {after.get(key, missing)}"
        for key in keys
        if before.get(key, missing) != after.get(key, missing)
    ]


def identity(config: RunConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that decide the numbers, dotted, with values in one notation each."""
    flat = _flatten(config if isinstance(config, Mapping) else plain(config))
    kept = {key: _canonical(value) for key, value in flat.items() if not _is_free(key)}
    kept["budget"] = str(Budget.parse(kept["budget"]))
    return kept


def _is_free(key: str) -> bool:
    return any(key.startswith(free) if free.endswith(".") else key == free for free in _NOT_IDENTITY)


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _canonical(value: Any) -> Any:
    """Write whole floats as integers, so that 1 and 1.0 are one value."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    return [_canonical(item) for item in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
