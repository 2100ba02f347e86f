"""``taco-glue`` as its users type it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from taco_cli import cli

TINY = "protocol=quick protocol.length=24 protocol.epochs=1 trainer=debug seeds=[1]"


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["taco-glue", *TINY.split(), *arguments])
        monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
        status = cli.glue()
        return status, *capfd.readouterr()

    return run


def test_table_goes_to_the_standard_output(
    command: Callable[..., tuple[int, str, str]], run_folder: Path, data_dir: Path
) -> None:
    status, out, err = command(f"run={run_folder}", "tasks=[cola,rte]", f"data_dir={data_dir}")
    assert status == 0, err
    assert "average" in out
    assert "no trained pooler" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tasks=cola", "give one of run="),
        ("run=x model=y", "give one of run="),
        ("run=x steps=first", "allowed are last, all, or a list"),
        ("run=x protocol.epochs=0", "protocol.epochs=0: must be at least 1"),
        ("run=x seeds=[1,1]", "different numbers"),
        ("run=x task=example", "+task"),
        ("run=x sedes=[1]", "did you mean seeds"),
        ("run=x +task=example task.labels=[one]", "two or more different names"),
    ],
)
def test_bad_input_is_said_in_words(arguments: str, message: str, command: Callable[..., tuple[int, str, str]]) -> None:
    status, _, err = command(*arguments.split())
    assert status == 1
    assert message in err
    assert "Traceback" not in err
