"""`glue.csv`: one row per task, step, seed and metric, with all that is needed to get the value again."""

from __future__ import annotations

import csv
import fcntl
import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger(__name__)

Row = dict[str, str]
COLUMNS = (
    *("task", "step", "seed", "metric", "value", "flag"),
    *("protocol", "lr", "lr_grid", "epochs", "batch_size", "length", "warmup_steps", "weight_decay", "clip"),
    *("dropout", "pooling", "head", "train_limit", "train_examples", "dev_examples"),
    *("checkpoint", "checkpoint_hash", "data_hash", "device", "precision"),
    *("taco_cli", "torch", "transformers", "seconds", "finished", "key"),
)


class Results:
    """The rows of one file; several processes may add to it."""

    def __init__(self, path: Path) -> None:
        """Read what is there.

        Raises:
            ValueError: the file is not a table of results.
        """
        self.path = path
        self.rows = self._read()

    def find(self, key: str) -> list[Row]:
        """Return the rows of one measurement, none if it is still to be made."""
        return [row for row in self.rows if row["key"] == key]

    def add(self, rows: list[Row]) -> list[Row]:
        """Append the rows of one measurement and return them with every column; the file is whole at every moment.

        Rows of the same step from weights that are no longer there (a run that was made again) are dropped.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._held():
            there = self._read()
            kept = [row for row in there if not _outdated(row, rows[0]) and row["key"] != rows[0]["key"]]
            dropped = sum(_outdated(row, rows[0]) for row in there)
            if dropped:
                logger.warning(
                    "%s: dropped %d rows of step %s that other weights gave", self.path, dropped, rows[0]["step"]
                )
            added = [{name: row.get(name, "") for name in COLUMNS} for row in rows]
            self.rows = kept + added
            self._write()
        return added

    def _read(self) -> list[Row]:
        if not self.path.is_file():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            if set(COLUMNS) - set(reader.fieldnames or []):
                missing = ", ".join(sorted(set(COLUMNS) - set(reader.fieldnames or [])))
                raise ValueError(f"{self.path}: has no column {missing}; move the file away and start again")
        return rows

    def _write(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(self.rows)
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)

    @contextmanager
    def _held(self) -> Iterator[None]:
        with self.path.with_name(f".{self.path.name}.lock").open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            yield


def _outdated(row: Row, new: Row) -> bool:
    return row["checkpoint"] == new["checkpoint"] and row["checkpoint_hash"] != new["checkpoint_hash"]
