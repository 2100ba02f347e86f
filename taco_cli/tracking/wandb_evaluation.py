"""Scores of a run's checkpoints at W&B: one run beside the pre-training run, in its group, over pre-training steps."""

from __future__ import annotations

import hashlib
from pathlib import Path

from taco_cli.config.schema import TrackingConfig
from taco_cli.tracking.evaluations import Job, Scores
from taco_cli.tracking.manifest import read_manifest
from taco_cli.tracking.wandb_sink import _open


def log_evaluation(tracking: TrackingConfig, job: Job, scores: Scores) -> None:
    """Log scores with the step as x-axis; the same job of the same folder continues the same W&B run.

    Raises:
        ValueError: W&B refuses a setting.
    """
    directory = Path(tracking.wandb_dir).expanduser() if tracking.wandb_dir else scores.folder
    directory.mkdir(parents=True, exist_ok=True)
    key = hashlib.blake2b(f"{scores.group}/{scores.name}/{scores.folder}".encode(), digest_size=4).hexdigest()
    run = _open(
        {
            "project": tracking.project,
            "entity": tracking.entity,
            "dir": str(directory),
            "id": f"{job.suffix}-{key}",
            "resume": "allow",
            "reinit": "create_new",
            "group": scores.group,
            "name": f"{scores.name} {job.suffix}",
            "job_type": job.job_type,
            "tags": list(tracking.tags),
            "config": {"run_folder": str(scores.folder), **_arm(scores.folder)},
        }
    )
    run.define_metric("*", step_metric="step")
    for step in sorted(scores.by_step):
        run.log({"step": step, **scores.by_step[step]})
    run.finish()


def _arm(folder: Path) -> dict[str, str]:
    """Return what groups this run with those of its arm, as pre-training has it; nothing for a model without a run."""
    manifest = read_manifest(folder / "manifest.json")
    if manifest is None:
        return {}
    return {"label": manifest["label"], "group_key": manifest.get("config_hash_without_seed", "")}
