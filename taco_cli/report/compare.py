"""Compares runs and writes the comparison: tables, figures and one page."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from taco_cli.config.compare import CompareConfig
from taco_cli.report import figures, page, tables, terminal
from taco_cli.report.glue import OTHERS
from taco_cli.report.results import Comparison, evaluate
from taco_cli.report.runs import paths_of, read_runs

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """What was found, what to print in the terminal, and where the files are."""

    comparison: Comparison = field(repr=False)
    table: RenderableType = field(repr=False)
    folder: Path
    page: Path


def compare(config: CompareConfig) -> Report:
    """Read the runs, compare them, and write the comparison's folder.

    Raises:
        ValueError: nothing to compare, runs that must not be compared, something asked for that the runs do
            not have, or an output folder that holds something else.
    """
    _check(config)
    paths = paths_of(config.runs)
    folder = Path(config.output) if config.output else _common(paths) / "comparison"
    refuse_foreign(folder)
    comparison = evaluate(read_runs(paths), config)
    write(comparison, folder)
    if config.wandb_view:
        _save_view(comparison, folder)
    return Report(comparison, terminal.render(comparison), folder, folder / "index.html")


def _save_view(comparison: Comparison, folder: Path) -> None:
    """Save the comparison at W&B, where its runs are.

    Raises:
        ValueError: they are not in one project, or W&B does not take the view; the page is written.
    """
    from taco_cli.tracking.wandb_view import save_view

    tracked = [run.manifest["config"]["tracking"] for run in comparison.runs if run.manifest.get("wandb_id")]
    places = {(tracking["entity"], tracking["project"]) for tracking in tracked}
    if len(places) != 1:
        found = ", ".join(sorted(f"{entity or 'your default entity'}/{project}" for entity, project in places))
        raise ValueError(
            f"wandb_view=true: a view is of one W&B project, and these runs are in {found or 'none (tracking=wandb)'}; "
            f"the page is written: {folder / 'index.html'}"
        )
    [(entity, project)] = places
    groups = sorted({str(run.manifest["name"]) for run in comparison.runs})
    metrics = [metric for metric in comparison.results if not metric.startswith(OTHERS)]  # W&B has no such names
    logger.info("W&B view: %s", save_view(entity, project, groups, metrics))


MARKER = "comparison.json"
FILES = (MARKER, "summary.csv", "curves.csv", "curves.png", "curves.svg", "index.html")


def write(comparison: Comparison, folder: Path) -> None:
    """Write all files of a comparison, the one that marks the folder as a comparison first."""
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / MARKER, tables.comparison_json(comparison, list(FILES)))
    _replace(folder / "summary.csv", tables.summary_csv(comparison))
    _replace(folder / "curves.csv", tables.curves_csv(comparison))
    for name, picture in figures.draw(comparison).items():
        _replace(folder / name, picture)
    _replace(folder / "index.html", page.render(comparison))


def refuse_foreign(folder: Path) -> None:
    """Refuse to write where there are files that no comparison wrote.

    Raises:
        ValueError: the folder has files and no marker of a comparison, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"output={folder} is a file; give a folder")
    if not folder.is_dir() or not any(folder.iterdir()) or _is_ours(folder / MARKER):
        return
    raise ValueError(
        f"output={folder} holds files that are no comparison; give an empty folder or one that does not exist"
    )


def _is_ours(marker: Path) -> bool:
    try:
        return str(json.loads(marker.read_text(encoding="utf-8"))["format"]).startswith("taco-compare")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _replace(file: Path, content: str | bytes) -> None:
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    part.replace(file)


def _check(config: CompareConfig) -> None:
    if not 0 < config.confidence < 1:
        raise ValueError(f"confidence={config.confidence}: must be between 0 and 1, as 0.95")
    if config.resamples < 100:
        raise ValueError(f"resamples={config.resamples}: must be at least 100")
    if config.points < 2:
        raise ValueError(f"points={config.points}: must be at least 2")


def _common(paths: list[Path]) -> Path:
    return Path(os.path.commonpath([path.absolute() for path in paths])) if len(paths) > 1 else paths[0]
