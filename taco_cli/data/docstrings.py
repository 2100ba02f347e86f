"""The built-in corpus: English docstrings of the Python packages installed beside the tool.

Only distributions in the environment's own site-packages are read, only their modules, without tests. One
module gives one document, its paragraphs one a line; a paragraph that occurs again later is left out there.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import prose
from .cache import entry, key_of

logger = logging.getLogger(__name__)

_OWN_DISTRIBUTION = "taco-cli"
_TEST_FOLDERS = frozenset({"test", "tests", "_tests"})


class DocstringSource:
    """Documents of the installed packages; extracted once per set of installed packages."""

    def __init__(self, cache_dir: str, processes: int | None = None) -> None:
        self._cache_dir = cache_dir
        self._processes = processes or os.cpu_count() or 1
        self._distributions = _distributions()
        self.total_bytes: int | None = None
        self.done_bytes = 0
        self._folder: Path | None = None

    def fingerprint(self) -> str:
        """Return a key of the installed packages, of Python and of the rules of extraction."""
        installed = [[name, d.version, d.read_text("RECORD") or ""] for name, d in self._distributions.items()]
        return key_of("docstrings", prose.VERSION, list(sys.version_info[:2]), installed)

    def documents(self) -> Iterator[str]:
        """Yield one document per module, in the order of packages and modules."""
        path = self._extracted() / "documents.jsonl"
        self.total_bytes, self.done_bytes = path.stat().st_size, 0
        with path.open("rb") as file:
            for line in file:
                self.done_bytes += len(line)
                yield json.loads(line)

    def facts(self) -> dict[str, Any]:
        """Return the packages read, with the words and modules that each gave."""
        facts: dict[str, Any] = json.loads((self._extracted() / "facts.json").read_text())
        return facts

    def _extracted(self) -> Path:
        if self._folder is None:
            self._folder, _ = entry(self._cache_dir, "docstrings", self.fingerprint(), self._extract)
        return self._folder

    def _extract(self, folder: Path) -> None:
        modules = [(name, path) for name, d in self._distributions.items() for path in _modules(d)]
        logger.info("reading docstrings of %d modules of %d packages", len(modules), len(self._distributions))
        found = _prose_of_files([path for _, path in modules], min(self._processes, 1 + len(modules) // 200))
        packages: dict[str, dict[str, Any]] = {}
        seen: set[str] = set()
        with (folder / "documents.jsonl").open("w") as file:
            for (name, _), paragraphs in zip(modules, found, strict=True):
                fresh = [text for text in dict.fromkeys(paragraphs) if text not in seen]
                seen.update(fresh)
                if fresh:
                    file.write(json.dumps("\n".join(fresh)) + "\n")
                    package = packages.setdefault(
                        name, {"version": self._distributions[name].version, "modules": 0, "words": 0}
                    )
                    package["modules"] += 1
                    package["words"] += sum(len(text.split()) for text in fresh)
        (folder / "facts.json").write_text(json.dumps({"packages": packages}))


def _site_packages() -> list[str]:
    return sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def _distributions() -> dict[str, importlib.metadata.Distribution]:
    """Return what is installed in this environment's site-packages, by name, sorted."""
    installed = importlib.metadata.distributions(path=_site_packages())
    found = {d.name.lower().replace("_", "-"): d for d in installed}
    found.pop(_OWN_DISTRIBUTION, None)
    return dict(sorted(found.items()))


def _modules(distribution: importlib.metadata.Distribution) -> list[str]:
    modules = []
    for file in sorted(distribution.files or []):
        if file.suffix == ".py" and file.parts[0] != ".." and not _TEST_FOLDERS.intersection(file.parts):
            path = str(file.locate())
            if "\n" not in path and os.path.isfile(path):
                modules.append(path)
    return modules


def _prose_of_files(paths: list[str], processes: int) -> Iterator[list[str]]:
    """Yield the prose of each file in order, found by bare interpreters that share the files in turn."""
    with tempfile.TemporaryDirectory(prefix="taco-docstrings-") as folder:
        workers = []
        try:
            for rank in range(processes):
                questions, answers = Path(folder) / f"{rank}.in", Path(folder) / f"{rank}.out"
                questions.write_text("".join(f"{path}\n" for path in paths[rank::processes]))
                with questions.open() as reader, answers.open("w") as writer:
                    command = [sys.executable, "-I", prose.__file__]
                    # A session of their own keeps Ctrl-C from them; they are ended below.
                    workers.append(subprocess.Popen(command, stdin=reader, stdout=writer, start_new_session=True))
            codes = [worker.wait() for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        if any(codes):
            raise RuntimeError(f"the processes that read docstrings ended with {codes}")
        files = [(Path(folder) / f"{rank}.out").open() for rank in range(processes)]
        try:
            for index in range(len(paths)):
                yield json.loads(files[index % processes].readline())
        finally:
            for file in files:
                file.close()
