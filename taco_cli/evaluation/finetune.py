"""Fine-tuning of one encoder on one task, and its predictions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from taco_cli.config.glue import TaskConfig
from taco_cli.encoder import Encoder
from taco_cli.evaluation.classifier import Classifier
from taco_cli.evaluation.protocol import Settings
from taco_cli.evaluation.tokens import IntArray, Tokens, sorted_batches, training_batches
from taco_cli.machine import Machine
from taco_cli.randomness import permutation, stream_key

_EVALUATION_TOKENS = 8192  # in one batch
OnStep = Callable[[int, int], None]  # (steps done, steps in all)


def fine_tune(
    encoder: Encoder,
    task: TaskConfig,
    tokens: Tokens,
    targets: Tensor,
    settings: Settings,
    seed: int,
    machine: Machine,
    on_step: OnStep = lambda done, total: None,
) -> Classifier:
    """Train a copy of the encoder with a fresh head; the same arguments give the same weights.

    Args:
        encoder: stays as it is.
        task: its labels name the outputs.
        tokens: training sequences.
        targets: class indices (int64) or scores (float32), one per sequence.
        settings: resolved.
        seed: of head, order, dropout and subset.
        machine: device and precision.
        on_step: told of progress.
    """
    model = Classifier(copy.deepcopy(encoder), task.labels, settings.pooling, settings.dropout or 0.0, seed)
    rows = subset(len(tokens), settings.train_limit, seed)
    steps = settings.epochs * -(-len(rows) // settings.batch_size)
    optimizer = _optimizer(model, settings)
    scaler = torch.amp.GradScaler(machine.device_type, enabled=machine.dtype is torch.float16)
    warmup = settings.warmup(steps)
    model.train()
    with _own_random_state(machine):
        for step, batch in enumerate(_batches(tokens.lengths[rows], settings, seed)):
            torch.manual_seed(stream_key(seed, f"glue/dropout/{step}"))
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * lr_factor(step, steps, warmup)
            with machine.autocast():
                logits_NC = model(*tokens.batch(rows[batch], machine.device_type))
            loss = _loss(logits_NC, targets[rows[batch]].to(machine.device_type))
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            if settings.clip > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            scaler.step(optimizer)
            scaler.update()
            on_step(step + 1, steps)
    return model.eval()


@torch.inference_mode()
def predict(model: Classifier, tokens: Tokens, machine: Machine) -> list[str] | list[float]:
    """Return label names, or scores, in the order of the sequences."""
    logits = torch.empty(len(tokens), model.out.out_features)
    for batch in sorted_batches(tokens.lengths, _EVALUATION_TOKENS):
        with machine.autocast():
            logits[batch] = model(*tokens.batch(batch, machine.device_type)).cpu()
    if model.labels:
        return [model.labels[i] for i in logits.argmax(1).tolist()]
    scores: list[float] = logits[:, 0].tolist()
    return scores


def targets_of(task: TaskConfig, labels: list[str | float | None]) -> Tensor:
    """Return class indices (int64) by the order of `task.labels`, or scores (float32)."""
    if task.labels:
        index = {name: i for i, name in enumerate(task.labels)}
        return torch.tensor([index[str(label)] for label in labels])
    return torch.tensor([float(label) for label in labels if label is not None])


def subset(count: int, limit: int | None, seed: int) -> IntArray:
    """Return the examples that are trained on: all, or so many drawn by the seed."""
    rows: IntArray = permutation(stream_key(seed, "glue/subset"), 0, count).numpy()
    rows = rows[: limit or count]
    rows.sort()
    return rows


def lr_factor(step: int, steps: int, warmup: int) -> float:
    """Return the share of the peak at a step: linear warm-up, then linear decay to 0 after the last step."""
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / max(1, steps - warmup)


def _batches(lengths: IntArray, settings: Settings, seed: int) -> Iterator[IntArray]:
    for epoch in range(settings.epochs):
        yield from training_batches(lengths, settings.batch_size, seed, epoch)


def _loss(logits_NC: Tensor, targets_N: Tensor) -> Tensor:
    if targets_N.is_floating_point():
        return functional.mse_loss(logits_NC[:, 0], targets_N)
    return functional.cross_entropy(logits_NC, targets_N)


def _optimizer(model: Classifier, settings: Settings) -> torch.optim.AdamW:
    # The masked-LM head gets no gradient; decay must not shrink what it has in common with nothing else.
    trained = [*model.encoder.model.base_model.parameters(), *model.dense.parameters(), *model.out.parameters()]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.lr, fused=True)


@contextmanager
def _own_random_state(machine: Machine) -> Iterator[None]:
    devices = [torch.cuda.current_device()] if machine.device_type == "cuda" else []
    with torch.random.fork_rng(devices):
        yield
