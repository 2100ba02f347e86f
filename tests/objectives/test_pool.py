"""Two ranks are one: the pool of a micro-batch does not depend on how many processes share it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from taco_cli.config.schema import Pool
from taco_cli.objectives.pool import gather_rows, pool_ranks
from tests.objectives.data_parallel_worker import CASES, measure

ROOT = Path(__file__).parents[2]


def test_without_other_processes_the_pool_is_its_own() -> None:
    part = torch.ones(2, 3)
    assert pool_ranks(Pool.all_ranks) == pool_ranks(Pool.rank) == (0, 1)
    assert gather_rows(part, 1) is part


@pytest.mark.multiprocess
def test_two_ranks_equal_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.objectives.data_parallel_worker"]
    ranks = [subprocess.Popen([*command, str(rank), str(tmp_path)], cwd=ROOT) for rank in (0, 1)]
    try:
        assert [process.wait(timeout=120) for process in ranks] == [0, 0]
    finally:
        for process in ranks:
            process.kill()
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    cases = [(case, padded) for case in CASES for padded in (False, True)]
    for (case, padded), first, second in zip(cases, *results, strict=True):
        sums, gradient = measure(case, padded, 0, 1)
        equal = case.get("pool") is not Pool.rank
        torch.testing.assert_close(first[0]["mlm"] + second[0]["mlm"], sums["mlm"])
        assert torch.allclose(first[0]["tc"] + second[0]["tc"], sums["tc"]) == equal, (case, padded)
        assert torch.allclose(first[1] + second[1], gradient) == equal, (case, padded)
