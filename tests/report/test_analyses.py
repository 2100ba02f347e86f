from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from taco_cli.report.analyses import pictures, read_analyses
from taco_cli.report.arms import Arm, group
from taco_cli.report.runs import read_runs

MakeRun = Callable[..., Path]


def write(folder: Path, name: str, text: str) -> None:
    file = folder / "analysis" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def arms(root: Path) -> list[Arm]:
    return group(read_runs([root]).runs)


def test_tidy_tables_are_averaged_over_seeds(tmp_path: Path, make_run: MakeRun) -> None:
    write(make_run(tmp_path, "mlm", 1), "probes.csv", "layer,metric,value\n0,pos,0.5\n1,pos,0.7\n")
    write(make_run(tmp_path, "mlm", 2), "probes.csv", "layer,metric,value\n0,pos,0.7\n")
    write(make_run(tmp_path, "taco", 1), "probes.csv", "layer,metric,value\n0,pos,0.9\n")
    (analysis,) = read_analyses(arms(tmp_path))
    assert (analysis.name, analysis.keys, analysis.arms) == ("probes", ["layer", "metric"], ["mlm", "taco"])
    assert analysis.cells["0", "pos"] == {"mlm": pytest.approx(0.6), "taco": 0.9}
    assert analysis.cells["1", "pos"] == {"mlm": 0.7}


def test_wide_tables_have_a_row_per_number(tmp_path: Path, make_run: MakeRun) -> None:
    write(make_run(tmp_path), "similarity.csv", "step,state,intra,inter\n100,h,0.9,0.5\n")
    (analysis,) = read_analyses(arms(tmp_path))
    assert analysis.keys == ["step", "state", "of"]
    assert analysis.cells == {("100", "h", "intra"): {"mlm": 0.9}, ("100", "h", "inter"): {"mlm": 0.5}}


def test_what_is_no_table_is_left_out_with_a_warning(
    tmp_path: Path, make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    write(make_run(tmp_path), "empty.csv", "")
    with caplog.at_level(logging.WARNING):
        assert read_analyses(arms(tmp_path)) == []
    assert "empty.csv is left out" in caplog.text


def test_pictures_are_named_after_their_run(tmp_path: Path, make_run: MakeRun) -> None:
    write(make_run(tmp_path, "taco", 3), "layers/heat.png", "png")
    ((caption, file),) = pictures(arms(tmp_path))
    assert caption == "taco, seed 3: layers/heat"
    assert file.name == "heat.png"
