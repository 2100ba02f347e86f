"""`metrics.csv`: one row per value, ``step,tokens,seconds,metric,value``, in the order of training."""

from __future__ import annotations

import os
from pathlib import Path

from taco_cli.tracking.manifest import Status

HEADER = "step,tokens,seconds,metric,value"
_COLUMNS = HEADER.count(",") + 1


class CsvSink:
    """Appends to the file and hands every call's rows to the system at once.

    A resumed run keeps the rows up to its checkpoint and writes the later ones anew, so no row is there
    twice: log what belongs to a step before saving its checkpoint. `last_dropped` is the last step whose rows
    were dropped, None if there was none.
    """

    def __init__(self, path: Path, resumed_step: int | None) -> None:
        self.last_dropped = _truncate(path, -1 if resumed_step is None else resumed_step)
        self._file = path.open("a", encoding="utf-8", newline="")

    def log(self, metrics: dict[str, float], step: int, tokens: int, seconds: float) -> None:
        """Append one row per metric; a value is written with all its digits.

        Raises:
            OSError: the disk is full.
        """
        rows = [f"{step},{tokens},{seconds:.3f},{name},{float(value)!r}\n" for name, value in metrics.items()]
        self._file.write("".join(rows))
        self._file.flush()

    def close(self, status: Status) -> None:
        """Close the file."""
        self._file.close()


def _truncate(path: Path, last_step: int) -> int | None:
    """Keep the rows up to `last_step`, without the torn last line of a kill; return the last step dropped."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if path.exists() else []
    rows = [line for line in lines if _is_row(line)]
    kept = [line for line in rows if _step(line) <= last_step]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER + "\n" + "".join(kept))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return max((step for step in map(_step, rows) if step > last_step), default=None)


def _is_row(line: str) -> bool:
    fields = line.split(",")
    return line.endswith("\n") and len(fields) == _COLUMNS and fields[0].isdecimal()


def _step(row: str) -> int:
    return int(row.partition(",")[0])
