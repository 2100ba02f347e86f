"""A recorded loss curve: a change that claims to alter nothing leaves it as it is.

After a change that is meant to alter the numbers: ``python -m tests.training.test_golden`` writes it anew.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from taco_cli.config.schema import RunConfig
from taco_cli.tracking import RunFolder
from taco_cli.training import train
from tests.conftest import MakeConfig, tiny_config, write_corpus

GOLDEN = Path(__file__).parent / "golden" / "taco_30_steps.txt"


def losses(config: RunConfig) -> dict[tuple[int, str], float]:
    train(config)
    rows = [line.split(",") for line in RunFolder.of(config).metrics_csv.read_text().splitlines()[1:]]
    return {
        (int(step), metric): float(value)
        for step, _, _, metric, value in rows
        if metric.startswith(("train/", "val/", "optimizer/"))
    }


def golden() -> dict[tuple[int, str], float]:
    rows = [line.split() for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    return {(int(step), metric): float(value) for step, metric, value in rows}


def test_losses_are_those_recorded(make_config: MakeConfig) -> None:
    """Another processor rounds differently, and 30 steps enlarge that: hence a tolerance of 1e-4."""
    measured = losses(make_config(budget="30steps", tracking__log_every=1))
    recorded = golden()
    assert measured.keys() == recorded.keys()
    assert measured == pytest.approx(recorded, rel=1e-4, abs=1e-5)


def record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = tiny_config(write_corpus(Path(folder) / "made.jsonl"), Path(folder) / "cache", Path(folder))
        config.budget, config.tracking.log_every = "30steps", 1
        lines = [f"{step} {metric} {value:.7g}" for (step, metric), value in losses(config).items()]
    GOLDEN.write_text(
        "# step metric value; written by python -m tests.training.test_golden\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    record()
