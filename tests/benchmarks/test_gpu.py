"""What `benchmarks/gpu.sh` does, on a processor and at tiny sizes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu
from taco_cli.config.schema import Accelerator, TrainerConfig
from taco_cli.machine import choose_machine

SCRIPT = Path(gpu.__file__).with_name("gpu.sh")


def test_measures_both_objectives(tiny: Any) -> None:
    case = tiny("gpu", objectives=gpu.OBJECTIVES)
    found = gpu.measure(case, choose_machine(TrainerConfig(accelerator=Accelerator.cpu)))
    assert list(found) == ["mlm", "taco"]
    assert all(speed.tokens_per_second > 0 and speed.share_of_peak > 0 for speed in found.values())


def test_table_compares_with_mlm() -> None:
    slow, fast = gpu.Speed(0.3, 1000.0, 0.25, 2**31), gpu.Speed(0.2, 1500.0, 0.375, 2**30)
    text = gpu.markdown({gpu.CASES[0]: {"mlm": fast, "taco": slow}}, "some GPU")
    assert "| bert_small | 256 x 256 | taco | 1,000 | 25% | 1.500 | 2.00 GiB |" in text
    assert "| bert_small | 256 x 256 | mlm | 1,500 | 38% | 1.000 | 1.00 GiB |" in text


def test_without_a_gpu_one_message_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["benchmarks/gpu.sh: torch finds no CUDA device here, so nothing was measured"]


def test_script_calls_it_from_any_directory(tmp_path: Path) -> None:
    # `echo` in the interpreter's place shows the command line.
    ended = subprocess.run(
        [SCRIPT, "--dry-run"],
        cwd=tmp_path,
        env={"PYTHON": "echo", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert ended.stdout == "-m benchmarks.gpu --dry-run\n"


def test_dry_run_names_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "bert_small, 256 x 256: mlm, taco",
        "bert_base, 128 x 128: mlm, taco",
    ]
