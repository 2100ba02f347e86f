"""The table of parts from made-up measurements."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.profile import columns, markdown


def test_parts_stand_beside_their_shares() -> None:
    mlm, taco = (Case("parts", objectives=(name,)) for name in ("mlm", "taco"))
    done = {
        mlm: {"peak_bytes": [1.0], "backward": [0.1, 0.1, 0.9], "step": [0.2, 0.2, 1.0]},
        taco: {"peak_bytes": [1.0], "backward": [0.1], "step": [0.4]},
    }
    text = markdown(columns([mlm, taco], done))
    assert "| ms of a step | bert_mini, mlm | bert_mini, taco |" in text
    assert "| backward | 100.0 (50%) | 100.0 (25%) |" in text
    assert "peak_bytes" not in text
