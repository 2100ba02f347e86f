"""The folder of one run: where its files are, and that one process at a time writes them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taco_cli.config.schema import RunConfig

_LONGEST_SLUG = 100
# A POSIX lock belongs to a process: a second one taken by the same process would succeed but for this set.
_locked_here: set[Path] = set()


class RunFolder:
    """``<output_root>/<name>/<label>/seed_<seed>``; files inside may not exist yet."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def of(cls, config: RunConfig) -> RunFolder:
        """Return the folder that `config` names; a null `label` is the objective's name."""
        label = config.label or config.objective.name
        return cls(Path(config.output_root) / slug(config.name) / slug(label) / f"seed_{config.seed}")

    @property
    def manifest(self) -> Path:
        """What the run is, and how far it came."""
        return self.path / "manifest.json"

    @property
    def metrics_csv(self) -> Path:
        """Everything that was logged, tidy."""
        return self.path / "metrics.csv"

    @property
    def checkpoints(self) -> Path:
        """Folder of ``step-000123.ckpt``."""
        return self.path / "checkpoints"

    @property
    def exports(self) -> Path:
        """Folder of Hugging Face directories ``step-000123``."""
        return self.path / "hf"

    @property
    def log(self) -> Path:
        """The run's log messages."""
        return self.path / "train.log"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for this process; the lock vanishes with the process, however it ends.

        Raises:
            ValueError: another run holds it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        path = (self.path / ".lock").resolve()
        if path in _locked_here:
            raise _taken(self.path, "this very process")
        with path.open("a+", encoding="utf-8") as file:
            try:
                # lockf rather than flock: children forked for loading data do not inherit it.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                file.seek(0)
                raise _taken(self.path, f"process {file.read().strip() or 'unknown'}") from None
            _locked_here.add(path)
            try:
                file.truncate(0)
                file.write(f"{os.getpid()} on {os.uname().nodename}\n")
                file.flush()
                yield
            finally:
                _locked_here.discard(path)


def slug(text: str) -> str:
    """Make `text` one part of a path that needs no quotes in a shell or a Hydra override.

    Letters, digits, ``.``, ``_``, ``+`` and ``-`` stay, accents are dropped, every run of others becomes
    ``-``; a text of more than 100 characters ends in a hash of the whole.

    Raises:
        ValueError: nothing is left.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    result = re.sub(r"[^A-Za-z0-9._+-]+", "-", plain).strip("-.")
    if not result:
        raise ValueError(f"{text!r} cannot name a folder; use letters, digits, '.', '_', '+' and '-'")
    if len(result) > _LONGEST_SLUG:
        result = f"{result[: _LONGEST_SLUG - 9]}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
    return result


def _taken(folder: Path, holder: str) -> ValueError:
    return ValueError(
        f"{folder}: a run is in progress in this folder ({holder}); wait for it or stop it, or give this run "
        "another name, label or seed"
    )
