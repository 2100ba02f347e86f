"""`docstring_topic`: which installed package a paragraph of a docstring comes from; needs no download.

A dozen classes of equally many paragraphs. Modules are divided between training and scoring, the names of the
packages are masked out, and what pre-training validates on is used for neither.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass

from taco_cli.config.schema import CorpusConfig
from taco_cli.data.docstrings import DocstringSource
from taco_cli.data.split import FOR_VALIDATION, TRAIN, Document
from taco_cli.evaluation.reading import Examples

CLASSES = 12
PER_CLASS = {"train": 200, "dev": 60}
_PER_MODULE = 10  # most paragraphs of one module: large ones would be a class of their own
_FOR_SCORING = 3  # purpose of `Document.share`
_SCORED = 0.3  # share of modules
_WORDS = range(8, 200)  # of a paragraph
_MASK = "package"

Split = dict[str, Examples]


@dataclass(frozen=True)
class _Module:
    package: str
    document: Document

    @property
    def split(self) -> str:
        return "dev" if self.document.share(_FOR_SCORING) < _SCORED else "train"


def read_topics(cache_dir: str) -> Split:
    """Return labelled paragraphs for `train` and `dev`; labels are names of packages.

    Raises:
        ValueError: fewer than two packages have enough docstrings.
    """
    source = DocstringSource(cache_dir)
    found: dict[str, dict[str, list[str]]] = {}
    for module in _modules(source):
        kept = found.setdefault(module.package, {"train": [], "dev": []})
        kept[module.split] += _paragraphs(module.document.text)
    complete = {name: kept for name, kept in found.items() if all(len(kept[s]) >= n for s, n in PER_CLASS.items())}
    chosen = sorted(complete, key=lambda name: (-len(complete[name]["train"]), name))[:CLASSES]
    if len(chosen) < 2:
        raise ValueError(
            f"task docstring_topic: {len(chosen)} installed packages have {sum(PER_CLASS.values())} paragraphs of "
            "docstrings or more, and two are needed; install some, or leave the task out"
        )
    names = _names(chosen)
    return {
        split: _balanced({name: complete[name][split] for name in chosen}, count, names)
        for split, count in PER_CLASS.items()
    }


def _modules(source: DocstringSource) -> Iterator[_Module]:
    """Yield the modules that pre-training does not validate on, each with its package."""
    packages = source.facts()["packages"]
    owners = (name for name, facts in packages.items() for _ in range(facts["modules"]))
    held_out = CorpusConfig().validation_fraction
    for owner, text in zip(owners, source.documents(), strict=True):
        text = text.strip()
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        document = Document(TRAIN, text, digest)
        if document.share(FOR_VALIDATION) >= held_out:
            yield _Module(owner, document)


def _paragraphs(text: str) -> list[str]:
    paragraphs = [part for part in text.split("\n") if len(part.split()) in _WORDS]
    return sorted(paragraphs, key=_hash)[:_PER_MODULE]


def _balanced(texts: dict[str, list[str]], count: int, names: re.Pattern[str]) -> Examples:
    chosen = [(name, text) for name, all_of_it in texts.items() for text in sorted(all_of_it, key=_hash)[:count]]
    return Examples([(names.sub(_MASK, text),) for _, text in chosen], [name for name, _ in chosen])


def _names(packages: list[str]) -> re.Pattern[str]:
    """Match every word that contains the name of one of the packages, as installed or as imported."""
    imported = {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if {owner.lower().replace("_", "-") for owner in owners} & set(packages)
    }
    names = {*packages, *imported}
    spelled = {
        variant
        for name in names
        for variant in (name, re.sub(r"[-_.]", "_", name), re.sub(r"[-_.]", "", name), re.sub(r"[-_.]", " ", name))
    }
    parts = sorted((name.strip("_ ") for name in spelled), key=lambda name: (-len(name), name))
    return re.compile(r"\w*(?:" + "|".join(re.escape(part) for part in parts if len(part) > 2) + r")\w*", re.IGNORECASE)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
