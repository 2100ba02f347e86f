"""Training steps of the tool and of the plain side, in turn within one process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import plain
from benchmarks.case import Case, Results
from benchmarks.material import run_config
from benchmarks.memory import given_back
from benchmarks.modules import bare_module, flops_per_step, graphs, seconds, step_of
from taco_cli.data import prepare, step_loader
from taco_cli.encoder import build_encoder
from taco_cli.evaluation.model import special_tokens
from taco_cli.machine import Machine, choose_machine, peak_flops
from taco_cli.training.module import Pretraining


def measure(case: Case, folder: Path) -> Results:
    """Return numbers by round, times in seconds.

    ``tool:<objective>`` and ``plain:<objective>``, a step; ``share:<objective>`` of the ceiling of matrix products,
    which is measured in each round; ``added:<objective>``, what an objective adds to a step of ``mlm``; ``loader``,
    reading a batch; ``compile``, what the very first step takes longer; ``recompilations`` after the warm-up.
    """
    modules, batches, machine = _tool(case, folder)
    tool = {name: step_of(module, batches) for name, module in modules.items()}
    theirs = {name: plain.training_step(case, name) for name in case.plain}
    first = seconds(tool[case.objectives[0]])
    for name in [*tool] * case.warm_up:
        tool[name]()
    for step in theirs.values():
        with given_back():
            step()
    compiled = graphs()
    found: Results = defaultdict(list)
    for _ in range(case.rounds):
        for name, step in theirs.items():
            with given_back():
                found[f"plain:{name}"].append(seconds(step))
        peak = peak_flops(machine)
        for name, step in tool.items():
            found[f"tool:{name}"].append(_block(step, case.steps, alone=len(tool) + len(theirs) == 1))
            found[f"share:{name}"].append(flops_per_step(modules[name]) / found[f"tool:{name}"][-1] / peak)
        found["loader"].append(seconds(lambda: next(batches), 20))
    found["compile"] = [first - min(found[f"tool:{case.objectives[0]}"])]
    found["recompilations"] = [graphs() - compiled]
    return {**found, **_added(found)}


def _tool(case: Case, folder: Path) -> tuple[dict[str, Pretraining], Iterator[Any], Machine]:
    """Return a module per objective; they share one encoder, so that it is compiled once."""
    configs = {objective: run_config(folder, case, objective) for objective in case.objectives}
    config = configs[case.objectives[0]]
    corpus, machine = prepare(config, progress=False), choose_machine(config.trainer)
    special = special_tokens(corpus.tokenizer)
    encoder = build_encoder(config.encoder, special, case.length, config.seed)
    encoder.set_compiled(case.compile)
    modules = {name: bare_module(config, encoder, special, machine) for name, config in configs.items()}
    loader = step_loader(
        corpus.train, seed=1, batch_size=case.batch_size, micro_batch_size=None, start_step=0, end_step=None
    )
    return modules, iter(loader), machine


def _block(step: Callable[[], Any], count: int, alone: bool) -> float:
    if not alone:
        step()  # the processor's cache holds what another one left there
    return seconds(step, count)


def _added(found: Results) -> Results:
    mlm = found.get("tool:mlm", [])
    names = [name for name in found if name.startswith("tool:") and mlm and name != "tool:mlm"]
    return {
        name.replace("tool:", "added:"): [one - other for one, other in zip(found[name], mlm, strict=True)]
        for name in names
    }
