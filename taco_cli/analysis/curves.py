"""What figures draw over pre-training steps, and each measure's headline, as named curves for W&B."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taco_cli.analysis.figures import select
from taco_cli.analysis.run import MEASURES, Analysis
from taco_cli.analysis.tables import Row
from taco_cli.config.analyze import AnalyzeConfig, Measure
from taco_cli.tracking.evaluations import Job, Scores, send_scores


def track(analyses: Sequence[Analysis], config: AnalyzeConfig) -> None:
    """Send what figures draw over steps to W&B where `tracking=wandb`; by layer and the like, the tables have it."""
    runs = [Scores(a.subject.config.name, a.subject.name, a.subject.folder, curves(a.tables)) for a in analyses]
    send_scores(config.tracking, Job.analysis, runs)


def curves(tables: dict[Measure, list[Row]]) -> dict[int, dict[str, float]]:
    """Return step -> ``analysis/<measure>/<cells of the row>`` -> value, e.g. ``analysis/similarity/layer_4/h/gap``."""
    found: dict[int, dict[str, float]] = {}
    for measure, rows in tables.items():
        module = MEASURES[measure]
        wanted = [view.where for view in (*module.VIEWS, *module.COMPARED) if view.x == "step"]
        headline = {column: value for column, value in module.HEADLINE.where.items() if column != "step"}
        for row in (row for where in (*wanted, headline) for row in select(rows, where)):
            value = float(row["value"])
            if math.isfinite(value):
                found.setdefault(int(row["step"]), {})[_name(measure, row, module.COLUMNS)] = value
    return found


def _name(measure: Measure, row: Row, columns: Sequence[str]) -> str:
    """Join what a row is of; numbers say of what they are."""
    cells = ((column, row.get(column, "")) for column in columns if column not in ("step", "value"))
    words = [cell if isinstance(cell, str) else f"{column}_{cell}" for column, cell in cells if cell != ""]
    return "/".join(["analysis", measure, *words])
