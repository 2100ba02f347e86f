"""Makes run folders with synthetic learning curves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HEADER = "step,tokens,seconds,metric,value"
ARMS = ("mlm", "taco", "taco_concentrated", "taco_unmasked", "mlm_tp")
SPEED = {"mlm": 1.0, "taco": 2.2, "taco_concentrated": 0.75, "taco_unmasked": 1.7, "mlm_tp": 1.15}
FLOOR = {"mlm": 0.0, "taco": -0.12, "taco_concentrated": 0.2, "taco_unmasked": -0.07, "mlm_tp": 0.06}


def config(label: str = "mlm", seed: int = 1, **changes: Any) -> dict[str, Any]:
    """A resolved configuration, with dotted keys changed (`__` for a dot)."""
    made: dict[str, Any] = {
        "name": "ablations",
        "label": label,
        "seed": seed,
        "budget": "3000steps",
        "sequence_length": 128,
        "batch_size": 32,
        "output_root": "outputs",
        "objective": {
            "name": label,
            "mlm": {"weight": 1.0},
            "tc": {"weight": 1.0 if "taco" in label else 0.0},
        },
        "masking": {"rate": 0.15},
        "encoder": {"architecture": "modernbert", "layers": 4, "hidden_size": 256},
        "optimizer": {"lr": 1e-3},
        "trainer": {"precision": "auto"},
        "tracking": {"kind": "csv"},
    }
    for key, value in changes.items():
        *sections, last = key.split("__")
        node = made
        for section in sections:
            node = node[section]
        node[last] = value
    return made


def make_run(
    root: Path,
    label: str = "mlm",
    seed: int = 1,
    curves: Mapping[str, Callable[[int], float]] | None = None,
    steps: range = range(100, 1001, 100),
    status: str = "finished",
    tokens_per_step: int = 4096,
    seconds_per_step: float = 0.5,
    manifest: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Path:
    """Write one run folder; `curves` maps a metric to its value at a step."""
    folder = root / label / f"seed_{seed}"
    folder.mkdir(parents=True)
    curves = {"val/mlm": lambda step: 10 - step / 200} if curves is None else curves
    rows = [
        f"{step},{step * tokens_per_step},{step * seconds_per_step},{metric},{value(step)}"
        for step in steps
        for metric, value in curves.items()
    ]
    (folder / "metrics.csv").write_text("\n".join([HEADER, *rows, ""]))
    facts: dict[str, Any] = {
        "status": status,
        "label": label,
        "name": "ablations",
        "seed": seed,
        "config": config(label, seed, **changes),
        "config_hash": "0" * 12,
        "versions": {"python": "3.11.2", "torch": "2.13.0", "taco-cli": "0.1.0"},
        "git_commit": "4f0c2d1",
        "corpus": {"name": "docstrings", "documents": 41210, "tokens": 12_345_678, "fingerprint": "c0ffee"},
        "tokenizer": {"vocab_size": 8192, "fingerprint": "beef"},
        "machine": {"processor": "x86", "cores": 8, "devices": "1 cpu"},
        "step": steps[-1] if len(steps) else 0,
        "tokens": steps[-1] * tokens_per_step if len(steps) else 0,
        "seconds": steps[-1] * seconds_per_step if len(steps) else 0,
        "command": f"taco-train objective={label} seed={seed}",
        "error": None,
    }
    (folder / "manifest.json").write_text(json.dumps({**facts, **(manifest or {})}))
    return folder


def realistic(root: Path, arms: tuple[str, ...] = ARMS, seeds: int = 3, steps: int = 3000, every: int = 50) -> Path:
    """Five arms whose curves look like those of real pre-training, with GLUE scores and an analysis."""
    for label in arms:
        for seed in range(1, seeds + 1):
            noise = np.random.default_rng([seed, len(label)])
            shift = 0.03 * noise.standard_normal()
            loss = _loss_curve(label, shift, noise)
            folder = make_run(
                root,
                label,
                seed,
                {
                    "val/mlm": loss,
                    "val/mlm_accuracy": lambda step, loss=loss: 0.62 * math.exp(-0.17 * loss(step)) + 0.02,
                    "val/tc": lambda step, label=label: 3.9 - (3.2 if "taco" in label else 0.6) * _part(step, 700),
                    "val/similarity_intra": lambda step, label=label: (
                        0.9 - (0.3 if "taco" in label else 0.6) * _part(step, 900)
                    ),
                    "val/similarity_inter": lambda step, label=label: (
                        0.8 - (0.7 if "taco" in label else 0.45) * _part(step, 900)
                    ),
                    "train/loss": lambda step, loss=loss, noise=noise: loss(step) + 0.12 * noise.standard_normal(),
                    "throughput/tokens_per_second": lambda step, label=label: 13500 / (1.25 if "taco" in label else 1),
                },
                range(every, steps + 1, every),
                seconds_per_step=0.31 * (1.25 if "taco" in label else 1.0),
                manifest={"flops_per_token": 5_000_000},
            )
            _write_glue(folder, loss, steps, noise)
            _write_analysis(folder, label, noise)
    return root


def _part(step: int, scale: float) -> float:
    return 1 - math.exp(-step / scale)


def _loss_curve(label: str, shift: float, noise: np.random.Generator) -> Callable[[int], float]:
    jitter: dict[int, float] = {}

    def loss(step: int) -> float:
        if step not in jitter:
            jitter[step] = 0.02 * noise.standard_normal()
        t = step * SPEED.get(label, 1.0)
        return 4.2 + FLOOR.get(label, 0.0) + 2.7 / (1 + (t / 900) ** 1.4) + 2 * math.exp(-t / 60) + shift + jitter[step]

    return loss


def _write_glue(folder: Path, loss: Callable[[int], float], steps: int, noise: np.random.Generator) -> None:
    tasks = {"CoLA": ("matthews", 28), "SST-2": ("accuracy", 86), "MRPC": ("f1", 83), "RTE": ("accuracy", 57)}
    rows = ["task,step,seed,metric,value"]
    for step in (steps // 3, 2 * steps // 3, steps):
        for task, (metric, score) in tasks.items():
            for seed in (1, 2):
                value = score + 6 * (4.8 - loss(step)) + noise.standard_normal()
                rows.append(f"{task},{step},{seed},{metric},{value:.2f}")
    (folder / "glue.csv").write_text("\n".join([*rows, ""]))


def _write_analysis(folder: Path, label: str, noise: np.random.Generator) -> None:
    (folder / "analysis").mkdir()
    rows = ["layer,positions,metric,value"]
    for layer in range(5):
        for positions in ("masked", "unmasked"):
            value = 0.6 + 0.05 * layer - 0.03 * (positions == "masked") + 0.01 * noise.standard_normal()
            rows.append(f"{layer},{positions},part_of_speech,{value:.4f}")
    (folder / "analysis" / "probes.csv").write_text("\n".join([*rows, ""]))


@pytest.fixture(name="make_run")
def make_run_fixture() -> Callable[..., Path]:
    return make_run


@pytest.fixture(name="realistic", scope="session")
def realistic_fixture() -> Callable[..., Path]:
    return realistic


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Five arms of three seeds."""
    return realistic(tmp_path / "ablations", steps=1500)
