"""One process and two: the same run (on the processor, over gloo)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from taco_cli.config.budget import Budget
from taco_cli.config.schema import Anchors
from taco_cli.signals import StopRequest
from taco_cli.tracking import RunFolder, read_manifest
from taco_cli.training import train
from taco_cli.training.module import Pretraining
from taco_cli.training.ranks import joined, launch
from tests.conftest import MakeConfig
from tests.training.test_run import curves, final_weights

CHANGES: dict[str, Any] = {"encoder__dropout": 0.0, "budget": "4steps", "checkpoint_every": 4, "optimizer__eps": 1e-3}


@pytest.mark.multiprocess
@pytest.mark.parametrize("micro_batch_size", [8, 4])
def test_two_ranks_equal_one(make_config: MakeConfig, micro_batch_size: int) -> None:
    alone = make_config(name="alone", micro_batch_size=micro_batch_size, **CHANGES)
    shared = make_config(name="shared", micro_batch_size=micro_batch_size, trainer__devices="2", **CHANGES)
    train(alone)
    assert train(shared).status == "finished"
    a, b = final_weights(RunFolder.of(alone)), final_weights(RunFolder.of(shared))
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=1e-6)
    values = [{row[:2]: float(row[2]) for row in curves(RunFolder.of(config))} for config in (alone, shared)]
    assert values[0] == pytest.approx(values[1], rel=1e-4, abs=1e-6)


@pytest.mark.multiprocess
def test_contrast_alone_is_shared_too(make_config: MakeConfig) -> None:
    """The vocabulary head then has no gradient, which data-parallel training takes for an error unless it is told."""
    config = make_config(trainer__devices="2", objective__mlm__weight=0.0, **CHANGES)
    assert train(config).status == "finished"


def _agree_on_seconds(folder: Path, request: StopRequest) -> None:
    with joined("cpu") as ranks:
        for budget in ("10s", "10steps"):
            module = SimpleNamespace(budget=Budget.parse(budget), device=torch.device("cpu"))
            seconds = Pretraining._agreed_seconds(cast(Any, module), 1.0 + ranks.rank)
            (folder / f"{budget}-{ranks.rank}").write_text(str(seconds))


@pytest.mark.multiprocess
def test_time_of_the_first_rank_counts_where_it_is_the_budget(tmp_path: Path) -> None:
    launch(2, _agree_on_seconds, (tmp_path,), StopRequest())
    said = {path.name: float(path.read_text()) for path in tmp_path.iterdir()}
    assert said == {"10s-0": 1, "10s-1": 1, "10steps-0": 1, "10steps-1": 2}


@pytest.mark.multiprocess
def test_ranks_without_anchors_do_not_hang(make_config: MakeConfig) -> None:
    config = make_config(
        trainer__devices="2", batch_size=2, masking__rate=0.04, objective__tc__anchors=Anchors.masked, **CHANGES
    )
    assert train(config).status == "finished"
    manifest = read_manifest(RunFolder.of(config).manifest)
    assert manifest is not None
    assert manifest["step"] == 4


def test_micro_batch_that_devices_cannot_share_is_refused(make_config: MakeConfig) -> None:
    with pytest.raises(ValueError, match=r"micro_batch_size=2.*multiple of 4"):
        train(make_config(micro_batch_size=2, trainer__devices="4"))
