from __future__ import annotations

import logging
from pathlib import Path

import pytest

from taco_cli.data import docstrings
from taco_cli.data.docstrings import DocstringSource

SENTENCE = "Return the {} of the values that are given."


@pytest.fixture
def site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(docstrings, "_site_packages", lambda: [str(folder)])
    install(folder, "beta", {"beta/__init__.py": ["sum", "mean"], "beta/tests/test_x.py": ["test"]})
    install(folder, "alpha", {"alpha.py": ["median", "sum"], "../../bin/script.py": ["script"]})
    install(folder, "taco-cli", {"taco_cli/x.py": ["loss"]})
    return folder


def install(site: Path, name: str, modules: dict[str, list[str]], version: str = "1.0") -> None:
    information = site / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (information / "RECORD").write_text("".join(f"{module},,\n" for module in modules))
    for module, words in modules.items():
        path = site / module
        path.parent.mkdir(parents=True, exist_ok=True)
        definitions = [f'def {word}():\n    """{SENTENCE.format(word)}"""\n' for word in words]
        path.write_text("\n".join(definitions))


def test_documents_are_modules_in_order_without_tests_scripts_duplicates_and_the_tool(
    site_packages: Path, tmp_path: Path
) -> None:
    source = DocstringSource(str(tmp_path / "cache"), processes=2)
    assert list(source.documents()) == [
        SENTENCE.format("median") + "\n" + SENTENCE.format("sum"),
        SENTENCE.format("mean"),
    ]
    assert source.facts()["packages"] == {
        "alpha": {"version": "1.0", "modules": 1, "words": 18},
        "beta": {"version": "1.0", "modules": 1, "words": 9},
    }


def test_the_number_of_processes_does_not_show(
    site_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site_packages, "gamma", {f"gamma/m{i:03}.py": [f"w{chr(97 + i % 26)}"] for i in range(30)})
    paths = [path for d in docstrings._distributions().values() for path in docstrings._modules(d)]
    one = list(docstrings._prose_of_files(paths, 1))
    assert list(docstrings._prose_of_files(paths, 3)) == one
    assert sum(map(bool, one)) == 32


def test_extracted_once_until_something_is_installed(
    site_packages: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> tuple[str, bool]:
        caplog.clear()
        source = DocstringSource(str(tmp_path / "cache"), processes=1)
        list(source.documents())
        return source.fingerprint(), "reading docstrings" in caplog.text

    caplog.set_level(logging.INFO)
    first, worked = read()
    assert worked
    assert read() == (first, False)
    install(site_packages, "delta", {"delta.py": ["variance"]})
    second, worked = read()
    assert worked
    assert second != first


def test_this_environment_is_read_from_site_packages_alone() -> None:
    found = docstrings._distributions()
    assert "pytest" in found
    assert "taco-cli" not in found
    assert list(found) == sorted(found)
    folders = tuple(docstrings._site_packages())
    assert all(path.startswith(folders) for path in docstrings._modules(found["pytest"]))
