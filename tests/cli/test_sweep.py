"""Sweeps: one folder per job, failures apart, the same bits as a job alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from taco_cli.training.checkpoint import list_checkpoints, load
from tests.cli.conftest import Command


def statuses(root: Path) -> dict[str, str]:
    return {str(p.parent.relative_to(root)): json.loads(p.read_text())["status"] for p in root.rglob("manifest.json")}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load(list_checkpoints(folder / "checkpoints")[-1][1])["state_dict"]


def test_sweep_makes_a_folder_per_job_and_runs_only_what_is_not_finished(command: Command, tmp_path: Path) -> None:
    arguments = "-m objective=mlm,taco seed=1,2 objective.tc.temperature=0.05,0.1 name=s"
    ended = command(arguments)
    assert ended.status == 0
    labels = [f"{arm}_tc.temperature-{t}" for arm in ("mlm", "taco") for t in ("0.05", "0.1")]
    assert statuses(tmp_path / "outputs" / "s") == {f"{label}/seed_{s}": "finished" for label in labels for s in (1, 2)}
    assert ended.err.count("finished") >= 8
    assert command(arguments).err.count("is finished and skipped") == 8


def test_failed_job_does_not_stop_the_others(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import taco_cli.training.module as module

    original = module.clip_gradients

    def broken(parameters: list[torch.nn.Parameter], norm: float) -> torch.Tensor:
        if norm == 2.0:
            raise RuntimeError("the sky fell")
        return original(parameters, norm)

    monkeypatch.setattr(module, "clip_gradients", broken)
    ended = command("-m optimizer.clip=2.0,1.0 name=s")
    assert ended.status == 1
    root = tmp_path / "outputs" / "s"
    assert statuses(root) == {"taco_optimizer.clip-2.0/seed_1": "failed", "taco_optimizer.clip-1.0/seed_1": "finished"}
    assert "the sky fell" in (root / "taco_optimizer.clip-2.0" / "seed_1" / "train.log").read_text()
    assert "the sky fell" not in (root / "taco_optimizer.clip-1.0" / "seed_1" / "train.log").read_text()
    table = ended.err[ended.err.index("job") :]
    assert "failed" in table
    assert "finished" in table


def test_job_alone_and_in_a_sweep_give_the_same_bits(command: Command, tmp_path: Path) -> None:
    assert command("-m objective=mlm,taco name=together").status == 0
    assert command("objective=taco name=alone").status == 0
    alone = weights(tmp_path / "outputs" / "alone" / "taco" / "seed_1")
    together = weights(tmp_path / "outputs" / "together" / "taco" / "seed_1")
    assert alone.keys() == together.keys()
    assert all(torch.equal(alone[name], together[name]) for name in alone)


def test_wrong_value_in_a_sweep_is_told_and_the_rest_runs(command: Command, tmp_path: Path) -> None:
    ended = command("-m objective.tc.window=4,5 name=s")
    assert ended.status == 1
    assert "odd and at least 3" in ended.err
    assert list(statuses(tmp_path / "outputs" / "s").values()) == ["finished"]


def test_arguments_of_wandb_agents_are_understood(command: Command, tmp_path: Path) -> None:
    assert command("--objective=mlm --optimizer.lr=0.02 --name=agent").status == 0
    manifest = json.loads((tmp_path / "outputs" / "agent" / "mlm" / "seed_1" / "manifest.json").read_text())
    assert manifest["config"]["optimizer"]["lr"] == 0.02
