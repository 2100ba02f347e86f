"""What happens at the end of a step, in this order: record, validate, save, stop.

Each callback does its part on every rank; :class:`RunFolder`'s files are written by the first rank alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import lightning as L
import torch
import torch.distributed as dist

from taco_cli.config.budget import BudgetKind
from taco_cli.encoder import Encoder
from taco_cli.signals import StopRequest
from taco_cli.tracking import Sinks
from taco_cli.training.checkpoint import milestone_crossed
from taco_cli.training.module import Pretraining
from taco_cli.training.saving import Saver
from taco_cli.training.summary import MANY_EPOCHS, many_epochs
from taco_cli.training.throughput import Throughput
from taco_cli.training.validation import Validation

logger = logging.getLogger(__name__)

# Above this share of the budget, a loss within this many nats of the word frequencies' entropy is a warning.
LATE = 0.5
NEAR_UNIGRAM = 0.2
TC_SOLVED = 0.99


class Record(L.Callback):
    """Writes ``train/...``, ``optimizer/...`` and ``throughput/...`` every `tracking.log_every` steps."""

    def __init__(self, sinks: Sinks, throughput: Throughput, every: int) -> None:
        self._sinks, self._throughput, self._every = sinks, throughput, every
        self.latest: dict[str, float] = {}

    def on_train_batch_end(self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Read the running means, which waits for the device."""
        progress = module.progress
        if progress.step % self._every and not module.done():
            return
        means = module.means.read()
        metrics = {f"train/{name}": means[name] for name in module.objective.weights if name in means}
        metrics["train/loss"] = sum(
            weight * means[name] for name, weight in module.objective.weights.items() if name in means
        )
        self._refuse_nan(metrics, progress.step)
        metrics["optimizer/lr"] = module.optimizer.lr
        metrics["optimizer/grad_norm"] = means["grad_norm"]
        module.clock.read()
        metrics |= self._throughput(progress)
        self.latest = metrics
        self._sinks.log(metrics, progress.step, progress.tokens, progress.seconds)

    @staticmethod
    def _refuse_nan(metrics: dict[str, float], step: int) -> None:
        broken = [name for name, value in metrics.items() if not math.isfinite(value)]
        if broken:
            raise ValueError(
                f"{', '.join(broken)} is not finite within the last steps before step {step}: the run is stopped, its "
                "checkpoints are as they were; a lower optimizer.lr, more optimizer.warmup or "
                "trainer.precision=float32 usually helps"
            )


class Validate(L.Callback):
    """Validates at the start, every `validate_every` steps and at the end."""

    def __init__(self, validation: Validation, sinks: Sinks, every: int, unigram_nats: float, blocks: int) -> None:
        self._validation, self._sinks, self._every = validation, sinks, every
        self._unigram_nats, self._blocks = unigram_nats, blocks  # `blocks` of the training text
        self._warned: set[str] = set()
        self.latest: dict[str, float] = {}

    def on_train_start(self, trainer: L.Trainer, module: Any) -> None:
        """Measure the untrained encoder, unless the run continues and did so before."""
        if module.progress.step == 0:
            self._validate(module)
        module.clock.start()

    def on_train_batch_end(self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Validate when it is due."""
        if module.progress.step % self._every == 0 or module.done():
            with module.clock.paused():
                self._validate(module)

    def _validate(self, module: Pretraining) -> None:
        self.latest = self._validation(module.encoder)
        log_measured(self.latest, module, self._sinks)
        done = module.budget_progress()
        if done >= LATE and self.latest["val/mlm"] > self._unigram_nats - NEAR_UNIGRAM:
            self._warn(
                "unigram",
                f"val/mlm={self.latest['val/mlm']:.2f} after {done:.0%} of the budget is still at the level of word "
                f"frequencies ({self._unigram_nats:.2f} nats): the encoder does not use context yet; try more steps "
                "(a smaller batch or a longer budget), a higher optimizer.lr, or encoder=modernbert_mini",
            )
        passes = module.progress.step * module.config.batch_size / self._blocks
        if module.budget.kind is BudgetKind.seconds and passes > MANY_EPOCHS:  # other budgets are known at the start
            self._warn("epochs", many_epochs(module.config.budget, passes))
        if "tc" in module.objective.weights and self.latest.get("val/tc_accuracy", 0.0) > TC_SOLVED:
            self._warn(
                "tc",
                f"val/tc_accuracy={self.latest['val/tc_accuracy']:.1%}: the contrast is solved and teaches little "
                "more; a larger micro_batch_size (the pool of negatives) or more objective.tc.negatives is harder",
            )

    def _warn(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            logger.warning(text)


def log_measured(metrics: dict[str, float], module: Pretraining, sinks: Sinks) -> None:
    """Write metrics to the sinks and say them."""
    progress = module.progress
    sinks.log(metrics, progress.step, progress.tokens, progress.seconds)
    logger.info("step %d: %s", progress.step, "  ".join(f"{name} {value:.4g}" for name, value in metrics.items()))


class Judge(L.Callback):
    """Measures the frozen encoder where `zero_shot` asks for it: at the start, every so many steps and at the end."""

    def __init__(self, measure: Callable[[Encoder], dict[str, float]], sinks: Sinks, every: int) -> None:
        self._measure, self._sinks, self._every = measure, sinks, every
        self.latest: dict[str, float] = {}

    def on_train_start(self, trainer: L.Trainer, module: Any) -> None:
        """Measure the untrained encoder, unless the run continues and did so before."""
        if module.progress.step == 0:
            self._judge(module)

    def on_train_batch_end(self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Measure when it is due."""
        if module.progress.step % self._every == 0 or module.done():
            self._judge(module)

    def _judge(self, module: Pretraining) -> None:
        with module.clock.paused():
            self.latest = self._measure(module.encoder)
        log_measured(self.latest, module, self._sinks)


class Save(L.Callback):
    """Saves checkpoints every `checkpoint_every` steps, at milestones, at the end and when asked to stop."""

    def __init__(self, saver: Saver, every: int, request: StopRequest, latest: Callable[[], dict[str, float]]) -> None:
        self._saver, self._every, self._request, self._latest = saver, every, request, latest
        self._share = 0.0

    def on_train_start(self, trainer: L.Trainer, module: Any) -> None:
        """Take the stop signals back from Lightning, which would end the process with status 0 and save nothing."""
        self._request.install()
        self._share = module.budget_progress()

    def on_train_batch_end(self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Save when it is due, and end the training where it has to end."""
        self._agree(module)
        before, self._share = self._share, module.budget_progress()
        milestone = milestone_crossed(before, self._share) is not None
        ending = module.done() or self._request.number is not None
        if ending or milestone or module.progress.step % self._every == 0:
            with module.clock.paused():
                self._saver.save(module, self._latest(), milestone)
        if ending:
            trainer.should_stop = True

    def _agree(self, module: Pretraining) -> None:
        """Let all ranks see any rank's signal, so that they stop at the same step."""
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return
        number = torch.tensor(self._request.number or 0, device=module.device)
        dist.all_reduce(number, op=dist.ReduceOp.MAX)
        self._request.number = int(number) or None
