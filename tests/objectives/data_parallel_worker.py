"""One rank of two: writes its sums and gradients for its half of a micro-batch. Started by test_pool.py."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, distributed

from taco_cli.config.schema import (
    Anchors,
    MaskingConfig,
    NegativePositions,
    ObjectiveConfig,
    Pool,
    StopGradient,
    TokenContrastConfig,
)
from taco_cli.objectives import Corrupted, build_objective
from tests.objectives.tiny import SPECIAL, TinyEncoder, make_batch

CASES: list[dict[str, Any]] = [
    {},
    {"stop_gradient": StopGradient.none},
    {"negative_positions": NegativePositions.position_matched},
    {"anchors": Anchors.masked, "stop_gradient": StopGradient.none},
    {"pool": Pool.rank},
]


def measure(choices: dict[str, Any], padded: bool, rank: int, ranks: int) -> tuple[dict[str, Tensor], Tensor]:
    """Return sums and the gradient of their sum for this rank's part of six sequences."""
    config = ObjectiveConfig(tc=TokenContrastConfig(weight=1.0, negatives=6, **choices))
    objective = build_objective(config, MaskingConfig(rate=0.3), SPECIAL, seed=1)
    encoder = TinyEncoder().double()
    batch = make_batch(padded=padded)
    if batch.attention_mask is not None:
        batch.attention_mask[3:] = True  # padding in the first half alone, so that ranks differ in having any
    part: Corrupted = objective.corrupt(batch).split(6 // ranks)[rank]
    if rank == 1:
        part = replace(part, attention_mask=None)
    if choices.get("anchors") is Anchors.masked:  # the last rank has no anchor at all, and must not hang
        part.anchors.masked_fill_((part.example >= 103)[:, None], False)
    sums = objective.sums(encoder, part)
    torch.stack(list(sums.values())).sum().backward()
    assert encoder.words.grad is not None
    return {name: value.detach() for name, value in sums.items()}, encoder.words.grad


def main(rank: int, folder: str) -> None:
    """Run all cases and save the results."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    results = [measure(case, padded, rank, 2) for case in CASES for padded in (False, True)]
    torch.save(results, f"{folder}/{rank}.pt")
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
