"""Every experiment file: its first comment is its command, it runs, and arms differ under `objective` alone."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from taco_cli import cli
from tests.cli.conftest import Command

CONF = Path(__file__).parents[2] / "conf"
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
COMPARED = {"corruption", "data_efficiency", "embedding_quality"}
RUNS = {"ablations": 5, "demo": 2, "corruption": 2, "data_efficiency": 4, "embedding_quality": 1 + 4}
ARMS = ["mlm", "taco", "ablation_concentrated", "ablation_unmasked", "ablation_tp"]


def manifests(root: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(root.rglob("manifest.json"))]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_runs_as_its_first_comment_says(command: Command, tmp_path: Path, name: str) -> None:
    package, first = (CONF / "experiment" / f"{name}.yaml").read_text().splitlines()[:2]
    assert package == "# @package _global_"  # Hydra wants it before any comment
    assert first == f"# taco-train +experiment={name}"
    if name == "embedding_quality":  # it takes over from a finished run
        assert command("+experiment=mlm budget=2steps").status == 0
    seeds = "seed=1" if name == "ablations" else ""
    ended = command(f"{first.removeprefix('# taco-train ')} budget=2steps {seeds}")
    assert ended.status == 0, ended.err
    runs = manifests(tmp_path / "outputs")
    assert len(runs) == RUNS.get(name, 1)
    assert {run["status"] for run in runs} == {"finished"}
    if name in COMPARED:
        compare_as_said(command, name)


def compare_as_said(command: Command, name: str) -> None:
    """The file's taco-compare works, and so does what is advised where `across` is left out."""
    text = (CONF / "experiment" / f"{name}.yaml").read_text()
    [said] = re.findall(r"^# taco-compare (.*)$", text, re.M)
    ended = command("", *shlex.split(said), tiny=False, entry=cli.compare)
    assert ended.status == 0, ended.err
    assert "baseline" in ended.out
    refused = command(f"runs=outputs/{name}", tiny=False, entry=cli.compare)
    assert refused.status == 1
    [advised] = re.findall(r"(across=\S+)$", refused.err, re.M)
    ended = command(f"runs=outputs/{name} {advised}", tiny=False, entry=cli.compare)
    assert ended.status == 0, ended.err


def test_arms_differ_under_objective_only(command: Command, tmp_path: Path) -> None:
    configs = {}
    for name in ARMS:
        ended = command(f"+experiment={name} --cfg job", tiny=False)
        assert ended.status == 0
        lines = ended.out.splitlines()
        begin = lines.index("objective:")
        end = next(i for i in range(begin + 1, len(lines)) if not lines[i].startswith(" "))
        configs[name] = (tuple(lines[begin:end]), tuple(lines[:begin] + lines[end:]))
    assert len({objective for objective, _ in configs.values()}) == len(ARMS)
    assert len({rest for _, rest in configs.values()}) == 1


def test_own_experiment_and_arm_from_a_folder(command: Command, tmp_path: Path) -> None:
    for group, name, text in (
        ("objective", "soft", "name: soft\nmlm: {weight: 1.0}\ntc: {weight: 0.5}\n"),
        ("experiment", "mine", "# @package _global_\ndefaults:\n  - override /objective: soft\nname: mine\n"),
    ):
        (tmp_path / "mine" / group).mkdir(parents=True)
        (tmp_path / "mine" / group / f"{name}.yaml").write_text(text)
    assert command("--config-dir mine +experiment=mine budget=2steps").status == 0
    assert (tmp_path / "outputs" / "mine" / "soft" / "seed_1" / "manifest.json").exists()


@pytest.mark.parametrize(
    "group", ["scale", "encoder", "objective", "masking", "optimizer", "trainer", "tracking", "corpus"]
)
def test_every_choice_composes_and_is_described(command: Command, group: str) -> None:
    for path in (CONF / group).glob("*.yaml"):
        ended = command(f"{group}={path.stem} --cfg job", tiny=False)
        assert ended.status == 0, ended.err
        comments = [line for line in path.read_text().splitlines() if line.startswith("# ") and "@package" not in line]
        assert comments, path
