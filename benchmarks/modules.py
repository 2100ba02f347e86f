"""The tool's training step without Lightning around it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from taco_cli.config.schema import RunConfig
from taco_cli.encoder import Encoder, model_flops
from taco_cli.machine import Machine
from taco_cli.objectives import SpecialTokens, build_objective
from taco_cli.training.module import Pretraining

Step = Callable[[], Any]


def bare_module(config: RunConfig, encoder: Encoder, special: SpecialTokens, machine: Machine) -> Pretraining:
    """Return the module that ``taco-train`` trains, with what it asks of Lightning replaced."""
    objective = build_objective(config.objective, config.masking, special, config.seed)
    module = Pretraining(config, encoder, objective, machine)
    module.manual_backward = lambda loss: loss.backward()  # type: ignore[method-assign,assignment]
    module._gradients_synced = lambda last: contextlib.nullcontext()  # type: ignore[method-assign]
    return module


def step_of(module: Pretraining, batches: Iterator[dict[str, Tensor]]) -> Step:
    """Return one step of training: a batch is read and learnt."""
    return lambda: module.training_step(next(batches), 0)


def flops_per_step(module: Pretraining) -> int:
    """Return the model FLOPs of a step: heads are counted where something is predicted."""
    config = module.config
    words, tokens = config.batch_size * (config.sequence_length - 2), config.batch_size * config.sequence_length
    share = config.masking.rate * (config.objective.mlm.weight > 0)
    share += (1 - config.masking.rate) * (config.objective.tp.weight > 0)
    return model_flops(module.encoder, tokens, config.sequence_length, round(share * words))


def seconds(step: Step, count: int = 1) -> float:
    """Return the mean time of ``count`` calls."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def graphs() -> int:
    """Return how many graphs torch has compiled in this process."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])
