"""What is analysed: the checkpoints of runs, or Hugging Face models, each with the configuration it was made with."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taco_cli.config.analyze import AnalyzeConfig
from taco_cli.config.compose import restored
from taco_cli.config.schema import Architecture, EncoderConfig, RunConfig
from taco_cli.config.subject import as_list
from taco_cli.tracking import Manifest, RunFolder, exports_of, named_run_folders, read_manifest, slug


@dataclass(frozen=True)
class Subject:
    """One run, or one model.

    Attributes:
        name: label and seed, or the model's name.
        label: the arm: figures give its seeds one colour.
        folder: of the run; of a model, the same as `results`.
        results: folder of tables and figures.
        config: of the run; for a model, what the analysis was told.
        checkpoints: pre-training step and the encoder's configuration, by step.
        fingerprints: of corpus and tokenizer, as the manifest has them; empty for a model.
    """

    name: str
    label: str
    folder: Path
    results: Path
    config: RunConfig
    checkpoints: list[tuple[int, EncoderConfig]]
    fingerprints: dict[str, str] = field(default_factory=dict)


def find_subjects(config: AnalyzeConfig) -> list[Subject]:
    """Return what `run` or `model` names, each with the checkpoints that `steps` names.

    Raises:
        ValueError: a folder that is no run, a run without exports, a step that is not there.
    """
    if config.model:
        return [_of_model(str(model), config) for model in as_list(config.model)]
    folders = named_run_folders(map(str, as_list(config.run)))
    return [_of_run(folder, config.steps) for folder in folders]


def common_folder(config: AnalyzeConfig, subjects: list[Subject]) -> Path:
    """Return where figures about several subjects go."""
    if config.model:
        return Path(config.output).expanduser() if config.output else Path("outputs", "analysis")
    paths = [Path(str(path)).expanduser() for path in as_list(config.run)]
    root = paths[0] if len(paths) == 1 else Path(os.path.commonpath([subject.results for subject in subjects]))
    return root / "analysis"


def _of_run(folder: Path, steps: Any) -> Subject:
    run = RunFolder(folder)
    manifest = read_manifest(run.manifest)
    assert manifest is not None
    exports = exports_of(run, manifest)
    config = restored(manifest["config"])
    encoders = {0: config.encoder} | {step: _loaded(str(path)) for step, path in exports.items()}
    return Subject(
        name=f"{manifest['label']} seed {manifest['seed']}",
        label=str(manifest["label"]),
        folder=folder,
        results=folder / "analysis",
        config=config,
        checkpoints=[(step, encoders[step]) for step in _choose(folder, config, sorted(exports), steps)],
        fingerprints=_fingerprints(manifest),
    )


def _choose(folder: Path, config: RunConfig, exported: list[int], steps: Any) -> list[int]:
    if steps == "last":
        return exported[-1:]
    if steps == "all":
        return ([0] if _rebuilt_from_seed(config.encoder) else []) + exported
    asked = [int(step) for step in as_list(steps)]
    missing = [step for step in asked if step not in (0, *exported)]
    if missing:
        raise ValueError(
            f"steps={missing}: {folder} has no such export; there are 0 (the initial encoder), "
            + ", ".join(map(str, exported))
        )
    return asked


def _rebuilt_from_seed(encoder: EncoderConfig) -> bool:
    """Whether the encoder at step 0 needs nothing but the configuration and what is still there."""
    source = encoder.word_embeddings_from
    return encoder.architecture is not Architecture.hf and (source is None or Path(source).expanduser().is_dir())


def _loaded(path: str) -> EncoderConfig:
    return EncoderConfig(architecture=Architecture.hf, path=path)


def _fingerprints(manifest: Manifest) -> dict[str, str]:
    facts = {what: (manifest.get(what) or {}).get("fingerprint") for what in ("corpus", "tokenizer")}
    return {what: value for what, value in facts.items() if value}


def _of_model(model: str, config: AnalyzeConfig) -> Subject:
    path = Path(model).expanduser()
    is_folder = path.is_dir()
    label = path.resolve().name if is_folder else model
    step = re.fullmatch(r"step-(\d+)", label)
    several = len(as_list(config.model)) > 1
    root = Path(config.output).expanduser() if config.output else Path("outputs", "analysis")
    results = root if config.output and not several else root / slug(label)
    settings = RunConfig(
        name="analysis",
        sequence_length=config.sequence_length,
        objective=config.objective,
        masking=config.masking,
        corpus=config.corpus,
        tokenizer=config.tokenizer,
        encoder=_loaded(str(path) if is_folder else model),
    )
    settings.tokenizer.path = settings.tokenizer.path or settings.encoder.path
    return Subject(
        name=label,
        label=label,
        folder=results,
        results=results,
        config=settings,
        checkpoints=[(int(step[1]) if step else 0, settings.encoder)],
    )
