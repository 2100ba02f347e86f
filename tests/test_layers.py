"""Imports point downwards, and each heavy library has its one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "taco_cli"

# From the top down; packages of one layer don't know each other.
LAYERS = [
    {"cli"},
    {"training", "evaluation", "analysis", "report"},
    {"data", "encoder", "objectives", "tracking"},
    {"machine"},
    {"config", "randomness", "signals"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# library -> modules that may import it
PLACES = {
    "hydra": {"cli", "config/compose"},
    "omegaconf": {"cli", "config/compose"},
    "wandb": {"tracking"},
    "lightning": {"training", "evaluation/finetune"},
}
OBJECTIVES_NEED = {"torch", "taco_cli"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Yield the absolute dotted names that a module imports, anywhere in it, type checking apart."""
    package = ["taco_cli", *path.relative_to(PACKAGE).parts[:-1]]
    tree = ast.parse(path.read_text())
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield from ([f"{name}.{alias.name}" for alias in node.names] if name == "taco_cli" else [name])


def part(name: str) -> str:
    """Return the part of the house that a dotted name of this package belongs to."""
    return name.split(".")[1] if "." in name else ""


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    for name in imports(path):
        if name.startswith("taco_cli.") and part(name) != own and part(name) in LEVEL:
            assert own in LEVEL, f"{own} has no place in LAYERS"
            assert LEVEL[part(name)] > LEVEL[own], f"{own} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_keep_to_their_places(path: Path) -> None:
    here = path.relative_to(PACKAGE).with_suffix("").as_posix()
    for name in imports(path):
        library = name.split(".")[0]
        if library in PLACES:
            assert any(here == place or here.startswith(place + "/") for place in PLACES[library]), f"{here}: {name}"
        if here.startswith("objectives/"):
            import sys

            assert library in OBJECTIVES_NEED or library in sys.stdlib_module_names, f"{here}: {name}"


def test_command_line_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys, taco_cli.cli, taco_cli.config.compose\n"
        "heavy = {'torch', 'lightning', 'transformers', 'datasets', 'wandb', 'numpy', 'scipy'}\n"
        "print(*sorted(heavy & sys.modules.keys()))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == ""
