"""Checkpoints that survive a kill or a full disk at any moment.

A file is complete or absent: it is written beside its place, flushed to the disk and renamed. Reading starts
at the newest and falls back past damaged files. ``step-000123.ckpt`` holds plain containers and tensors only.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import zipfile
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

logger = logging.getLogger(__name__)

State = dict[str, Any]

# Shares of the budget whose checkpoints are kept for good, for curves of downstream scores against training.
MILESTONES = (0.0625, 0.125, 0.25, 0.5, 1.0)

_NAME = re.compile(r"step-(\d{6,})\.ckpt")
_TEMPORARY = ".tmp"
_DAMAGED = ".damaged"
_MILESTONES_FILE = "milestones.json"
_PLAIN = (dict, OrderedDict, list, tuple, str, int, float, bool, type(None), torch.Tensor, torch.nn.Parameter)


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return where the checkpoint of `step` is: ``<folder>/step-000123.ckpt``."""
    return folder / f"step-{step:06d}.ckpt"


def list_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Return (step, path) of all checkpoints in `folder`, oldest first; none if there is no folder."""
    if not folder.is_dir():
        return []
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)


def save(path: Path, state: State) -> None:
    """Write `state` to `path`, completely or not at all.

    Raises:
        OSError: the disk is full or not writable; whatever was there before is untouched.
        TypeError: `state` holds something that reading would refuse.
    """
    _check_plain(state, "state")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_temporary_files(path.parent)
    temporary = path.with_name(path.name + _TEMPORARY)
    try:
        _write(temporary, state)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _not_written(path, state, error) from error
    _sync_folder(path.parent)


def load(path: Path) -> State:
    """Read one checkpoint to the CPU.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged or not a checkpoint.
    """
    try:
        # torch does not compare the checksums it writes, so that a flipped bit would go unnoticed.
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
        if broken is not None:
            raise zipfile.BadZipFile(f"checksum of {broken} differs")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # damage shows in very many ways
        raise ValueError(f"{path}: not a readable checkpoint ({_first_line(error)})") from error
    if not isinstance(state, dict):
        raise ValueError(f"{path}: not a checkpoint (holds a {type(state).__name__})")
    return state


def load_latest(folder: Path) -> tuple[int, State] | None:
    """Return (step, state) of the newest checkpoint that can be read; None if there is none at all.

    Damaged files met on the way are set aside as ``.ckpt.damaged`` with a warning, once a good one is found.

    Raises:
        ValueError: there are checkpoints and all of them are damaged.
    """
    _remove_temporary_files(folder)
    damaged: list[Path] = []
    for step, path in reversed(list_checkpoints(folder)):
        try:
            state = load(path)
        except FileNotFoundError:  # set aside by another rank
            continue
        except ValueError as error:
            logger.warning("Damaged checkpoint: %s. Falling back to the one before it.", error)
            damaged.append(path)
            continue
        for bad in damaged:
            with suppress(FileNotFoundError):  # another rank was quicker
                bad.replace(bad.with_name(bad.name + _DAMAGED))
        return step, state
    if damaged:
        raise ValueError(
            f"{folder}: no checkpoint can be read ({', '.join(path.name for path in damaged)}); "
            f"restore one from a copy, or delete the run folder {folder.parent} to start from the beginning"
        )
    return None


def milestone_crossed(before: float, after: float) -> float | None:
    """Return the largest milestone share that a step crosses, if any.

    Args:
        before: progress at the beginning of the step, in [0, 1].
        after: progress at its end: the first step at or past a share has ``before < share <= after``.
    """
    crossed = [share for share in MILESTONES if before < share <= after]
    return crossed[-1] if crossed else None


def record_milestone(folder: Path, step: int) -> None:
    """Note that the checkpoint of `step` is kept for good; call it before saving, for a kill in between."""
    steps = sorted(milestones(folder) | {step})
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / (_MILESTONES_FILE + _TEMPORARY)
    temporary.write_text(json.dumps({"steps": steps}) + "\n", encoding="utf-8")
    temporary.replace(folder / _MILESTONES_FILE)


def milestones(folder: Path) -> set[int]:
    """Return the steps noted by :func:`record_milestone`, in this run or before its restarts."""
    try:
        return set(json.loads((folder / _MILESTONES_FILE).read_text(encoding="utf-8"))["steps"])
    except FileNotFoundError:
        return set()


def prune(folder: Path, keep: int, milestones: Collection[int], exports: Path | None = None) -> list[int]:
    """Delete all checkpoints but the newest `keep` and the milestones, each with its export.

    Args:
        folder: the checkpoints.
        keep: at least 1.
        milestones: steps that stay, see :func:`milestones`.
        exports: folder with ``step-000123`` folders.

    Returns:
        The steps deleted.
    """
    assert keep >= 1
    pruned = [(step, path) for step, path in list_checkpoints(folder)[:-keep] if step not in milestones]
    for _, path in pruned:
        if exports is not None:  # first, so that a kill leaves no export without its checkpoint
            shutil.rmtree(exports / path.stem, ignore_errors=True)
        path.unlink(missing_ok=True)
    return [step for step, _ in pruned]


class _Writer(io.BufferedWriter):
    """Remembers why a write failed: torch's own error does not say."""

    error: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = self.error or error
            raise


def _write(path: Path, state: State) -> None:
    with _Writer(io.FileIO(path, "w")) as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            raise file.error or error from error
        file.flush()
        os.fsync(file.fileno())


def _check_plain(value: Any, where: str) -> None:
    """Refuse now what ``weights_only`` would refuse after a restart, e.g. a member of an enum."""
    if type(value) not in _PLAIN:
        raise TypeError(
            f"checkpoint: {where} is a {type(value).__name__}; only plain containers and tensors are stored"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_plain(item, f"{where}[{index}]")


def _remove_temporary_files(folder: Path) -> None:
    for path in folder.glob(f"step-*.ckpt{_TEMPORARY}"):
        logger.warning("Removed %s, left over from a save that was interrupted.", path)
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _not_written(path: Path, state: State, error: OSError) -> OSError:
    needed = sum(tensor.nbytes for tensor in _tensors(state))
    message = (
        f"cannot write checkpoint {path.name} to {path.parent}: {error.strerror or error}; it needs about "
        f"{_megabytes(needed)}, {_megabytes(shutil.disk_usage(path.parent).free)} are free there. "
        "Earlier checkpoints are intact: make room or lower keep_checkpoints and start the same command again"
    )
    return OSError(error.errno, message) if error.errno is not None else OSError(message)


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from _tensors(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from _tensors(value)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
