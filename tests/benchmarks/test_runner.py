"""Cases run in turn, each in a process of its own, and a failure takes only its rows along."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.case import Case
from benchmarks.runner import Runner

# Writes down who ran and says how often it did so.
CODE = """
import json, pathlib, sys
folder, case = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
log = folder / "log"
before = log.read_text() if log.exists() else ""
log.write_text(before + case["side"])
if case["side"] == "x":
    raise SystemExit("something\\nno space left")
print("chatter")
print(json.dumps({"n": [before.count(case["side"]) + 1]}))
"""


def test_cases_with_repeats_alternate_and_run_once_each(tmp_path: Path) -> None:
    runner = Runner(tmp_path, (sys.executable, "-c", CODE))
    first, second, single = Case("a", repeats=2), Case("b", repeats=2), Case("c")
    runner.measure([first, second, single, first])
    runner.measure([first])
    assert (tmp_path / "log").read_text() == "abcab"
    assert runner.done[first] == {"n": [1, 2]}
    assert runner.done[single] == {"n": [1]}


def test_failure_is_remembered_with_its_last_line(tmp_path: Path) -> None:
    runner = Runner(tmp_path, (sys.executable, "-c", CODE))
    runner.measure([Case("x", repeats=3), Case("a")])
    runner.measure([Case("x", repeats=3)])
    assert runner.failed == {Case("x", repeats=3): "exit status 1: no space left"}
    assert (tmp_path / "log").read_text() == "xa"
