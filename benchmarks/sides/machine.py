"""What the machine can do, and whether the plain side computes what the tool computes."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.case import Case, Results
from benchmarks.modules import seconds
from benchmarks.plain import difference_of_contrast, difference_of_mlm
from taco_cli.config.schema import Precision
from taco_cli.machine import Machine, peak_flops


def measure(case: Case, folder: Path) -> Results:
    """Return ``float32`` and ``bf16`` (FLOP/s), ``copy`` (bytes/s, read and written), and relative differences."""
    source = torch.ones(case.megabytes * 250_000)
    target = torch.empty_like(source)
    found: Results = {"float32": [], "bf16": [], "copy": []}
    for _ in range(case.rounds):
        for precision in (Precision.float32, Precision.bf16):
            found[str(precision)].append(peak_flops(Machine("cpu", 1, precision, "")))
        found["copy"].append(2 * source.nbytes / seconds(lambda: target.copy_(source)))
    return found | {"contrast": [difference_of_contrast()], "mlm": [difference_of_mlm()]}
