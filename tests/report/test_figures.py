from __future__ import annotations

import re
from importlib import resources
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from taco_cli.config.compare import Axis, CompareConfig
from taco_cli.report import figures
from taco_cli.report.markup import COLOURS
from taco_cli.report.results import Comparison, evaluate
from taco_cli.report.runs import read_runs


def comparison(root: Path, **config: object) -> Comparison:
    return evaluate(read_runs([root]), CompareConfig(runs=str(root), **config))  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", [Axis.steps, Axis.tokens, Axis.seconds])
def test_every_arm_is_drawn_and_named_in_its_colour(experiment: Path, axis: Axis) -> None:
    found = comparison(experiment, axis=axis)
    (axes,) = figures.curves(found).axes
    names = [arm.name for arm in found.arms]
    assert {text.get_text(): text.get_color() for text in axes.texts} == {
        name: line.get_color() for name, line in zip(names, axes.get_lines(), strict=True)
    }
    assert len(axes.collections) == len(names)
    assert axes.get_title(loc="left") == "val/mlm"


def test_names_do_not_lie_on_each_other(experiment: Path) -> None:
    (axes,) = figures.curves(comparison(experiment)).axes
    heights = sorted(text.xy[1] for text in axes.texts)  # type: ignore[attr-defined]
    low, high = axes.get_ylim()
    assert min(b - a for a, b in pairwise(heights)) >= 0.044 * (high - low)


def test_files_are_what_their_names_say(experiment: Path) -> None:
    files = figures.draw(comparison(experiment))
    assert files["curves.png"].startswith(b"\x89PNG")
    assert ElementTree.fromstring(files["curves.svg"]).tag.endswith("svg")


def test_colours_are_those_of_the_page() -> None:
    style = (resources.files("taco_cli.report") / "template" / "page.css").read_text()
    light = re.findall(r"--arm-\d: (#\w{6})", style)[: len(figures.COLOURS)]
    assert tuple(light) == figures.COLOURS
    assert len(figures.COLOURS) == COLOURS


def test_same_runs_same_bytes(experiment: Path) -> None:
    assert figures.draw(comparison(experiment)) == figures.draw(comparison(experiment))
