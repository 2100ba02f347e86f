"""Training through everything that `taco-train` has: Lightning, callbacks, logging, checkpoints."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

from benchmarks.case import Case, Results
from benchmarks.material import run_config
from benchmarks.modules import graphs
from benchmarks.observe import after
from taco_cli.tracking import RunFolder
from taco_cli.training import train
from taco_cli.training.module import Pretraining

WINDOW = 10  # steps between two rows of metrics.csv


def measure(case: Case, folder: Path) -> Results:
    """Return ``seconds`` of a step as means over ten, and ``recompilations`` after the warm-up."""
    config = run_config(folder, case, case.objectives[0], budget=case.warm_up + WINDOW * case.rounds)
    run = RunFolder.of(config)
    shutil.rmtree(run.path, ignore_errors=True)
    compiled: list[int] = []

    def count(module: Any) -> None:
        if module.progress.step == case.warm_up:
            compiled.append(graphs())

    with after(Pretraining, "training_step", count):
        train(config)
    rows = csv.DictReader(run.metrics_csv.read_text().splitlines())
    speeds = [
        float(row["value"])
        for row in rows
        if row["metric"] == "throughput/tokens_per_second" and int(row["step"]) > case.warm_up
    ]
    return {"seconds": [case.tokens / speed for speed in speeds], "recompilations": [graphs() - compiled[0]]}
