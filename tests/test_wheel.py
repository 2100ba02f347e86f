"""The wheel holds everything: commands work from it in any directory, without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.multiprocess
def test_wheel_has_configuration_and_page_and_runs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    source = tmp_path / "source"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(source)], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    for path in [*(ROOT / "conf").rglob("*.yaml"), *(ROOT / "taco_cli").rglob("*.py")]:
        relative = path.relative_to(ROOT).as_posix()
        assert (f"taco_cli/{relative}" if relative.startswith("conf/") else relative) in names
    assert any(name.startswith("taco_cli/report/template/") for name in names)
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r}); from taco_cli.cli import train; train()"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code, "+experiment=ablation_tp", "--cfg", "job"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert "name: mlm_tp" in ended.stdout, ended.stderr
