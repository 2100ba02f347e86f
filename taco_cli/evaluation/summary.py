"""What an evaluation found, for the terminal: cells with their spread, averages with their definition, and noise."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scipy import stats

from taco_cli.config.glue import GlueConfig
from taco_cli.evaluation.run import Evaluated
from taco_cli.evaluation.tasks import DETAIL, headline, table
from taco_cli.tracking.evaluations import Job, Scores, send_scores

if TYPE_CHECKING:
    from rich.table import Table

_CONFIDENCE = 0.95  # of the interval of a difference; one that holds 0 is noise


@dataclass(frozen=True)
class Cell:
    """The values of one task and metric at one checkpoint: one per fine-tuning seed."""

    arm: str
    run: str
    step: int
    task: str
    metric: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds, None for one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass
class Summary:
    """Cells, the average of each checkpoint, and sentences for below the table."""

    cells: list[Cell]
    averages: dict[tuple[str, int], float] = field(default_factory=dict)  # (run, step)
    sentences: list[str] = field(default_factory=list)

    def curves(self) -> dict[str, dict[int, dict[str, float]]]:
        """Return the means as run -> step -> ``glue/<task>/<metric>``."""
        curves: dict[str, dict[int, dict[str, float]]] = {}
        for cell in self.cells:
            curves.setdefault(cell.run, {}).setdefault(cell.step, {})[f"glue/{cell.task}/{cell.metric}"] = cell.mean
        return curves

    def metrics(self) -> dict[str, float]:
        """Return the means, as ``<run>/<step>/<task>/<metric>``."""
        return {f"{cell.run}/{cell.step}/{cell.task}/{cell.metric}": cell.mean for cell in self.cells}

    def table(self) -> Table:
        """Return the table for a terminal."""
        from rich.table import Table
        from rich.text import Text

        made = Table("task", "metric", "run", "step", *("median", "mean", "sd", "n"))
        for column in made.columns[3:]:
            column.justify = "right"
        shown = sorted(self.cells, key=lambda cell: (cell.task, cell.metric, cell.run, cell.step))
        for (_, _), group in itertools.groupby(shown, key=lambda cell: (cell.task, cell.metric)):
            for cell in group:
                spread = "" if cell.deviation is None else f"{cell.deviation:.2f}"
                numbers = (f"{statistics.median(cell.values):.2f}", f"{cell.mean:.2f}", spread, str(len(cell.values)))
                made.add_row(*map(Text, (cell.task, cell.metric, cell.run, f"{cell.step:,}", *numbers)))
            made.add_section()
        for (run, step), value in self.averages.items():
            made.add_row(*map(Text, ("average", "", run, f"{step:,}", "", f"{value:.2f}", "", "")))
        return made


def summarise(found: Sequence[Evaluated], config: GlueConfig) -> Summary:
    """Put the rows of an evaluation together."""
    cells = list(_cells(found))
    summary = Summary(cells)
    tasks = {cell.task for cell in cells}
    counted = [
        (task.name, name)
        for task in table(config.task).values()
        if task.in_average and task.name in tasks
        for name in headline(task)
    ]
    by_checkpoint: dict[tuple[str, int], dict[tuple[str, str], Cell]] = {}
    for cell in cells:
        by_checkpoint.setdefault((cell.run, cell.step), {})[cell.task, cell.metric] = cell
    if len(counted) > 1:
        for place, there in by_checkpoint.items():
            summary.averages[place] = statistics.fmean(there[name].mean for name in counted)
        summary.sentences.append(_definition(counted))
    summary.sentences += [*_remarks(found, config), *_noise(cells)]
    return summary


def track(found: Sequence[Evaluated], config: GlueConfig) -> None:
    """Send each run's means to W&B where `tracking=wandb`."""
    by_run: dict[tuple[Path, str], list[Evaluated]] = {}
    for one, arm in zip(found, _arms(found), strict=True):
        by_run.setdefault((one.checkpoint.results, arm), []).append(one)
    runs = []
    for (folder, arm), mine in by_run.items():
        first = mine[0].checkpoint
        name = arm if first.seed is None else f"{first.label} seed {first.seed}"
        (by_step,) = Summary(list(_cells(mine))).curves().values()
        runs.append(Scores(first.name, name, folder, by_step))
    send_scores(config.tracking, Job.glue, runs)


def _cells(found: Sequence[Evaluated]) -> Iterator[Cell]:
    several = len({one.checkpoint.seed for one in found}) > 1
    for one, arm in zip(found, _arms(found), strict=True):
        c = one.checkpoint
        run = f"{arm} seed {c.seed}" if several and c.seed is not None else arm
        values: dict[tuple[str, str], list[float]] = {}
        for row in one.rows:
            if DETAIL not in row["metric"]:
                values.setdefault((row["task"], row["metric"]), []).append(float(row["value"]))
        for (task, metric), points in values.items():
            yield Cell(arm, run, c.step, task, metric, tuple(points))


def _arms(found: Sequence[Evaluated]) -> list[str]:
    """Name the arm of each checkpoint by its label; where others have the same, by experiment or place as well."""
    checkpoints = [one.checkpoint for one in found]
    places = [c.path if c.seed is None else str(c.results) for c in checkpoints]
    for names in ([c.label for c in checkpoints], [f"{c.name}/{c.label}" for c in checkpoints]):
        experiments = {(name, c.name) for name, c in zip(names, checkpoints, strict=True)}
        runs = {(name, c.seed, place) for name, c, place in zip(names, checkpoints, places, strict=True)}
        if len(experiments) == len(set(names)) and len(runs) == len({run[:2] for run in runs}):
            return names
    return places


def _definition(counted: list[tuple[str, str]]) -> str:
    names = ", ".join(f"{task} {metric.replace('_', ' ')}" for task, metric in counted)
    apart = " (the two MNLI sets counted apart)" if ("mnli", "accuracy_matched") in counted else ""
    return f"average: plain mean of {len(counted)} numbers, each the mean over seeds: {names}{apart}"


def _remarks(found: Sequence[Evaluated], config: GlueConfig) -> Iterator[str]:
    rows = [row for one in found for row in one.rows]
    tuned = [row for row in rows if row["protocol"] != "frozen"]
    if tuned:
        protocol = config.protocol
        rates = sorted({row["lr"] for row in tuned}, key=float)
        epochs = sorted({row["epochs"] for row in tuned}, key=int)
        yield (
            f"protocol {protocol.name}: learning rate {', '.join(rates)}, {', '.join(epochs)} epochs, batch "
            f"{protocol.batch_size}, the last epoch is reported; pooling {protocol.pooling}, fresh head (dense, tanh, "
            "linear), since a masked-LM checkpoint has no trained pooler"
        )
    if protocol_limit := config.protocol.train_examples if tuned else None:
        yield (
            f"at most {protocol_limit:,} training examples per task, drawn by the seed: not comparable with published "
            "numbers"
        )
    if grids := sorted({row["lr_grid"] for row in tuned if row["lr_grid"]}):
        yield (
            f"learning rate chosen per seed among {', '.join(grids)} by the score on dev, on which it is also "
            "reported: optimistic"
        )
    flagged = sorted({f"{row['task']} seed {row['seed']}: {row['flag']}" for row in rows if row["flag"]})
    if flagged:
        yield f"{'; '.join(flagged)}: Matthews and correlations are 0 by definition there"


def _noise(cells: Sequence[Cell]) -> Iterator[str]:
    """Compare each arm with the first, at the last step that each has."""
    arms = list(dict.fromkeys(cell.arm for cell in cells))
    if len(arms) < 2:
        return
    base = "mlm" if "mlm" in arms else arms[0]
    for task, metric in dict.fromkeys((cell.task, cell.metric) for cell in cells):
        mine = {
            arm: _replicates([c for c in cells if (c.arm, c.task, c.metric) == (arm, task, metric)]) for arm in arms
        }
        for arm in arms:
            if arm != base and mine[arm] and mine[base]:
                yield _verdict(f"{task} {metric.replace('_', ' ')}", arm, base, mine[arm], mine[base])


def _replicates(cells: Sequence[Cell]) -> list[Cell]:
    """Return the last cell of each pre-training run."""
    return list({cell.run: cell for cell in sorted(cells, key=lambda cell: cell.step)}.values())


def _verdict(what: str, arm: str, base: str, mine: list[Cell], others: list[Cell]) -> str:
    """Compare means over pre-training runs, or over fine-tuning seeds where each arm has one run."""
    difference = statistics.fmean(cell.mean for cell in mine) - statistics.fmean(cell.mean for cell in others)
    text = f"{what}: {arm} - {base} = {difference:+.2f}"
    if (len(mine) > 1) != (len(others) > 1):
        single = base if len(mine) > 1 else arm
        return f"{text}; one pre-training run of {single}, so it cannot be told from noise"
    single_runs = len(mine) == 1
    left, right = (list(side[0].values) if single_runs else [cell.mean for cell in side] for side in (mine, others))
    if min(len(left), len(right)) < 2:
        return f"{text}; one value each, so it cannot be told from noise"
    low, high = welch_interval(left, right)
    verdict = "inside the noise" if low <= 0 <= high else "more than the noise"
    count = f"n = {len(left)} and {len(right)}"
    count += " fine-tuning seeds of one pre-training run each" if single_runs else ""
    return f"{text}, {verdict} (95 % interval {low:+.2f} to {high:+.2f}, {count})"


def welch_interval(mine: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a difference of means that holds it in 95 % of repetitions, after Welch.

    Two values of each side make it wide: their spread says little about the spread there is.
    """
    difference = statistics.fmean(mine) - statistics.fmean(others)
    squares = [statistics.variance(side) / len(side) for side in (mine, others)]
    if not any(squares):
        return difference, difference
    freedom = sum(squares) ** 2 / sum(s**2 / (len(side) - 1) for s, side in zip(squares, (mine, others), strict=True))
    half = math.sqrt(sum(squares)) * float(stats.t.ppf(0.5 + _CONFIDENCE / 2, freedom))
    return difference - half, difference + half
