"""The comparison as a saved view of a W&B workspace: arms with their seeds as replicates, over the same three axes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import wandb

from taco_cli.tracking.wandb_sink import why_not_online

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

AXES = {"step": "steps", "tokens": "tokens", "seconds": "training seconds"}


def build_view(entity: str, project: str, groups: Sequence[str], metrics: Sequence[str]) -> Workspace:
    """Build the view without sending it.

    Args:
        entity: W&B team or user.
        project: W&B project.
        groups: the runs' `name`, which are their W&B groups.
        metrics: one line plot each, for each axis; those of fine-tuning have steps alone.

    Raises:
        ValueError: the package `wandb-workspaces` is not installed.
    """
    ws, plots = _library()
    sections = []
    for axis, words in AXES.items():
        shown = [name for name in metrics if axis == "step" or not name.startswith("glue")]
        panels = [
            plots.LinePlot(title=name, x=plots.Metric(axis), y=[plots.Metric(name)], groupby_rangefunc="stddev")
            for name in shown
        ]
        sections.append(ws.Section(name=f"against {words}", panels=panels, is_open=axis == "step"))
    runs = ws.RunsetSettings(
        filters=ws.And(ws.Metric("Group").isin(list(groups))),
        groupby=[ws.Config("label"), ws.Config("group_key")],  # the arm; and all of the configuration but the seed
    )
    view: Workspace = ws.Workspace(
        entity=entity, project=project, name=f"taco-compare {' '.join(groups)}", sections=sections, runset_settings=runs
    )
    return view


def save_view(entity: str | None, project: str, groups: Sequence[str], metrics: Sequence[str]) -> str:
    """Send the view to W&B and return its address.

    Raises:
        ValueError: the package is not installed, there is no key, or no server answers or takes the view.
    """
    _library()
    if reason := why_not_online():
        raise ValueError(f"wandb_view=true: W&B cannot be reached, because {reason}")
    try:
        view: Any = build_view(entity or str(wandb.Api().default_entity), project, groups, metrics)
        return str(view.save().url)
    except Exception as error:  # the library lets whatever its transport raises pass
        raise ValueError(f"wandb_view=true: W&B did not take the view ({type(error).__name__}: {error})") from error


def _library() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the library's own use of pydantic
            import wandb_workspaces.reports.v2 as plots
            import wandb_workspaces.workspaces as ws
    except ImportError as error:
        raise ValueError(
            "wandb_view=true needs the package wandb-workspaces: pip install 'taco-cli[wandb-view]'"
        ) from error
    return ws, plots
