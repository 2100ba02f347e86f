"""What is written when a run saves: the checkpoint, its export, and the manifest that says how far the run is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from taco_cli.config.schema import RunConfig
from taco_cli.tracking import Manifest, RunFolder, write_manifest
from taco_cli.training.checkpoint import (
    checkpoint_path,
    milestones,
    prune,
    record_milestone,
    save,
)
from taco_cli.training.module import Pretraining

Export = Callable[[Path, Manifest], Any]


class Saver:
    """Writes checkpoints of one run and prunes old ones; the export is what `export(folder, manifest)` writes."""

    def __init__(self, config: RunConfig, folder: RunFolder, manifest: Manifest, export: Export) -> None:
        self._keep, self._folder, self._manifest, self._export = config.keep_checkpoints, folder, manifest, export

    def save(self, module: Pretraining, metrics: dict[str, float], milestone: bool) -> None:
        """Write everything for the present step, on the first rank.

        Raises:
            OSError: the disk is full; what was there before is untouched.
            ValueError: the weights are not finite, so that continuing from them would be useless.
        """
        if module.global_rank != 0:
            return
        step = module.progress.step
        _refuse_nan(module, step)
        if milestone:
            record_milestone(self._folder.checkpoints, step)
        path = checkpoint_path(self._folder.checkpoints, step)
        save(path, module.run_state() | {"metrics": {name: float(value) for name, value in metrics.items()}})
        progress = module.progress
        reached = {"step": step, "tokens": progress.tokens, "seconds": round(progress.seconds, 3), "metrics": metrics}
        self._manifest.update(reached)
        write_manifest(self._folder.manifest, self._manifest)
        self._export(self._folder.exports / path.stem, self._manifest)
        kept = milestones(self._folder.checkpoints)
        prune(self._folder.checkpoints, self._keep, kept, exports=self._folder.exports)

    def complete(self, step: int) -> None:
        """Write the export of the checkpoint that was loaded, where a kill came between the two."""
        export = self._folder.exports / checkpoint_path(self._folder.checkpoints, step).stem
        if not export.exists():
            self._export(export, self._manifest)


def _refuse_nan(module: Pretraining, step: int) -> None:
    if not all(bool(torch.isfinite(parameter).all()) for parameter in module.encoder.parameters()):
        raise ValueError(
            f"weights are not finite at step {step}: nothing is saved over the earlier checkpoints; a lower "
            "optimizer.lr, more optimizer.warmup or trainer.precision=float32 usually helps"
        )
