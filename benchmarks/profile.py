"""Say where the time of a training step goes, part by part: `python -m benchmarks.profile`."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.__main__ import RESULTS
from benchmarks.case import Case, Results
from benchmarks.runner import Runner

CASES = [
    Case("parts", encoder, (objective,), vocab_size=vocabulary, warm_up=20, steps=40)
    for encoder, vocabulary in (("bert_mini", 30522), ("modernbert_mini", 8192))
    for objective in ("mlm", "taco")
]


def columns(cases: Sequence[Case], done: Mapping[Case, Results]) -> dict[str, dict[str, float]]:
    """Return the median milliseconds of each part, by case."""
    return {
        f"{case.encoder}, {case.objectives[0]}": {
            part: 1000 * statistics.median(values) for part, values in done[case].items() if part != "peak_bytes"
        }
        for case in cases
    }


def markdown(found: Mapping[str, Mapping[str, float]], whole: str = "step") -> str:
    """Return a table: a line per part, a column per case, with the share of the whole step."""
    parts = list(dict.fromkeys(part for column in found.values() for part in column))
    lines = [f"| ms of a step | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for part in parts:
        cells = [f"{column[part]:.1f} ({column[part] / column[whole]:.0%})" for column in found.values()]
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder))
        runner.measure(CASES)
    for case, why in runner.failed.items():
        print(f"{case.encoder}, {case.objectives[0]} failed: {why}", file=sys.stderr)
    found = columns([case for case in CASES if case in runner.done], runner.done)
    text = markdown(found)
    print(text, end="")
    print(f"saved in {' and '.join(map(str, table.save(RESULTS, 'profile', text, found)))}")
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
