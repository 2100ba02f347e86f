from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest

from taco_cli.config.schema import CorpusConfig
from taco_cli.evaluation import topic


class MadeSource:
    """Three packages, of which one is too small."""

    sizes = {"alpha-kit": 90, "beta": 120, "tiny": 2}

    def __init__(self, cache_dir: str) -> None:
        draw = random.Random(0)
        self.texts = [
            "\n".join(
                " ".join(
                    [
                        name.replace("-", "_"),
                        f"Py{name.upper()}x",
                        *draw.choices(["word", "value", "list"], k=8),
                        str(draw.random()),
                    ]
                )
                for _ in range(6)
            )
            for name, size in self.sizes.items()
            for _ in range(size)
        ]

    def facts(self) -> dict[str, object]:
        return {"packages": {name: {"modules": size} for name, size in self.sizes.items()}}

    def documents(self) -> list[str]:
        return self.texts


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> MadeSource:
    monkeypatch.setattr(topic, "DocstringSource", MadeSource)
    return MadeSource("")


def module_of(source: MadeSource) -> dict[str, str]:
    """Map the number at the end of every paragraph to its module."""
    return {line.split()[-1]: text for text in source.texts for line in text.split("\n")}


def test_balanced_and_divided_by_module(source: MadeSource) -> None:
    splits = topic.read_topics("")
    for split, count in topic.PER_CLASS.items():
        assert Counter(splits[split].labels) == {"alpha-kit": count, "beta": count}
    modules = module_of(source)
    used = {split: {modules[text.split()[-1]] for (text,) in splits[split].texts} for split in splits}
    assert not used["train"] & used["dev"]


def test_what_pre_training_validates_on_is_not_used(source: MadeSource) -> None:
    splits = topic.read_topics("")
    modules = module_of(source)
    for examples in splits.values():
        for (text,) in examples.texts:
            digest = hashlib.blake2b(modules[text.split()[-1]].encode(), digest_size=16).digest()
            assert int.from_bytes(digest[:4], "little") / 2**32 >= CorpusConfig().validation_fraction


def test_names_are_masked_also_inside_words(source: MadeSource) -> None:
    for examples in topic.read_topics("").values():
        assert all(text.startswith("package ") for (text,) in examples.texts)
        assert not any("beta" in text.lower() or "alpha" in text.lower() for (text,) in examples.texts)


def test_one_package_is_no_task(source: MadeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeSource, "sizes", {"beta": 120})
    with pytest.raises(ValueError, match="1 installed packages have"):
        topic.read_topics("")
