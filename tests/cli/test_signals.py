"""The command as a process: what a scheduler or a Ctrl-C makes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import TINY

COMMAND = [sys.executable, "-c", "import sys; from taco_cli.cli import train; sys.exit(train())"]


@pytest.mark.multiprocess
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 138)])
def test_signal_saves_and_the_same_command_finishes(
    corpus_file: Path, cache_dir: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    arguments = [*TINY.split(), f"corpus.files=[{corpus_file}]", f"corpus.cache_dir={cache_dir}", "budget=3000steps"]
    metrics = tmp_path / "outputs" / "pretrain" / "taco" / "seed_1" / "metrics.csv"
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (metrics.exists() and "train/loss" in metrics.read_text()):
            time.sleep(0.05)
        process.send_signal(number)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == status, printed
    assert signal.Signals(number).name in printed
    assert "Traceback" not in printed
    manifest = json.loads((metrics.parent / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    assert (metrics.parent / "checkpoints" / f"step-{manifest['step']:06d}.ckpt").exists()
    assert 0 < manifest["step"] < 3000


@pytest.mark.multiprocess
def test_signal_before_training_leaves_at_once(corpus_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "slow_preparation.py"
    script.write_text(
        "import sys, time\n"
        "import taco_cli.training.run as run\n"
        "from taco_cli.cli import train\n"
        "run.prepare = lambda *a, **k: print('preparing', flush=True) or time.sleep(60)\n"
        "sys.exit(train())\n"
    )
    command = [sys.executable, str(script), *TINY.split(), f"corpus.files=[{corpus_file}]"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "preparing"
        os.kill(process.pid, signal.SIGTERM)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 143, printed
    assert "Traceback" not in printed
