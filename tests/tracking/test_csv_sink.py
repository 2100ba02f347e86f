from __future__ import annotations

import csv
import io
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.tracking import Status
from taco_cli.tracking.csv_sink import HEADER, CsvSink


def _rows(path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_one_row_per_value_at_once_on_disk(tmp_path):
    path = tmp_path / "run" / "metrics.csv"
    sink = CsvSink(path, None)
    sink.log({"train/loss": 1 / 3, "val/mlm": 2}, step=10, tokens=1000, seconds=1.23456)
    assert path.read_text() == f"{HEADER}\n10,1000,1.235,train/loss,{1 / 3!r}\n10,1000,1.235,val/mlm,2.0\n"
    sink.close(Status.finished)


def test_values_that_are_no_numbers_stay_readable(tmp_path):
    sink = CsvSink(tmp_path / "metrics.csv", None)
    sink.log({"a": float("nan"), "b": float("inf")}, 1, 1, 0.0)
    sink.close(Status.finished)
    values = [float(row["value"]) for row in _rows(tmp_path / "metrics.csv")]
    assert math.isnan(values[0])
    assert values[1] == math.inf


def test_resuming_drops_what_is_done_anew_and_a_torn_line(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(f"{HEADER}\n1,10,0.1,a,1.0\n2,20,0.2,a,2.0\n3,30,0.3,a,3.0\n3,30,0.3,b,3.0\n2,20,0.2,")
    sink = CsvSink(path, 2)
    assert sink.last_dropped == 3
    sink.log({"a": 33.0}, 3, 30, 0.3)
    sink.close(Status.finished)
    assert path.read_text() == f"{HEADER}\n1,10,0.1,a,1.0\n2,20,0.2,a,2.0\n3,30,0.300,a,33.0\n"
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.csv"]


def test_a_torn_line_with_all_commas_is_dropped_too(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(f"{HEADER}\n1,10,0.1,a,1.0\n1,10,0.1,b,1.2")  # could have been 1.25
    CsvSink(path, 1).close(Status.finished)
    assert path.read_text() == f"{HEADER}\n1,10,0.1,a,1.0\n"


def test_starting_from_the_beginning_drops_everything(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(f"{HEADER}\n0,0,0.0,val/mlm,9.0\n5,10,0.1,a,1.0\n")
    sink = CsvSink(path, None)
    assert sink.last_dropped == 5
    sink.close(Status.finished)
    assert path.read_text() == f"{HEADER}\n"


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_a_kill_anywhere_gives_the_file_of_an_uninterrupted_run(tmp_path_factory, last, resumed, torn):
    """Killed after `last` steps, resumed from an earlier checkpoint, the file cut at any byte after it."""
    resumed = min(resumed, last)
    folder = tmp_path_factory.mktemp("csv")

    def run(path, begin, end, resumed_step):
        sink = CsvSink(path, resumed_step)
        for step in range(begin, end):
            sink.log({"a": step / 7, "b": step}, step, step * 5, step / 3)
        sink.close(Status.interrupted)

    run(folder / "whole.csv", 1, 41, None)
    run(folder / "killed.csv", 1, last + 1, None)
    text = (folder / "killed.csv").read_text()
    checkpointed = sum(
        len(line) for line in text.splitlines(True) if line[0] == "s" or int(line.split(",")[0]) <= resumed
    )
    (folder / "killed.csv").write_text(text[: max(checkpointed, len(text) - torn)])
    run(folder / "killed.csv", resumed + 1, 41, resumed)
    assert (folder / "killed.csv").read_text() == (folder / "whole.csv").read_text()
