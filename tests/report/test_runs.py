from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from taco_cli.report.runs import read_run, read_runs

MakeRun = Callable[..., Path]


def test_every_run_below_the_path_is_found(tmp_path: Path, make_run: MakeRun) -> None:
    for label, seed in (("taco", 2), ("mlm", 1), ("taco", 1)):
        make_run(tmp_path / "x", label, seed)
    (tmp_path / "x" / "mlm" / "seed_1" / "hf" / "step-000100").mkdir(parents=True)
    (tmp_path / "x" / "mlm" / "seed_1" / "hf" / "step-000100" / "manifest.json").write_text("{}")
    found = read_runs([tmp_path, tmp_path / "x" / "mlm"])
    assert [(run.label, run.seed) for run in found.runs] == [("mlm", 1), ("taco", 1), ("taco", 2)]


def test_a_run_folder_itself_can_be_given(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path)
    assert [run.folder for run in read_runs([folder]).runs] == [folder.resolve()]


def test_missing_folder_and_folder_without_runs_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match=r"no run below it.*manifest\.json"):
        read_runs([tmp_path])


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"label": "a", "seed": 1, "status": "failed", "config": {}}'])
def test_unreadable_manifest_is_reported_beside_the_others(tmp_path: Path, make_run: MakeRun, text: str) -> None:
    make_run(tmp_path, "mlm", 1)
    broken = make_run(tmp_path, "mlm", 2) / "manifest.json"
    broken.write_text(text)
    found = read_runs([tmp_path])
    assert [run.seed for run in found.runs] == [1]
    assert str(broken) in found.unreadable[broken.parent.resolve()]


def test_nothing_readable_is_an_error(tmp_path: Path, make_run: MakeRun) -> None:
    (make_run(tmp_path) / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="none of the runs can be read"):
        read_runs([tmp_path])


def test_running_without_a_process_is_killed(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path, status="running")
    assert read_run(folder).status == "killed"
    (folder / ".lock").touch()
    assert read_run(folder).status == "killed"


def test_running_under_a_lock_is_running(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path, status="running")
    script = (
        "import sys, time\nfrom taco_cli.tracking.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).lock():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert read_run(folder).status == "running"
        process.communicate(b"")
    assert read_run(folder).status == "killed"


def test_identity_leaves_out_what_decides_no_number(tmp_path: Path, make_run: MakeRun) -> None:
    first = read_run(make_run(tmp_path / "a", output_root="here", trainer={"precision": "bf16"}))
    second = read_run(make_run(tmp_path / "b", output_root="there"))
    assert first.identity == second.identity
    assert first.identity["corpus data"] == "c0ffee"
    manifest = json.loads((second.folder / "manifest.json").read_text())
    manifest["corpus"]["fingerprint"] = "decaf"
    (second.folder / "manifest.json").write_text(json.dumps(manifest))
    assert first.identity != read_run(second.folder).identity


def test_reading_does_not_need_the_lock_to_be_free(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path, status="finished")
    with (folder / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        assert read_run(folder).status == "finished"
