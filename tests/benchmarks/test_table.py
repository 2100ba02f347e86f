"""The table from made-up measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.case import Case
from benchmarks.rows import gib, percent, rows
from benchmarks.table import Measured, Row, Series, Value, fill, lines, markdown, plain_data, save

SLOW, FAST = Case("steps", "bert_mini"), Case("steps", "bert_small")
RATIO = Row("Time", "bert_mini", "plain / tool", ">= 8", Series(SLOW, "plain"), Series(FAST, "tool"))


def test_ratio_is_the_median_of_the_rounds_ratios() -> None:
    done = {SLOW: {"plain": [8.0, 30.0, 10.0]}, FAST: {"tool": [1.0, 3.0, 1.0]}}
    measured = fill(RATIO, done, {})
    assert measured.value == Value(median=10.0, low=8.0, high=10.0, rounds=3)
    assert measured.text == "10.00 (8.00 to 10.00)"


def test_series_of_different_lengths_give_the_ratio_of_medians() -> None:
    done = {SLOW: {"plain": [8.0]}, FAST: {"tool": [1.0, 2.0, 3.0]}}
    assert fill(RATIO, done, {}).text == "4.00"


def test_value_without_ratio_has_its_own_form() -> None:
    row = Row("Memory", "bert_mini", "peak", "–", Series(SLOW, "peak_bytes"), form=gib)
    assert fill(row, {SLOW: {"peak_bytes": [1.5 * 2**30]}}, {}).text == "1.50 GiB"
    assert percent(0.456) == "46%"


def test_failed_case_says_why() -> None:
    measured = fill(RATIO, {SLOW: {"plain": [1.0]}}, {FAST: "exit status 1: no space"})
    assert measured.value is None
    assert measured.text == "failed: exit status 1: no space"


def test_target_stands_beside_the_value(tmp_path: Path) -> None:
    measured = [Measured(RATIO, Value(9.0, 8.0, 10.0, 3)), Measured(RATIO, None, "no space")]
    assert "target >= 8  9.00 (8.00 to 10.00)" in next(iter(lines(measured)))
    text = markdown(measured, {"machine": "a laptop"})
    assert "## Time" in text
    assert "- machine: a laptop" in text
    assert "| bert_mini | plain / tool | >= 8 | 9.00 (8.00 to 10.00) |" in text
    page, data = save(tmp_path / "results", "bench", text, plain_data(measured, {"machine": "a laptop"}))
    assert page.read_text() == text
    first, second = json.loads(data.read_text())["rows"]
    assert (first["median"], first["low"], first["high"], first["target"]) == (9.0, 8.0, 10.0, ">= 8")
    assert second["failure"] == "no space"


@pytest.mark.parametrize("quick", [True, False])
def test_each_row_is_another_one_and_its_series_are_given(quick: bool) -> None:
    chosen = rows(quick)
    names = [(row.section, row.subject, row.what) for row in chosen]
    assert len(set(names)) == len(names)
    for series in (series for row in chosen for series in (row.over, row.under) if series is not None):
        kind, _, objective = series.name.partition(":")
        if series.case.side == "steps" and objective:
            assert objective in (series.case.plain if kind == "plain" else series.case.objectives)


def test_quick_is_part_of_the_whole() -> None:
    def kinds(quick: bool) -> set[str]:
        return {row.what for row in rows(quick)}

    assert kinds(True) <= kinds(False)
