from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from taco_cli.config.compare import Axis, CompareConfig, Direction
from taco_cli.report import Report, compare

MakeRun = Callable[..., Path]


def falling(speed: float, offset: float = 0.0) -> dict[str, Callable[[int], float]]:
    return {"val/mlm": lambda step: 10 - speed * step / 200 + offset, "val/similarity_intra": lambda step: 0.5}


def two_arms(root: Path, make_run: MakeRun, seeds: tuple[int, ...] = (1, 2, 3)) -> Path:
    """The baseline falls from 10 to 5 in 1,000 steps, the other arm four times as fast."""
    for seed in seeds:
        make_run(root, "mlm", seed, falling(1, seed / 10))
        make_run(root, "taco", seed, falling(4, seed / 10))
    return root


def printed(report: Report, width: int = 160) -> str:
    console = Console(width=width, record=True, quiet=False, file=None)
    with console.capture() as capture:
        console.print(report.table)
    return capture.get()


def rows(report: Report) -> dict[str, dict[str, str]]:
    with (report.folder / "summary.csv").open() as file:
        return {row["arm"]: row for row in csv.DictReader(file) if row["metric"] == "val/mlm"}


def test_known_crossing_from_folders_to_files(tmp_path: Path, make_run: MakeRun) -> None:
    report = compare(CompareConfig(runs=str(two_arms(tmp_path, make_run)), baseline="mlm"))
    row = rows(report)["taco"]
    assert float(row["final_value"]) == pytest.approx(-9.8)
    assert float(row["difference_value"]) == pytest.approx(-15)
    assert float(row["match_steps"]) == pytest.approx(250)
    assert float(row["match_steps_ratio_value"]) == pytest.approx(0.25)
    assert float(row["match_tokens_ratio_value"]) == pytest.approx(0.25)
    assert (row["match_reached"], row["match_seeds"]) == ("3", "3")
    assert "0.25 × the steps" in printed(report)
    assert "75 % of cases" in printed(report)
    assert {file.name for file in report.folder.iterdir()} == {
        "comparison.json",
        "summary.csv",
        "curves.csv",
        "curves.png",
        "curves.svg",
        "index.html",
    }
    document = json.loads((report.folder / "comparison.json").read_text())
    assert [entry["arm"] for entry in document["results"] if entry["metric"] == "val/mlm"] == ["mlm", "taco"]


def test_curves_file_has_mean_interval_and_count(tmp_path: Path, make_run: MakeRun) -> None:
    report = compare(CompareConfig(runs=str(two_arms(tmp_path, make_run))))
    with (report.folder / "curves.csv").open() as file:
        first = next(row for row in csv.DictReader(file) if row["metric"] == "val/mlm" and row["arm"] == "mlm")
    assert (first["step"], first["n"]) == ("100", "3")
    assert float(first["mean"]) == pytest.approx(9.7)
    assert float(first["high"]) - float(first["mean"]) == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-5)


def test_one_seed_is_said_to_be_one(tmp_path: Path, make_run: MakeRun) -> None:
    report = compare(CompareConfig(runs=str(two_arms(tmp_path, make_run, (1,)))))
    assert rows(report)["taco"]["match_steps_ratio_low"] == ""
    assert "cannot be said with one seed" in " ".join(printed(report, 300).split())


def test_not_reached_is_said(tmp_path: Path, make_run: MakeRun) -> None:
    for seed in (1, 2):
        make_run(tmp_path, "mlm", seed, falling(1))
        make_run(tmp_path, "slow", seed, falling(0.5))
        make_run(tmp_path, "mixed", seed, falling(2 if seed == 1 else 0.9))
    report = compare(CompareConfig(runs=str(tmp_path)))
    assert rows(report)["slow"]["match_steps_ratio_value"] == "not reached"
    assert rows(report)["mixed"]["match_steps_ratio_high"] == "not reached"
    assert rows(report)["mixed"]["match_reached"] == "1"
    assert "(1 of 2 reach it)" in printed(report, 300)


def test_missing_failed_and_killed_runs_are_said(tmp_path: Path, make_run: MakeRun) -> None:
    two_arms(tmp_path, make_run)
    make_run(tmp_path, "mlm", 4, falling(1), status="failed", manifest={"error": "Traceback:\nOSError: full"})
    make_run(tmp_path, "taco", 5, falling(1), range(100, 301, 100), status="running")
    make_run(tmp_path, "taco", 6, {}, range(0), status="interrupted")
    make_run(tmp_path, "taco", 7, falling(math.nan))
    notices = "\n".join(compare(CompareConfig(runs=str(tmp_path))).comparison.notices)
    assert "mlm has no run with seed 5, 6, 7" in notices
    assert "taco has no run with seed 4" in notices
    assert "mlm seed 4 failed (step 1,000): OSError: full" in notices
    assert "taco seed 5 was killed" in notices
    assert "taco seed 6 was interrupted" in notices
    assert "taco has no val/mlm yet for seed 6" in notices
    assert "taco seed 7 diverged: val/mlm is not a number at step 100" in notices


def test_a_seed_that_ended_early_is_said_and_can_be_left_out(tmp_path: Path, make_run: MakeRun) -> None:
    two_arms(tmp_path, make_run, (1, 2))
    make_run(tmp_path, "mlm", 3, falling(1), range(100, 301, 100), status="failed")
    make_run(tmp_path, "taco", 3, falling(4))
    report = compare(CompareConfig(runs=str(tmp_path)))
    assert rows(report)["mlm"]["step"] == "300"
    assert any("up to step 300 of 1,000 only" in notice for notice in report.comparison.notices)
    report = compare(CompareConfig(runs=str(tmp_path), seeds=[1, 2]))
    assert rows(report)["mlm"]["step"] == "1000"
    assert report.comparison.notices == []
    with pytest.raises(ValueError, match=r"seeds=9: no run has it; seeds found: 1, 2, 3"):
        compare(CompareConfig(runs=str(tmp_path), seeds=[1, 9]))


def test_not_reached_says_by_when_if_the_arm_is_not_done(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "mlm", 1, falling(1))
    make_run(tmp_path, "taco", 1, falling(1), range(100, 501, 100), status="interrupted")
    assert "not reached by step 500" in " ".join(printed(compare(CompareConfig(runs=str(tmp_path))), 300).split())


def test_unlike_machines_are_said(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "mlm", 1)
    make_run(tmp_path, "taco", 1, manifest={"machine": {"cores": 64}, "versions": {"torch": "2.9"}})
    notices = "\n".join(compare(CompareConfig(runs=str(tmp_path))).comparison.notices)
    assert "different machines" in notices
    assert "different library versions" in notices


def test_wrong_names_are_refused_with_those_there_are(tmp_path: Path, make_run: MakeRun) -> None:
    runs = str(two_arms(tmp_path, make_run))
    with pytest.raises(ValueError, match=r"baseline=bert: no such arm.*mlm, taco"):
        compare(CompareConfig(runs=runs, baseline="bert"))
    with pytest.raises(ValueError, match=r"metric=val/x: no run has it.*val/mlm"):
        compare(CompareConfig(runs=runs, metric="val/x"))
    with pytest.raises(ValueError, match="metric=val/x: no run has it"):
        compare(CompareConfig(runs=runs, metrics=["val/x"]))
    with pytest.raises(ValueError, match="runs= is missing"):
        compare(CompareConfig())


@pytest.mark.parametrize("wrong", [{"confidence": 95}, {"resamples": 1}, {"points": 1}])
def test_numbers_out_of_range_are_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    key, value = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=rf"{key}={value}: must be"):
        compare(CompareConfig(runs=str(tmp_path), **wrong))  # type: ignore[arg-type]


def test_flops_need_their_manifest_field(tmp_path: Path, make_run: MakeRun) -> None:
    two_arms(tmp_path / "a", make_run)
    with pytest.raises(ValueError, match="axis=flops: 6 of 6 runs have no flops_per_token"):
        compare(CompareConfig(runs=str(tmp_path / "a"), axis=Axis.flops))
    for label, each in (("mlm", 1e6), ("taco", 2e6)):
        speed = 4 if label == "taco" else 1
        make_run(tmp_path / "b", label, 1, falling(speed), manifest={"flops_per_token": each})
    report = compare(CompareConfig(runs=str(tmp_path / "b"), axis=Axis.flops))
    assert float(rows(report)["taco"]["match_flops_ratio_value"]) == pytest.approx(0.5)


def test_unknown_direction_is_asked_for(tmp_path: Path, make_run: MakeRun) -> None:
    runs = str(two_arms(tmp_path, make_run))
    report = compare(CompareConfig(runs=runs, metric="val/similarity_intra"))
    assert "say direction=up or direction=down" in " ".join(printed(report, 300).split())
    report = compare(CompareConfig(runs=runs, metric="val/similarity_intra", direction=Direction.up))
    assert report.comparison.primary[1].match is not None


def test_arms_without_the_default_baseline(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "taco", 1)
    make_run(tmp_path, "mlm_tp", 1)
    report = compare(CompareConfig(runs=str(tmp_path)))
    assert report.comparison.baseline is None
    assert any("no baseline" in notice for notice in report.comparison.notices)


def test_arms_sort_as_people_count(tmp_path: Path, make_run: MakeRun) -> None:
    for label in ("mlm", "k10", "k2", "k2.5", "a"):
        make_run(tmp_path, label, 1)
    report = compare(CompareConfig(runs=str(tmp_path)))
    assert [arm.name for arm in report.comparison.arms] == ["mlm", "a", "k2", "k2.5", "k10"]


def test_several_folders_and_an_output_of_ones_own(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path / "a", "mlm", 1)
    make_run(tmp_path / "b", "taco", 1)
    both = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert compare(CompareConfig(runs=both)).folder == tmp_path / "comparison"
    assert compare(CompareConfig(runs=both, output=str(tmp_path / "c"))).page.is_file()


def test_an_earlier_comparison_is_replaced_and_nothing_else(tmp_path: Path, make_run: MakeRun) -> None:
    runs = str(two_arms(tmp_path / "runs", make_run))
    folder = compare(CompareConfig(runs=runs)).folder
    (folder / "notes.txt").write_text("mine")
    before = (folder / "summary.csv").read_bytes()
    compare(CompareConfig(runs=runs, confidence=0.5))
    assert (folder / "summary.csv").read_bytes() != before
    assert (folder / "notes.txt").read_text() == "mine"

    foreign = tmp_path / "site"
    foreign.mkdir()
    (foreign / "index.html").write_text("mine")
    with pytest.raises(ValueError, match="holds files that are no comparison"):
        compare(CompareConfig(runs=runs, output=str(foreign)))
    assert [file.name for file in foreign.iterdir()] == ["index.html"]
    with pytest.raises(ValueError, match="is a file"):
        compare(CompareConfig(runs=runs, output=str(foreign / "index.html")))


def test_the_same_runs_give_the_same_files(tmp_path: Path, make_run: MakeRun) -> None:
    runs = str(two_arms(tmp_path / "runs", make_run))
    first = compare(CompareConfig(runs=runs, output=str(tmp_path / "1"))).folder
    second = compare(CompareConfig(runs=runs, output=str(tmp_path / "2"))).folder
    for name in ("comparison.json", "summary.csv", "curves.csv", "curves.png"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def tracked(root: Path, make_run: MakeRun, projects: tuple[str, str] = ("taco", "taco")) -> Path:
    for label, project in zip(("mlm", "taco"), projects, strict=True):
        tracking = {"kind": "wandb", "project": project, "entity": None}
        make_run(root, label, 1, falling(1), manifest={"wandb_id": "abc"}, tracking=tracking)
    return root


def test_view_of_the_same_metrics_where_the_runs_are(
    tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("taco_cli.tracking.wandb_view.save_view", lambda *args: asked.append(args) or "https://here")
    root = tracked(tmp_path, make_run)
    rows = ("rte,9,1,accuracy,50,quick", "rte,9,1,accuracy,51,taco")
    (root / "mlm" / "seed_1" / "glue.csv").write_text("\n".join(["task,step,seed,metric,value,protocol", *rows, ""]))
    report = compare(CompareConfig(runs=str(root), wandb_view=True))
    assert "glue_quick/rte/accuracy" in report.comparison.results  # which is no name that W&B has
    assert asked == [(None, "taco", ["ablations"], ["val/mlm", "val/similarity_intra", "glue/rte/accuracy"])]


@pytest.mark.parametrize("projects", [("taco", "other"), None])
def test_view_needs_one_project_and_the_page_is_there_before(
    tmp_path: Path, make_run: MakeRun, projects: tuple[str, str] | None
) -> None:
    root = tracked(tmp_path, make_run, projects) if projects else two_arms(tmp_path, make_run)
    with pytest.raises(ValueError, match=r"wandb_view=true: a view is of one W&B project"):
        compare(CompareConfig(runs=str(root), wandb_view=True))
    assert (root / "comparison" / "index.html").is_file()
