"""The table of fine-tuning scores says which spread it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from pathlib import Path

import pytest

from taco_cli.config.compare import CompareConfig
from taco_cli.report.fine_tuning import glue
from taco_cli.report.results import evaluate
from taco_cli.report.runs import read_runs

MakeRun = Callable[..., Path]


def table(root: Path, make_run: MakeRun, values: Mapping[tuple[str, int], Sequence[float]], protocol: str) -> list[str]:
    """Cells of the row that these values of fine-tuning seeds by arm and pre-training seed give."""
    for (label, seed), scores in values.items():
        rows = [f"rte,1000,{i},accuracy,{score},{protocol}" for i, score in enumerate(scores)]
        text = "\n".join(["task,step,seed,metric,value,protocol", *rows, ""])
        (make_run(root, label, seed) / "glue.csv").write_text(text)
    page = glue(evaluate(read_runs([root]), CompareConfig(runs=str(root), metrics=["glue/rte/accuracy"])))
    [row] = re.findall(r"<tbody><tr>(.*?)</tr>", page)
    return [unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)]


def test_spread_is_over_pre_training_seeds_where_there_are_several(tmp_path: Path, make_run: MakeRun) -> None:
    values = {("mlm", 1): [49, 51], ("mlm", 2): [58, 62], ("taco", 1): [70, 80], ("taco", 2): [75]}
    cells = table(tmp_path, make_run, values, "quick")
    # t of one degree of freedom is 12.706: of 50 and 60, whose standard error is 5; of 75 and 75.
    assert cells == [
        "rteaccuracy, quick, 1 to 2 fine-tuning seeds",
        "55.0± 64 over 2 pre-training seeds",
        "75.0± 0 over 2 pre-training seeds",
    ]


def test_spread_of_one_run_is_over_its_fine_tuning_seeds(tmp_path: Path, make_run: MakeRun) -> None:
    cells = table(tmp_path, make_run, {("mlm", 1): [50, 60], ("taco", 1): [80, 80]}, "taco")
    assert cells == [
        "rteaccuracy, taco, 2 fine-tuning seeds",
        "55.0± 64 over 2 fine-tuning seeds",
        "80.0± 0 over 2 fine-tuning seeds",
    ]


@pytest.mark.parametrize(("protocol", "head"), [("quick", "quick, 1 fine-tuning seed"), ("frozen", "frozen")])
def test_one_value_has_no_spread(tmp_path: Path, make_run: MakeRun, protocol: str, head: str) -> None:
    assert table(tmp_path, make_run, {("mlm", 1): [50]}, protocol) == [f"rteaccuracy, {head}", "50.0"]
