"""Rules for what `taco-glue` and `taco-analyze` are pointed at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def subject_problems(run: Any, model: Any, output: str | None) -> Iterator[str]:
    """Yield what is wrong with `run`, `model` and `output` together."""
    if bool(run) == bool(model):
        yield (
            "give one of run=outputs/<name>/<label>/seed_<seed> (or a folder above it) and "
            "model=<Hugging Face folder or hub name>"
        )
    if output is not None and not model:
        yield f"output={output}: results of a run go into its folder; output is for model=..."


def steps_problems(steps: Any, listed: list[Any]) -> Iterator[str]:
    """Yield what is wrong with `steps`; `listed` is its value as a list."""
    if steps not in ("last", "all") and not (steps and all(isinstance(step, int) for step in listed)):
        yield f"steps={steps}: allowed are last, all, or a list as steps=[1000,2000]"


def as_list(value: Any) -> list[Any]:
    """Return a value that may be one or several as a list; text is cut at commas."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.strip("[] ").split(",") if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]
