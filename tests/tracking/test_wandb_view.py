"""The saved view, up to the network."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from taco_cli.tracking import wandb_view
from taco_cli.tracking.wandb_view import build_view, save_view

METRICS = ["val/mlm", "glue/cola/matthews"]


def test_arms_are_groups_and_metrics_run_along_three_axes() -> None:
    view: Any = build_view("me", "taco", ["ablations", "more"], METRICS)
    assert (view.entity, view.project, view.name) == ("me", "taco", "taco-compare ablations more")
    plots = [(panel.x.name, panel.y[0].name) for section in view.sections for panel in section.panels]
    assert plots == [
        ("step", "val/mlm"),
        ("step", "glue/cola/matthews"),
        ("tokens", "val/mlm"),
        ("seconds", "val/mlm"),
    ]
    [runs] = view._to_model().spec.section.run_sets  # what would be sent
    assert "'section': 'run', 'name': 'group'" in str(runs.filters)
    assert "['ablations', 'more']" in str(runs.filters)
    assert [key.name for key in runs.grouping] == ["label.value", "group_key.value"]


def test_address_of_what_was_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def save(view: Any) -> Any:
        sent.append(view)
        return SimpleNamespace(url="https://wandb.example/view")

    monkeypatch.setattr(wandb_view, "why_not_online", lambda: None)
    monkeypatch.setattr("wandb_workspaces.workspaces.Workspace.save", save)
    assert save_view("me", "taco", ["ablations"], METRICS) == "https://wandb.example/view"
    assert sent[0].project == "taco"


def test_without_a_server_or_with_one_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_view, "why_not_online", lambda: "there is no key")
    with pytest.raises(ValueError, match=r"wandb_view=true: W&B cannot be reached, because there is no key"):
        save_view("me", "taco", ["ablations"], METRICS)

    def refuse(view: Any) -> None:
        raise RuntimeError("403")

    monkeypatch.setattr(wandb_view, "why_not_online", lambda: None)
    monkeypatch.setattr("wandb_workspaces.workspaces.Workspace.save", refuse)
    with pytest.raises(ValueError, match=r"did not take the view \(RuntimeError: 403\)"):
        save_view("me", "taco", ["ablations"], METRICS)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces.workspaces", None)
    with pytest.raises(ValueError, match=r"taco-cli\[wandb-view\]"):
        build_view("me", "taco", ["ablations"], METRICS)
