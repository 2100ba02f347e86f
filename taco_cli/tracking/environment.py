"""What a run ran on: package versions, the state of the working directory's git repository, the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

_PACKAGES = (
    "taco-cli",
    "torch",
    "lightning",
    "transformers",
    "tokenizers",
    "datasets",
    "hydra-core",
    "numpy",
    "wandb",
)


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that matter; None for one not installed."""
    return {"python": platform.python_version(), **{package: _version(package) for package in _PACKAGES}}


def git_state(folder: Path) -> dict[str, Any]:
    """Return `git_commit` and `git_dirty` (tracked files changed) of the repository around `folder`."""
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no") if commit else None
    return {"git_commit": commit, "git_dirty": None if changes is None else bool(changes)}


def machine() -> dict[str, Any]:
    """Return operating system, processor, cores of this process, memory in GB and names of the GPUs."""
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "os": platform.platform(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "gpus": gpus,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints; None without git, without a repository, or when it refuses or hangs."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
