"""Scores of a run's checkpoints at W&B: one run beside the pre-training run, in its group, over pre-training steps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from taco_cli.config.schema import TrackingConfig
from taco_cli.tracking.manifest import read_manifest
from taco_cli.tracking.wandb_sink import _open


def log_evaluation(
    tracking: TrackingConfig, group: str, name: str, folder: Path, scores: Mapping[int, Mapping[str, float]]
) -> None:
    """Log scores with the step as x-axis; the same folder continues the same W&B run.

    Args:
        tracking: project, entity and tags.
        group: the experiment, as in pre-training.
        name: of the run, `" glue"` is appended.
        folder: of the results; W&B writes below it unless ``tracking.wandb_dir`` is set.
        scores: pre-training step -> metric, e.g. ``glue/cola/matthews``, -> mean over fine-tuning seeds.

    Raises:
        ValueError: W&B refuses a setting.
    """
    directory = Path(tracking.wandb_dir).expanduser() if tracking.wandb_dir else folder
    directory.mkdir(parents=True, exist_ok=True)
    key = hashlib.blake2b(f"{group}/{name}/{folder}".encode(), digest_size=4).hexdigest()
    run = _open(
        {
            "project": tracking.project,
            "entity": tracking.entity,
            "dir": str(directory),
            "id": f"glue-{key}",
            "resume": "allow",
            "reinit": "create_new",
            "group": group,
            "name": f"{name} glue",
            "job_type": "evaluate",
            "tags": list(tracking.tags),
            "config": {"run_folder": str(folder), **_arm(folder)},
        }
    )
    run.define_metric("*", step_metric="step")
    for step in sorted(scores):
        run.log({"step": step, **scores[step]})
    run.finish()


def _arm(folder: Path) -> dict[str, str]:
    """Return what groups this run with those of its arm, as pre-training has it; nothing for a model without a run."""
    manifest = read_manifest(folder / "manifest.json")
    if manifest is None:
        return {}
    return {"label": manifest["label"], "group_key": manifest.get("config_hash_without_seed", "")}
