"""Each side measures a tiny case: finite numbers under the names that the rows ask for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.case import measure
from benchmarks.sides.finetune import sentences

SIDES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("machine", {}, {"float32", "bf16", "copy", "contrast", "mlm"}),
    (
        "steps",
        {"objectives": ("mlm", "taco", "taco@7", "mlm_tp"), "plain": ("mlm", "taco")},
        {"tool:mlm", "tool:taco@7", "plain:taco", "share:mlm", "added:taco@7", "loader", "compile", "recompilations"},
    ),
    ("steps", {"encoder": "modernbert_tiny", "plain": ("taco",)}, {"tool:taco", "plain:taco"}),
    ("through", {"rounds": 1, "warm_up": 10}, {"seconds", "recompilations"}),
    ("parts", {}, {"loader", "encoder, forward", "TC, with its gradients", "step"}),
    ("blocks", {"way": "tool"}, {"tokens_per_second"}),
    ("blocks", {"way": "datasets"}, {"tokens_per_second"}),
    ("preparing", {}, {"bytes", "corpus_bytes", "seconds"}),
    ("finetune", {"dropout": 0.1}, {"tool", "plain"}),
    ("start", {"rounds": 1}, {"total", "imports", "validation"}),
]


@pytest.mark.parametrize(("side", "changes", "names"), SIDES)
def test_side(side: str, changes: dict[str, Any], names: set[str], tiny: Any, tmp_path: Path) -> None:
    found = measure(tiny(side, **changes), tmp_path)
    assert names | {"peak_bytes"} <= set(found)
    assert all(values and all(math.isfinite(value) for value in values) for values in found.values())


def test_parts_add_up_to_the_step(tiny: Any, tmp_path: Path) -> None:
    found = measure(tiny("parts", objectives=("mlm",)), tmp_path)
    whole, peak = found.pop("step"), found.pop("peak_bytes")
    assert peak
    assert len(whole) == 2
    assert [sum(parts) for parts in zip(*found.values(), strict=True)] == pytest.approx(whole)
    assert set(found["TC, with its gradients"]) == {0}


def test_preparing_keeps_every_document(tiny: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = measure(tiny("preparing"), tmp_path)
    assert found["corpus_bytes"][0] >= 10**6
    assert "left out" not in caplog.text


def test_preparing_needs_space(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="GB free"):
        measure(tiny("preparing", megabytes=10**9), tmp_path)


def test_sentences_are_as_long_as_those_of_sst2(tiny: Any) -> None:
    lengths = sorted(len(text.split()) + 2 for (text,) in sentences(tiny("finetune", sentences=4000)).texts)
    assert 11 <= sum(lengths) / len(lengths) <= 14
    assert 9 <= lengths[2000] <= 11
    assert 28 <= lengths[3800] <= 34
