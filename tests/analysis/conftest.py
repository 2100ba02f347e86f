"""A tiny finished run, what its analyses work on, and batches made in code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from taco_cli.analysis.material import Material, gather_material
from taco_cli.analysis.subjects import find_subjects
from taco_cli.config.analyze import AnalyzeConfig
from taco_cli.encoder import Encoder, build_encoder
from taco_cli.training import train
from tests.conftest import tiny_config

TrainTiny = Callable[..., Path]


@pytest.fixture(scope="session")
def experiment(corpus_file: Path, cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two finished runs, ``taco/seed_1`` and ``mlm/seed_1``, of two layers and 12 steps."""
    root = tmp_path_factory.mktemp("outputs")
    for label, weight in (("taco", 1.0), ("mlm", 0.0)):
        config = tiny_config(corpus_file, cache_dir, root)
        config.label, config.objective.name, config.objective.tc.weight = label, label, weight
        config.budget, config.encoder.layers, config.checkpoint_every = "12steps", 2, 6
        train(config)
    return root / "tiny"


@pytest.fixture(scope="session")
def run_folder(experiment: Path) -> Path:
    return experiment / "taco" / "seed_1"


@pytest.fixture(scope="session")
def material(run_folder: Path) -> Material:
    settings = AnalyzeConfig(run=str(run_folder), sequences=24, batch_size=12, probe_sequences=64, device="cpu")
    return gather_material(find_subjects(settings)[0], settings)


@pytest.fixture(scope="session")
def untrained(material: Material) -> Encoder:
    config = material.config
    return build_encoder(config.encoder, material.special, config.sequence_length, seed=1).eval()


def one_value(rows: list[dict[str, object]], **where: object) -> float:
    """Return the value of the only row that fits."""
    found = [row["value"] for row in rows if all(row[column] == wanted for column, wanted in where.items())]
    assert len(found) == 1, (where, len(found))
    assert isinstance(found[0], int | float)
    return float(found[0])


def random_units(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)
