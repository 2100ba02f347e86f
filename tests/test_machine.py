"""What `trainer=auto` chooses, and what it refuses."""

from __future__ import annotations

import dataclasses
import platform
import subprocess
import sys

import pytest
import torch

from taco_cli import machine
from taco_cli.config.schema import Accelerator, Precision, TrainerConfig
from taco_cli.machine import choose_machine, keep_freed_memory, peak_flops, worth_compiling
from tests.conftest import MakeConfig


@pytest.mark.parametrize(("native", "precision"), [(True, Precision.bf16), (False, Precision.float32)])
def test_bf16_where_the_processor_has_it(native: bool, precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_cpu_has_bf16", lambda: native)
    chosen = choose_machine(TrainerConfig(accelerator=Accelerator.cpu))
    assert chosen.precision is precision
    assert "natively" in chosen.reason


def test_what_is_asked_for_is_taken() -> None:
    chosen = choose_machine(TrainerConfig(accelerator=Accelerator.cpu, precision=Precision.bf16, devices="2"))
    assert (chosen.dtype, chosen.devices, chosen.reason) == (torch.bfloat16, 2, "as asked")


def test_fp16_on_a_processor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"trainer\.precision=fp16"):
        choose_machine(TrainerConfig(accelerator=Accelerator.cpu, precision=Precision.fp16))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"trainer\.accelerator=gpu"):
        choose_machine(TrainerConfig(accelerator=Accelerator.gpu))


def test_ceiling_is_a_speed() -> None:
    chosen = choose_machine(TrainerConfig(accelerator=Accelerator.cpu, precision=Precision.float32))
    assert 1e8 < peak_flops(chosen, size=128) < 1e16


@pytest.mark.parametrize(
    ("budget", "compile", "expected"),
    [("20min", "auto", True), ("1min", "auto", False), ("1min", "true", True), ("20min", "false", False)],
)
def test_compiles_where_it_is_earned_back(make_config: MakeConfig, budget: str, compile: str, expected: bool) -> None:
    config = make_config(budget=budget, trainer__compile=compile)
    assert worth_compiling(config, flops_per_token=1e6, peak=1e12)[0] is expected


def test_length_of_a_run_in_steps_is_estimated(make_config: MakeConfig) -> None:
    config = dataclasses.replace(make_config(trainer__compile="auto"), budget="1000steps")
    tokens = 1000 * config.batch_size * config.sequence_length
    assert worth_compiling(config, flops_per_token=1e6, peak=tokens * 1e6 / 0.4 / 1000)[0]
    assert not worth_compiling(config, flops_per_token=1e6, peak=tokens * 1e6 / 0.4 / 10)[0]


@pytest.mark.parametrize("before", [True, False])
def test_a_continued_run_goes_on_as_it_was_started_unless_asked(make_config: MakeConfig, before: bool) -> None:
    for budget in ("1min", "20min"):
        config = make_config(budget=budget, trainer__compile="auto")
        chosen, why = worth_compiling(config, flops_per_token=1e6, peak=1e12, before=before)
        assert chosen is before
        assert "as the run was started" in why
    asked = make_config(trainer__compile=str(not before))
    assert worth_compiling(asked, flops_per_token=1e6, peak=1e12, before=before)[0] is not before


FAULTS = """
import resource, torch
from taco_cli.machine import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        tensors = [torch.ones(2_000_000) for _ in range(4)]
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
assert keep_freed_memory()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_kept_memory_is_not_fetched_again() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], env={}, capture_output=True, text=True, check=True)
    first, kept = map(int, done.stdout.split())
    assert kept < 0.1 * first


def test_another_c_library_and_the_user_s_own_choice_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not keep_freed_memory()
    monkeypatch.delenv("MALLOC_ARENA_MAX")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_freed_memory()
