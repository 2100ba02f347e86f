"""The blocks of text at the start and the end of a run: the numbers that follow from the configuration."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

import torch

from taco_cli.config.budget import Budget
from taco_cli.config.schema import RunConfig
from taco_cli.encoder.flops import ParameterCount
from taco_cli.machine import Machine
from taco_cli.tracking import RunFolder
from taco_cli.training.progress import Progress

MANY_EPOCHS = 40  # masks differ in every epoch, yet a corpus read this often is learned by heart


@dataclass(frozen=True)
class Facts:
    """What the start block tells beside the configuration."""

    parameters: ParameterCount
    corpus: str  # name, documents, words
    blocks: int  # training sequences
    unigram_nats: float
    peak_flops: float
    compiled: str


def start_block(config: RunConfig, machine: Machine, facts: Facts, folder: RunFolder, resumed: int | None) -> str:
    """Return the lines printed before the first step."""
    tokens_per_step = config.batch_size * config.sequence_length
    micro = config.micro_batch_size or config.batch_size
    pool = f"{micro} sequences" if config.objective.tc.weight > 0 else "none, TC is off"
    accumulation = f" in {config.batch_size // micro} micro-batches" if micro != config.batch_size else ""
    count, tokens = facts.parameters, facts.blocks * config.sequence_length
    where = "continues at step" if resumed else "from the beginning"
    rows = {
        "run": f"{folder.path} ({where}{f' {resumed}' if resumed else ''})",
        "objective": _objective(config),
        "encoder": f"{_millions(count.total)} parameters, {_millions(count.without_embeddings)} without embeddings",
        "corpus": f"{facts.corpus}, {facts.blocks:,} sequences, {_millions(tokens)} tokens",
        "batch": f"{config.batch_size} x {config.sequence_length} = {tokens_per_step:,} tokens a step{accumulation}",
        "budget": _budget(config, facts.blocks),
        "negatives' pool": pool,
        "unigram level": f"{facts.unigram_nats:.3f} nats: what val/mlm is without any context",
        "device": f"{machine}, {facts.compiled}; matrix products {facts.peak_flops / 1e12:.2f} TFLOP/s",
    }
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows.items())


def end_block(
    folder: RunFolder, machine: Machine, progress: Progress, metrics: dict[str, float], next_command: str
) -> str:
    """Return the lines printed after the last step."""
    speed = progress.tokens / max(progress.seconds, 1e-9)
    values = "  ".join(f"{name} {metrics[name]:.4g}" for name in metrics if name.startswith("val/"))
    seconds = f"{progress.seconds:,.0f} s of training"
    rows = {
        "done": f"{progress.step:,} steps, {_millions(progress.tokens)} tokens in {seconds}",
        "speed": f"{speed:,.0f} tokens/s, peak memory {_peak_memory(machine) / 2**30:.2f} GiB",
        "validation": values,
        "curves": str(folder.metrics_csv),
        "model": f"{folder.exports / f'step-{progress.step:06d}'} (Hugging Face format)",
        "next": next_command,
    }
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows.items())


def epochs(config: RunConfig, blocks: int) -> float | None:
    """Return how often the corpus is read, None where the budget is a time."""
    steps = Budget.parse(config.budget).steps(config.batch_size * config.sequence_length)
    return None if steps is None else steps * config.batch_size / blocks


def many_epochs(budget: str, passes: float) -> str:
    """Say that the corpus is read very often."""
    return f"budget={budget} reads the corpus {passes:.0f} times; a shorter budget or more text teaches more"


def _budget(config: RunConfig, blocks: int) -> str:
    budget = Budget.parse(config.budget)
    steps, passes = budget.steps(config.batch_size * config.sequence_length), epochs(config, blocks)
    if steps is None or passes is None:
        return f"{budget}; one epoch is {blocks / config.batch_size:,.0f} steps"
    return f"{budget} = {steps:,} steps = {passes:.2f} epochs"


def _objective(config: RunConfig) -> str:
    objective = config.objective
    weights = {"MLM": objective.mlm.weight, "TC": objective.tc.weight, "TP": objective.tp.weight}
    return f"{objective.name} = " + " + ".join(f"{weight:g} {name}" for name, weight in weights.items() if weight)


def _millions(count: int) -> str:
    return f"{count / 1e6:,.1f} M" if count >= 1e5 else f"{count:,}"


def _peak_memory(machine: Machine) -> int:
    """Return bytes: of the device where it is a GPU, of the process otherwise."""
    if machine.device_type == "cuda":
        return torch.cuda.max_memory_allocated()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
