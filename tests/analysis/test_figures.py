"""Which rows a panel shows, and that figures are drawn, named and the same each time."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from taco_cli.analysis.figures import LAST, Headline, View, compared_figure, own_figure, save_figure, select
from taco_cli.analysis.run import MEASURES
from taco_cli.analysis.tables import Row

ROWS: list[Row] = [
    {"step": step, "layer": layer, "kind": kind, "decile": "", "measure": "cosine", "value": step * layer + len(kind)}
    for step in (0, 9, 10)
    for layer in (1, 2)
    for kind in ("a_kind", "other")
]
VIEW = View("panel", "step", "kind", {"measure": "cosine", "layer": LAST}, "nats")
HEADLINE = Headline("the last value", {"step": LAST, "layer": LAST, "kind": "other"})


def test_selection_in_the_order_of_its_conditions() -> None:
    assert [row["value"] for row in select(ROWS, {"kind": "other", "step": LAST, "layer": LAST})] == [25]
    assert len(select(ROWS, {"kind": ("other", "a_kind"), "step": 9})) == 4
    assert select(ROWS, {"decile": None}) == []
    assert select(ROWS, {"step": 9, "layer": 3, "kind": LAST}) == []
    # 10 is the last step as a number, not as a text
    assert {row["step"] for row in select(ROWS, {"step": LAST})} == {10}


def test_lines_are_named_at_their_ends_and_names_are_apart() -> None:
    figure = own_figure("Which?", HEADLINE, "taco seed 1", ROWS, [VIEW])
    assert figure is not None
    (axes,) = figure.axes
    names = {text.get_text(): text.xy[1] for text in axes.texts}
    assert set(names) == {"a kind", "other"}
    low, high = axes.get_ylim()
    assert abs(names["a kind"] - names["other"]) > 0.08 * (high - low)
    assert figure.get_suptitle() == "Which?\ntaco seed 1: the last value 25"
    assert [line.get_xdata().tolist() for line in axes.lines] == [[0, 9, 10], [0, 9, 10]]


def test_names_stay_inside_the_panel() -> None:
    rows: list[Row] = [{"step": step, "kind": kind, "value": 1.0} for step in (0, 9) for kind in ("a", "b", "c")]
    rows += [{"step": 0, "kind": "low", "value": 0.0}]
    figure = own_figure("Which?", HEADLINE, "x", rows, [View("panel", "step", "kind", unit="accuracy")])
    assert figure is not None
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    places = sorted(text.xy[1] for text in axes.texts)
    assert places[-1] == pytest.approx(high)
    assert min(b - a for a, b in itertools.pairwise(places)) > 0.08 * (high - low)
    assert places[0] == 0.0  # where there is room, a name is at its end


def test_one_step_is_the_only_tick() -> None:
    rows = [row for row in ROWS if row["step"] == 9]
    figure = own_figure("Which?", HEADLINE, "x", rows, [VIEW])
    assert figure is not None
    assert figure.axes[0].get_xticks().tolist() == [9]


def test_seeds_of_a_label_share_its_colour() -> None:
    alone = View("panel", "step", "", {"kind": "other", "layer": LAST})
    figure = compared_figure("Which?", HEADLINE, {"taco": [ROWS, ROWS], "mlm": [ROWS]}, [alone])
    assert figure is not None
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert len(colours) == 3
    assert colours[0] == colours[1] != colours[2]
    assert "taco 25, mlm 25" in figure.get_suptitle()


def test_baseline_is_dashed_and_nothing_is_no_figure() -> None:
    reference: list[Row] = [{**row, "measure": "chance", "value": 1.0} for row in ROWS]
    view = View("panel", "step", "kind", {"measure": "cosine", "layer": 2}, "", {"measure": "chance"})
    figure = own_figure("Which?", HEADLINE, "", [*ROWS, *reference], [view])
    assert figure is not None
    assert [line.is_dashed() for line in figure.axes[0].lines] == [True, True, False, False]
    assert own_figure("Which?", HEADLINE, "", [], [VIEW]) is None
    assert own_figure("Which?", HEADLINE, "", [{**ROWS[0], "value": float("nan")}], [VIEW]) is None


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    written = []
    for name in ("first", "second"):
        figure = own_figure("Which?", HEADLINE, "x", ROWS, [VIEW, VIEW])
        assert figure is not None
        written.append([path.read_bytes() for path in save_figure(figure, tmp_path / name / "figure")])
    assert written[0] == written[1]
    assert written[0][0].startswith(b"\x89PNG")
    assert b"<svg" in written[0][1]
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == ["figure.png", "figure.svg"]


@pytest.mark.parametrize("module", MEASURES.values(), ids=MEASURES.keys())
def test_views_name_columns_that_the_table_has(module: object) -> None:
    columns = set(module.COLUMNS)  # type: ignore[attr-defined]
    views = [*module.VIEWS, *module.COMPARED]  # type: ignore[attr-defined]
    for view in views:
        assert {view.x, *view.where, *(view.baseline or {})} | ({view.lines} - {""}) <= columns
    assert max(len(view.title) for view in views) <= 40  # or it leaves its panel
    assert all(view.lines == "" for view in module.COMPARED)  # type: ignore[attr-defined]
    assert set(module.HEADLINE.where) <= columns  # type: ignore[attr-defined]
