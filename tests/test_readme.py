"""Every command in the README is one that works."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from taco_cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```\n(.*?)```", README, re.S)
LINES = [line.split("  #")[0].strip() for block in BLOCKS for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("taco-")]
MAKE = [line.split()[1] for line in LINES if line.startswith("make ")]


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 8
    assert set(MAKE) == {"demo", "test"}


@pytest.mark.parametrize("command", COMMANDS)
def test_command_composes(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose the very configuration of the command; experiments run in tests/cli, sweeps in their first job."""
    own = tmp_path / "my_conf"
    for group, text in (
        ("objective", "name: soft\nmlm: {weight: 1.0}\ntc: {weight: 0.5}\n"),
        ("experiment", "# @package _global_\ndefaults: [override /objective: soft]\nname: soft\n"),
    ):
        (own / group).mkdir(parents=True)
        (own / group / "soft.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(command)
    arguments = [re.sub(r"=([^\[\],]+),[^\]]*$", r"=\1", a) for a in arguments if a != "-m"]
    monkeypatch.setattr(sys, "argv", [program, *arguments, *([] if "--help" in arguments else ["--cfg", "job"])])
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    entry = getattr(cli, program.removeprefix("taco-"))
    assert _status(entry) == 0


def _status(entry: object) -> int:
    assert callable(entry)
    try:
        return int(entry())
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("target", MAKE)
def test_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:.*##", (ROOT / "Makefile").read_text(), re.M)
