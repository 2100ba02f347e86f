"""Cases that take a moment."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from benchmarks.case import Case

TINY = Case(
    "steps",
    "bert_tiny",
    vocab_size=600,
    batch_size=4,
    length=16,
    words=4000,
    compile=False,
    warm_up=1,
    rounds=2,
    steps=2,
    processes=1,
    sentences=8,
    megabytes=1,
)


@pytest.fixture
def tiny() -> Any:
    """Return a factory of tiny cases."""
    return lambda side, **changes: dataclasses.replace(TINY, side=side, **changes)
