from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taco_cli.report.curves import read_metrics


def test_curves_are_read_by_metric(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    file.write_text(
        "step,tokens,seconds,metric,value\n10,640,1.5,val/mlm,7.5\n10,640,1.5,val/tc,3.9\n20,1280,3,val/mlm,nan\n"
    )
    curves = read_metrics(file)
    assert sorted(curves) == ["val/mlm", "val/tc"]
    assert curves["val/mlm"].steps.tolist() == [10, 20]
    assert curves["val/mlm"].seconds.tolist() == [1.5, 3.0]
    np.testing.assert_equal(curves["val/mlm"].values, [7.5, np.nan])


def test_a_step_written_twice_counts_as_written_last(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    rows = ["10,1,1,a,1", "20,2,2,a,2", "30,3,3,a,3", "20,2,2.5,a,22", "30,3,3.5,a,33"]
    file.write_text("\n".join(["step,tokens,seconds,metric,value", *rows, ""]))
    curve = read_metrics(file)["a"]
    assert curve.steps.tolist() == [10, 20, 30]
    assert curve.values.tolist() == [1, 22, 33]
    assert curve.seconds.tolist() == [1, 2.5, 3.5]


def test_a_line_in_the_writing_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    file.write_text("step,tokens,seconds,metric,value\n10,1,1,a,1.25\n20,2,2,a,2.2")
    assert read_metrics(file)["a"].values.tolist() == [1.25]


@pytest.mark.parametrize("text", ["", "step,tokens", "step,tokens,seconds,metric,value\n"])
def test_a_file_without_rows_has_no_curves(tmp_path: Path, text: str) -> None:
    file = tmp_path / "metrics.csv"
    assert read_metrics(file) == {}
    file.write_text(text)
    assert read_metrics(file) == {}


def test_wrong_columns_and_wrong_rows_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    file.write_text("step,metric,value\n1,a,1\n")
    with pytest.raises(ValueError, match=r"metrics\.csv has no column tokens, seconds"):
        read_metrics(file)
    file.write_text("step,tokens,seconds,metric,value\n1,1,1,a,good\n")
    with pytest.raises(ValueError, match=r"metrics\.csv cannot be read.*good"):
        read_metrics(file)
