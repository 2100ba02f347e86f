from __future__ import annotations

import csv
import logging
from pathlib import Path

import pytest

from taco_cli.evaluation.results import COLUMNS, Results


def row(key: str, checkpoint_hash: str = "aa", checkpoint: str = "hf/step-000010", **more: str) -> dict[str, str]:
    return {"key": key, "checkpoint": checkpoint, "checkpoint_hash": checkpoint_hash, "step": "10", **more}


def test_rows_come_back_with_every_column(tmp_path: Path) -> None:
    results = Results(tmp_path / "run" / "glue.csv")
    results.add([row("k1", metric="f1", value="1.5", head="a, b"), row("k1", metric="accuracy")])
    again = Results(tmp_path / "run" / "glue.csv")
    assert [tuple(found) for found in again.rows] == [COLUMNS] * 2
    assert [found["metric"] for found in again.find("k1")] == ["f1", "accuracy"]
    assert again.find("k1")[0]["head"] == "a, b"
    assert again.find("k2") == []


def test_two_writers_keep_each_others_rows(tmp_path: Path) -> None:
    one, two = Results(tmp_path / "glue.csv"), Results(tmp_path / "glue.csv")
    one.add([row("k1")])
    two.add([row("k2")])
    assert [found["key"] for found in Results(tmp_path / "glue.csv").rows] == ["k1", "k2"]


def test_rows_of_weights_that_are_gone_are_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    results = Results(tmp_path / "glue.csv")
    results.add([row("k1", "old")])
    results.add([row("k2", "other", "hf/step-000020")])
    with caplog.at_level(logging.WARNING):
        results.add([row("k3", "new")])
    assert [found["key"] for found in results.rows] == ["k2", "k3"]
    assert "dropped 1 rows" in caplog.text


def test_same_measurement_is_replaced(tmp_path: Path) -> None:
    results = Results(tmp_path / "glue.csv")
    results.add([row("k1", value="1")])
    results.add([row("k1", value="2")])
    assert [found["value"] for found in results.rows] == ["2"]


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "glue.csv"
    with path.open("w") as file:
        csv.writer(file).writerows([["task", "score"], ["cola", 3]])
    with pytest.raises(ValueError, match="has no column"):
        Results(path)
