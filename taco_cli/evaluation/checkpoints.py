"""The checkpoints that are evaluated: exports of runs, or Hugging Face models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taco_cli.config.glue import GlueConfig
from taco_cli.config.subject import as_list
from taco_cli.encoder import fingerprint
from taco_cli.tracking import RunFolder, exports_of, named_run_folders, read_manifest, slug


@dataclass(frozen=True)
class Checkpoint:
    """One model to evaluate.

    Attributes:
        path: Hugging Face folder or hub name.
        step: of pre-training; 0 where there is none.
        results: folder of its `glue.csv`.
        label: the arm, or the model's name.
        seed: of pre-training; None for a model without a run.
    """

    path: str
    step: int
    results: Path
    label: str
    seed: int | None = None
    name: str = "glue"

    @property
    def place(self) -> str:
        """The path as `glue.csv` has it: below the run folder, or as given."""
        path = Path(self.path)
        return str(path.relative_to(self.results)) if path.is_relative_to(self.results) else self.path

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits over the files of weights, configuration and tokenizer."""
        folder = Path(self.path).expanduser()
        if not folder.is_dir():
            return _hub_commit(self.path)
        return fingerprint(folder)


def find_checkpoints(config: GlueConfig) -> list[Checkpoint]:
    """Return the checkpoints that `run`, `steps` and `model` name, run by run.

    Raises:
        ValueError: a folder that is no run, a run without exports, a step that is not there.
    """
    if config.model:
        return [_of_model(str(model), config) for model in as_list(config.model)]
    runs = named_run_folders(map(str, as_list(config.run)))
    return [found for folder in runs for found in _of_run(folder, config.steps)]


def _of_run(folder: Path, steps: Any) -> list[Checkpoint]:
    run = RunFolder(folder)
    manifest = read_manifest(run.manifest)
    assert manifest is not None
    exports = exports_of(run, manifest)
    return [
        Checkpoint(str(exports[s]), s, folder, str(manifest["label"]), int(manifest["seed"]), str(manifest["name"]))
        for s in _choose(folder, sorted(exports), steps)
    ]


def _choose(folder: Path, there: list[int], steps: Any) -> list[int]:
    if steps == "all":
        return there
    if steps == "last":
        return there[-1:]
    asked = [int(step) for step in as_list(steps)]
    missing = [step for step in asked if step not in there]
    if missing:
        raise ValueError(f"steps={missing}: {folder} has no such export; there are {', '.join(map(str, there))}")
    return asked


def _of_model(model: str, config: GlueConfig) -> Checkpoint:
    path = Path(model).expanduser()
    label = path.resolve().name if path.is_dir() else model
    results = Path(config.output).expanduser() if config.output else Path("outputs", "glue", slug(label))
    step = re.fullmatch(r"step-(\d+)", label)
    return Checkpoint(model, int(step[1]) if step else 0, results, label)


def _hub_commit(name: str) -> str:
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ValueError(f"model={name}: no folder of that name, and nothing from the hub ({error})") from error
    return str(getattr(config, "_commit_hash", None) or "unknown")[:16]
