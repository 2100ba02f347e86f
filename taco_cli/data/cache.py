"""Entries of the cache: folders that are complete or absent, each built once for a key.

An entry is built in a folder of its own, written through to the disk and renamed, so that a half-built one
never has the entry's name; a second process that wants the same entry waits for the first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

_BUILDING = ".building-"
_ABANDONED_AFTER = 24 * 3600  # seconds; an unfinished folder so old is that of a killed process
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST}


def key_of(*parts: Any) -> str:
    """Return a 32-digit hexadecimal key of plain JSON values."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def entry(cache_dir: str, kind: str, key: str, build: Callable[[Path], None]) -> tuple[Path, bool]:
    """Return the folder of an entry and whether it was there already.

    Args:
        cache_dir: `corpus.cache_dir`.
        kind: subfolder, one per sort of entry.
        key: from :func:`key_of`.
        build: fills the (empty) folder that it is given.

    Raises:
        ValueError: the cache cannot be written: no permission, no space.
    """
    folder = Path(cache_dir).expanduser() / kind
    final = folder / key
    if final.is_dir():
        return final, True
    with _named_faults(cache_dir):
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{key}.lock"):
            if final.is_dir():
                return final, True
            _remove_abandoned(folder)
            _build(folder, final, build)
    return final, False


def _build(folder: Path, final: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=folder))
    try:
        build(unfinished)
        for path in [*unfinished.rglob("*"), unfinished]:
            _write_through(path)
        try:
            unfinished.rename(final)
        except OSError:
            if not final.is_dir():  # else another machine on the same file system was faster
                raise
        _write_through(folder)
    finally:  # also on an interrupt
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_through(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("waiting for another process that prepares the same data (%s)", path)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as fault:  # a network file system without locks: the work may be done twice
            logger.warning("no lock on %s: %s", path, fault)
        yield


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{_BUILDING}*"):
        newest = max((item.stat().st_mtime for item in [path, *path.rglob("*")]), default=0.0)
        if time.time() - newest > _ABANDONED_AFTER:
            logger.warning("removing what a killed process left in the cache: %s", path)
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _named_faults(cache_dir: str) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        if fault.errno not in _NO_SPACE | _NOT_WRITABLE:
            raise
        raise ValueError(
            f"corpus.cache_dir={cache_dir}: cannot write the cache there ({fault.strerror}); "
            "free some space or set corpus.cache_dir to a writable folder on a larger disk"
        ) from fault


def file_digest(path: Path, cache_dir: str) -> str:
    """Return the hexadecimal BLAKE2b digest of a file's bytes, remembered between runs.

    The memory is keyed by path, size, inode and both times; a file changed within the last seconds is always
    read again, since a second change in the same tick of the clock would not show in its times.
    """
    state = path.stat()
    identity = [str(path.resolve()), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
    memory = Path(cache_dir).expanduser() / "digests" / key_of(*identity)
    settled = time.time() - max(state.st_mtime, state.st_ctime) > 2.0
    if settled and memory.is_file():
        return memory.read_text()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    if settled:
        with _named_faults(cache_dir):
            memory.parent.mkdir(parents=True, exist_ok=True)
            partial = memory.with_suffix(f".{os.getpid()}")
            partial.write_text(digest)
            partial.replace(memory)
    return digest
