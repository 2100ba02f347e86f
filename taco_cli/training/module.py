"""The LightningModule: one call of ``training_step`` is one optimizer step.

    corrupt the whole batch         masks, labels, anchors, as functions of (seed, epoch, example, position)
    count what will be predicted    per loss term, over all micro-batches and ranks
    for each micro-batch            forward, sum of each term / count of the whole step, backward
    clip, step

Since every term is divided by its count over the whole step, 16 x 1 equals 4 x 4 and one rank equals two.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import lightning as L
import torch
import torch.distributed as dist
from torch import Tensor

from taco_cli.config.budget import Budget, BudgetKind
from taco_cli.config.schema import Precision, RunConfig
from taco_cli.encoder import Encoder
from taco_cli.machine import Machine
from taco_cli.objectives import Batch, Corrupted, Objective
from taco_cli.randomness import stream_key
from taco_cli.training.optimizer import Optimizers, build_optimizer, clip_gradients
from taco_cli.training.progress import Clock, Means, Progress
from taco_cli.training.schedule import lr_factor


class Pretraining(L.LightningModule):
    """An encoder, an objective, and the update that joins them."""

    def __init__(self, config: RunConfig, encoder: Encoder, objective: Objective, machine: Machine) -> None:
        super().__init__()
        self.automatic_optimization = False  # exact normalisation needs all micro-batches of a step at once
        self.config = config
        self.encoder = encoder
        self.objective = objective
        self.machine = machine
        self.budget = Budget.parse(config.budget)
        self.progress = Progress()
        self.clock = Clock(self.progress, self._agreed_seconds)
        self.means = Means()
        self.optimizer: Optimizers = build_optimizer(encoder, config.optimizer)
        self.scaler = torch.amp.GradScaler(machine.device_type, enabled=machine.precision is Precision.fp16)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Hand Lightning the optimizers, for its strategies to set up."""
        return list(self.optimizer.parts.values())

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Do one optimizer step on this rank's sequences of one batch."""
        self._reseed_dropout()
        corrupted = self.objective.corrupt(Batch(**batch))
        counts = _over_ranks(self.objective.counts(corrupted))
        micro_batches = corrupted.split(self._sequences_per_forward())
        sums = [
            self._forward_backward(micro_batch, counts, last=number == len(micro_batches))
            for number, micro_batch in enumerate(micro_batches, start=1)
        ]
        for name, count in counts.items():
            total = torch.stack([terms[name].detach().double() for terms in sums]).sum()
            self.means.add(name, _over_ranks({name: total})[name], count)
        self._update()
        self.progress.step += 1
        self.progress.tokens += self.config.batch_size * self.config.sequence_length
        self.clock.read()

    def _forward_backward(self, micro_batch: Corrupted, counts: dict[str, Tensor], last: bool) -> dict[str, Tensor]:
        with self.machine.autocast():
            sums = self.objective.sums(self.encoder, micro_batch)
        loss = sum(
            (weight * sums[name] / counts[name].clamp(min=1) for name, weight in self.objective.weights.items()),
            start=torch.zeros((), device=self.device),
        )
        # Data-parallel training averages gradients over ranks; the counts are of all ranks already.
        with self._gradients_synced(last):
            self.manual_backward(self.scaler.scale(loss * _world_size()))
        return sums

    def _update(self) -> None:
        optimizer, config = self.optimizer, self.config.optimizer
        optimizer.set_lr_factor(lr_factor(self.budget_progress(), config))
        for part in optimizer.parts.values():
            self.scaler.unscale_(part)
        norm = clip_gradients(optimizer.parameters, config.clip)
        for part in optimizer.parts.values():
            self.scaler.step(part)
        self.scaler.update()
        optimizer.zero_grad()
        self.means.add("grad_norm", norm, torch.ones((), device=norm.device))

    def budget_progress(self) -> float:
        """Return the share of the budget used, in [0, 1]."""
        return self.budget.progress(self.progress.step, self.progress.tokens, self.progress.seconds)

    def done(self) -> bool:
        """Whether the budget is used up."""
        return self.budget.done(self.progress.step, self.progress.tokens, self.progress.seconds)

    def run_state(self) -> dict[str, Any]:
        """Return everything that continuing this run needs, as plain containers and tensors."""
        progress = self.progress
        return {
            "step": progress.step,
            "tokens": progress.tokens,
            "seconds": progress.seconds,
            "state_dict": self.encoder.state_dict(),
            "optimizer_states": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "means": self.means.state_dict(),
        }

    def load_run_state(self, state: dict[str, Any]) -> None:
        """Continue from what :meth:`run_state` returned."""
        self.progress.step, self.progress.tokens = state["step"], state["tokens"]
        self.progress.seconds = state["seconds"]
        self.encoder.load_state_dict(state["state_dict"])
        self.optimizer.load_state_dict(state["optimizer_states"])
        self.scaler.load_state_dict(state["scaler"])
        self.means.load_state_dict(state["means"])

    def _agreed_seconds(self, seconds: float) -> float:
        """Return the first rank's where the budget is in seconds: the end and the learning rate hang on them."""
        if _world_size() == 1 or self.budget.kind is not BudgetKind.seconds:
            return seconds
        first = torch.tensor(seconds, dtype=torch.float64, device=self.device)
        dist.broadcast(first, src=0)
        return float(first)

    def _reseed_dropout(self) -> None:
        """Make this step's dropout a function of (seed, step, rank): the one stateful user of random numbers."""
        torch.manual_seed(stream_key(self.config.seed, f"dropout/{self.progress.step}/{self.global_rank}"))

    def _sequences_per_forward(self) -> int:
        return (self.config.micro_batch_size or self.config.batch_size) // _world_size()

    def _gradients_synced(self, last: bool) -> AbstractContextManager[Any]:
        strategy = self.trainer.strategy
        if last or not isinstance(strategy, L.pytorch.strategies.ParallelStrategy):
            return nullcontext()
        return strategy.block_backward_sync()


def _world_size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def _over_ranks(values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Sum scalars over all ranks."""
    if _world_size() == 1:
        return values
    total = torch.stack([value.double() for value in values.values()])
    dist.all_reduce(total)
    return dict(zip(values, total.unbind(), strict=True))
