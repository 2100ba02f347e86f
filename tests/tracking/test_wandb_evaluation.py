"""Against the real client, offline, read back with its own inspection command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import wandb

from taco_cli.config.schema import TrackingConfig, TrackingKind
from taco_cli.tracking.evaluations import Job, Scores
from taco_cli.tracking.wandb_evaluation import log_evaluation


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path / name))
    yield
    wandb.teardown()


@pytest.mark.parametrize(
    ("job", "suffix", "job_type"), [(Job.glue, "glue", "evaluate"), (Job.analysis, "analysis", "analyze")]
)
def test_scores_over_pre_training_steps(tmp_path: Path, job: Job, suffix: str, job_type: str) -> None:
    tracking = TrackingConfig(kind=TrackingKind.wandb, tags=["x"])
    (tmp_path / "run").mkdir()
    manifest = {"status": "finished", "config": {}, "label": "taco", "config_hash_without_seed": "c0ffee"}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    scores = {200: {"glue/cola/matthews": 20.0}, 100: {"glue/cola/matthews": 10.0}}
    log_evaluation(tracking, job, Scores("ablations", "taco seed 1", tmp_path / "run", scores))
    (file,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    records = [json.loads(line) for line in printed.splitlines() if line]
    (run,) = (record["run"] for record in records if record["type"] == "run")
    assert (run["run_group"], run["display_name"]) == ("ablations", f"taco seed 1 {suffix}")
    assert run["job_type"] == job_type
    assert run["run_id"].startswith(f"{suffix}-")  # a run of its own for each job
    assert run["config"]["update"].items() >= {"label": "taco", "group_key": "c0ffee"}.items()  # grouped with its arm
    printed = subprocess.run([*command, "--summary"], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed)["summary"].items() >= {"glue/cola/matthews": 20.0, "step": 200}.items()
