"""Speed and memory of training on one CUDA GPU: what `benchmarks/gpu.sh` runs."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import itertools
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import table
from benchmarks.__main__ import RESULTS
from benchmarks.case import Case
from benchmarks.material import run_config
from benchmarks.modules import bare_module, flops_per_step, seconds, step_of
from taco_cli.config.schema import TrainerConfig
from taco_cli.encoder import build_encoder
from taco_cli.machine import Machine, choose_machine, peak_flops
from taco_cli.objectives import SpecialTokens
from taco_cli.training.module import Pretraining

OBJECTIVES = ("mlm", "taco")
CASES = [
    Case("gpu", "bert_small", OBJECTIVES, dropout=0.1, batch_size=256, length=256, warm_up=10, rounds=10, steps=10),
    Case("gpu", "bert_base", OBJECTIVES, dropout=0.1, batch_size=128, length=128, warm_up=10, rounds=10, steps=10),
]
SPECIAL = 5  # ids at the beginning of the made vocabulary


@dataclasses.dataclass(frozen=True)
class Speed:
    """One objective of a case: medians over the rounds, and the memory of all of it."""

    seconds: float
    tokens_per_second: float
    share_of_peak: float
    peak_bytes: int


def measure(case: Case, machine: Machine) -> dict[str, Speed]:
    """Train on random ids, one objective after the other, each with an encoder of its own."""
    peak = peak_flops(machine, size=8192 if machine.device_type == "cuda" else 256)
    return {objective: _measure(case, objective, machine, peak) for objective in case.objectives}


def _measure(case: Case, objective: str, machine: Machine, peak: float) -> Speed:
    _forget(machine)
    module = _module(case, objective, machine)
    step = step_of(module, _batches(case, machine.device_type))
    for _ in range(case.warm_up):
        step()
    _wait(machine)

    def block() -> None:
        for _ in range(case.steps):
            step()
        _wait(machine)

    time = statistics.median(seconds(block) / case.steps for _ in range(case.rounds))
    memory = torch.cuda.max_memory_allocated() if machine.device_type == "cuda" else 0
    return Speed(time, case.tokens / time, flops_per_step(module) / time / peak, memory)


def _module(case: Case, objective: str, machine: Machine) -> Pretraining:
    with tempfile.TemporaryDirectory() as folder:  # its corpus is not read here
        config = run_config(Path(folder), dataclasses.replace(case, words=1), objective)
    special = SpecialTokens(mask_id=4, pad_id=0, special_ids=tuple(range(SPECIAL)), vocab_size=case.vocab_size)
    encoder = build_encoder(config.encoder, special, case.length, config.seed).to(machine.device_type)
    encoder.set_compiled(case.compile)
    return bare_module(config, encoder, special, machine).to(machine.device_type)


def _batches(case: Case, device: str) -> Iterator[dict[str, Tensor]]:
    ids = torch.randint(SPECIAL, case.vocab_size, (case.batch_size, case.length), device=device)
    for number in itertools.count():
        example = torch.arange(case.batch_size, device=device)
        yield {"input_ids": ids, "example": example, "epoch": torch.full_like(example, number)}


def _forget(machine: Machine) -> None:
    torch.compiler.reset()  # which holds on to the encoder compiled before
    gc.collect()
    if machine.device_type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _wait(machine: Machine) -> None:
    if machine.device_type == "cuda":
        torch.cuda.synchronize()


def markdown(found: dict[Case, dict[str, Speed]], about: str) -> str:
    """Return the table: a line per encoder and objective."""
    lines = [
        about,
        "",
        "| encoder | a step | objective | tokens/s | share of peak | time / mlm | memory |",
        "|---" * 7 + "|",
    ]
    for case, speeds in found.items():
        for objective, speed in speeds.items():
            cells: list[Any] = [case.encoder, f"{case.batch_size} x {case.length}", objective]
            cells += [f"{speed.tokens_per_second:,.0f}", f"{speed.share_of_peak:.0%}"]
            cells += [f"{speed.seconds / speeds['mlm'].seconds:.3f}", f"{speed.peak_bytes / 2**30:.2f} GiB"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="say what would be measured; needs no GPU")
    asked = parser.parse_args(arguments)
    if asked.dry_run:
        for case in CASES:
            print(f"{case.encoder}, {case.batch_size} x {case.length}: {', '.join(case.objectives)}")
        return 0
    if not torch.cuda.is_available():
        print("benchmarks/gpu.sh: torch finds no CUDA device here, so nothing was measured", file=sys.stderr)
        return 1
    machine = choose_machine(TrainerConfig(devices="1"))
    about = f"{torch.cuda.get_device_name()}, {machine}, torch {torch.__version__}"
    found = {}
    for case in CASES:
        print(f"measuring {case.encoder}, {case.batch_size} x {case.length} ...", file=sys.stderr)
        found[case] = measure(case, machine)
    text = markdown(found, about)
    data = {case.encoder: {name: vars(speed) for name, speed in speeds.items()} for case, speeds in found.items()}
    print(text, end="")
    print(f"saved in {' and '.join(map(str, table.save(RESULTS, 'gpu', text, data)))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
