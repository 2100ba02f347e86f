"""What a run computes on: device, number of devices, precision, and whether the encoder is compiled."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from taco_cli.config.budget import Budget, BudgetKind
from taco_cli.config.schema import Accelerator, Precision, RunConfig, TrainerConfig

# Compiling takes 20 to 30 s with nothing cached, so only a run of some minutes earns it back.
_COMPILE_FROM_SECONDS = 200
_TYPICAL_SHARE_OF_PEAK = 0.4

# Parameters of glibc's mallopt: what it keeps at most when freed, and from which size on a block is given back at once
# (the logits of a BERT vocabulary have 40 MB). Older versions take 32 MiB at most for the latter.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGE_BLOCKS = (1 << 30, 32 << 20)

_DTYPES = {Precision.float32: torch.float32, Precision.bf16: torch.bfloat16, Precision.fp16: torch.float16}


@dataclass(frozen=True)
class Machine:
    """The choices, with the reason for the precision in words."""

    device_type: str  # cpu, cuda
    devices: int
    precision: Precision
    reason: str

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the matrix products."""
        return _DTYPES[self.precision]

    def autocast(self) -> torch.autocast:
        """Return the context in which forward passes run."""
        return torch.autocast(self.device_type, self.dtype, enabled=self.precision is not Precision.float32)

    def __str__(self) -> str:
        """Name device and precision, e.g. ``cpu (2 threads), bf16 (the processor multiplies it natively)``."""
        name = {"cpu": f"cpu ({torch.get_num_threads()} threads)"}.get(self.device_type, self.device_type)
        many = f"{self.devices} x " if self.devices > 1 else ""
        return f"{many}{name}, {self.precision} ({self.reason})"


def choose_machine(config: TrainerConfig) -> Machine:
    """Choose by the configuration and by what is there.

    Raises:
        ValueError: a GPU is asked for and there is none, more devices than there are, or a precision that
            the device cannot do.
    """
    device_type = _device_type(config.accelerator)
    precision, reason = _precision(device_type, config.precision)
    return Machine(device_type, _devices(device_type, config.devices), precision, reason)


def _device_type(accelerator: Accelerator) -> str:
    # Apple's GPUs have no float64, in which sums are added up: there, the processor does the work.
    if accelerator is Accelerator.gpu and not torch.cuda.is_available():
        raise ValueError(
            "trainer.accelerator=gpu: torch finds no CUDA device here; use trainer=auto or trainer=cpu, or check "
            '`python -c "import torch; print(torch.cuda.is_available())"`'
        )
    return "cuda" if accelerator is not Accelerator.cpu and torch.cuda.is_available() else "cpu"


def _devices(device_type: str, wanted: str) -> int:
    there = torch.cuda.device_count() if device_type == "cuda" else 1
    if wanted == "auto":
        return there
    if device_type != "cpu" and int(wanted) > there:
        raise ValueError(f"trainer.devices={wanted}: there are {there}")
    return int(wanted)


def _precision(device_type: str, wanted: Precision) -> tuple[Precision, str]:
    if wanted is Precision.fp16 and device_type == "cpu":
        raise ValueError("trainer.precision=fp16: only on a GPU; use bf16 or float32 on a processor")
    if wanted is not Precision.auto:
        return wanted, "as asked"
    native = torch.cuda.is_bf16_supported(including_emulation=False) if device_type == "cuda" else _cpu_has_bf16()
    who = "the GPU" if device_type == "cuda" else "the processor"
    if native:
        return Precision.bf16, f"{who} multiplies it natively"
    return Precision.float32, f"{who} does not multiply bf16 natively"


def _cpu_has_bf16() -> bool:
    """Whether the processor has bf16 dot products or tiles, by the flags that Linux lists."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = [line for line in info.splitlines() if line.startswith(("flags", "Features"))]
    return any(flag in lines[0].split() for flag in ("avx512_bf16", "amx_bf16", "bf16")) if lines else False


def peak_flops(machine: Machine, size: int = 2048, repeats: int = 3) -> float:
    """Measure the floating-point operations per second of a square matrix product: the ceiling of all training."""
    left = torch.ones(size, size, dtype=machine.dtype, device=machine.device_type)
    best = float("inf")
    for _ in range(repeats + 1):  # the first one warms up
        start = time.perf_counter()
        product = left @ left
        product[0, 0].item()  # wait for it
        best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best


def keep_freed_memory() -> bool:
    """Let glibc keep what is freed, unless the user tunes it (MALLOC_... variables); return whether it does.

    It gives memory back to the kernel, which hands it out again page by page, each filled with zeros: a fifth of the
    processor's time in a forward pass over short sentences, whose tensors are freed and asked for again each time.
    """
    if platform.libc_ver()[0] != "glibc" or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    large = any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGE_BLOCKS)
    return large and bool(mallopt(_TRIM_THRESHOLD, (1 << 31) - 1))


def worth_compiling(
    config: RunConfig, flops_per_token: float, peak: float, before: bool | None = None
) -> tuple[bool, str]:
    """Decide `trainer.compile`: ``auto`` compiles where the run is long enough to earn the time back.

    Args:
        config: of the run.
        flops_per_token: of training.
        peak: FLOPs per second that the devices can do together.
        before: what was chosen when the run was started, if it is continued: it stays, since compiled code rounds
            differently and the estimate depends on how busy the machine is.

    Returns:
        The choice, and the choice in words.
    """
    wanted = config.trainer.compile.lower()
    if wanted != "auto":
        return wanted == "true", "compiled (as asked)" if wanted == "true" else "not compiled (as asked)"
    if before is not None:
        return before, f"{'compiled' if before else 'not compiled'} (as the run was started)"
    seconds = _estimated_seconds(config, flops_per_token, peak)
    length = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    if seconds >= _COMPILE_FROM_SECONDS:
        return True, f"compiled (about {length} of training earn back the half minute that it takes)"
    return False, f"not compiled (about {length} of training would not earn back the half minute that it takes)"


def _estimated_seconds(config: RunConfig, flops_per_token: float, peak: float) -> float:
    budget = Budget.parse(config.budget)
    if budget.kind is BudgetKind.seconds:
        return budget.amount
    tokens_per_step = config.batch_size * config.sequence_length
    steps = budget.steps(tokens_per_step)
    assert steps is not None
    return steps * tokens_per_step * flops_per_token / (_TYPICAL_SHARE_OF_PEAK * peak)
