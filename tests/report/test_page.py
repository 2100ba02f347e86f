from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from taco_cli.config.compare import CompareConfig
from taco_cli.report import compare

MakeRun = Callable[..., Path]
VOID = {"meta", "link", "input", "img", "br", "line", "circle", "path"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and gathers tags, addresses and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def data(self, text: str) -> dict[str, object]:
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        assert found is not None
        loaded = json.loads(found[1])
        assert isinstance(loaded, dict)
        return loaded


def page(root: Path, **config: object) -> tuple[Page, str]:
    text = compare(CompareConfig(runs=str(root), **config)).page.read_text()  # type: ignore[arg-type]
    return Page(text), text


def test_page_is_whole_and_needs_no_network(experiment: Path) -> None:
    found, text = page(experiment)
    addresses = [value for _, attrs in found.tags for key, value in attrs.items() if key in ("src", "href", "action")]
    assert all(value is not None and not re.match(r"(https?:)?//", value) for value in addresses)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\((?!#)", text)
    assert "{{" not in text
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_page_says_what_was_found(experiment: Path) -> None:
    found, text = page(experiment)
    for words in (
        "taco reaches the final val/mlm of mlm",
        "5 arms · 3 seeds each · baseline mlm · corpus docstrings",
        "CoLA",
        "probes",
        "objective.name",
        "torch 2.13.0",
        "fingerprint c0ffee",
        "15 runs",
        "at most 400 points",
    ):
        assert words in found.text
    data = found.data(text)
    assert data["arms"][0] == {"name": "mlm", "seeds": [1, 2, 3]}  # type: ignore[index]
    assert data["axes"] == ["steps", "tokens", "seconds", "flops"]


def test_every_metric_has_its_numbers_and_one_is_shown(experiment: Path) -> None:
    found, _ = page(experiment, metric="val/mlm_accuracy")
    tables = [attrs for tag, attrs in found.tags if tag == "div" and "data-metric" in attrs]
    assert [attrs["data-metric"] for attrs in tables if "hidden" not in attrs] == ["val/mlm_accuracy"]
    options = [attrs["value"] for tag, attrs in found.tags if tag == "option"]
    assert sorted(map(str, options)) == sorted(str(attrs["data-metric"]) for attrs in tables)


def test_chosen_metrics_alone_are_on_the_page(experiment: Path) -> None:
    found, _ = page(experiment, metrics=["val/tc"])
    assert [attrs["value"] for tag, attrs in found.tags if tag == "option"] == ["val/mlm", "val/tc"]


def test_foreign_text_stays_text(tmp_path: Path, make_run: MakeRun) -> None:
    evil = "</script><script>alert('x')</script>{{data}}\"'&"
    folder = make_run(
        tmp_path,
        "mlm",
        1,
        {"val/mlm": lambda step: 1.0, "val/<b>": lambda step: 1.0, "glue/<i>/x": lambda step: 1.0},
        status="failed",
        manifest={"label": evil, "name": evil, "error": evil, "command": evil, "git_commit": evil},
    )
    (folder / "analysis").mkdir()
    (folder / "analysis" / "<u>.csv").write_text("<s>,value\n<q>,1\n")
    found, text = page(tmp_path)
    tags = {tag for tag, _ in found.tags}
    assert not tags & {"b", "i", "u", "s", "q"} - {"b"}
    assert [attrs.get("type") for tag, attrs in found.tags if tag == "script"] == ["application/json", None]
    assert evil in found.text
    assert found.data(text)["arms"] == [{"name": evil, "seeds": [1]}]


def test_cautions_are_on_the_page(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, "mlm", 1)
    make_run(tmp_path, "taco", 2, status="running")
    found, _ = page(tmp_path)
    assert "Before you read on" in found.text
    assert "taco seed 2 was killed" in found.text
    assert "no seed or no step in common with the baseline" in found.text


def test_facts_within_facts_are_words(tmp_path: Path, make_run: MakeRun) -> None:
    make_run(tmp_path, manifest={"corpus": {"name": "text", "tokens": {"train": 12345, "validation": 6}}})
    found, _ = page(tmp_path)
    assert "name text · tokens train 12,345, validation 6" in found.text


@pytest.mark.parametrize("seeds", [1, 3])
def test_single_arm(tmp_path: Path, make_run: MakeRun, seeds: int) -> None:
    for seed in range(seeds):
        make_run(tmp_path, "taco", seed)
    found, _ = page(tmp_path)
    assert "1 arm ·" in found.text
    assert "to match" not in [attrs.get("data-head") for _, attrs in found.tags]


def test_pictures_are_carried_along(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path)
    (folder / "analysis").mkdir()
    (folder / "analysis" / "layers.png").write_bytes(b"not really a picture")
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "similarity.png").write_bytes(b"nor this")
    found, _ = page(tmp_path)
    images = [attrs for tag, attrs in found.tags if tag == "img"]
    assert [attrs["alt"] for attrs in images] == ["similarity", "mlm, seed 1: layers"]
    assert all(str(attrs["src"]).startswith("data:image/png;base64,") for attrs in images)


def test_pictures_beyond_the_limit_are_links(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path)
    (folder / "analysis").mkdir()
    (folder / "analysis" / "large.png").write_bytes(bytes(2_000_000))
    found, text = page(tmp_path)
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert any(str(attrs.get("href")).endswith("large.png") for _, attrs in found.tags)
    assert len(text) < 1_000_000


def test_of_long_analyses_the_last_step_is_shown(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path)
    (folder / "analysis").mkdir()
    rows = [f"{step},{layer},{step + layer / 10}" for step in (20, 100, 1000) for layer in range(40)]
    (folder / "analysis" / "similarity.csv").write_text("\n".join(["step,layer,value", *rows, ""]))
    found, _ = page(tmp_path)
    assert "80 rows of earlier ones are in the run folders" in found.text
    assert "1,004" in found.text


def test_long_analyses_are_closed_and_say_their_length(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path)
    (folder / "analysis").mkdir()
    for name, layers in (("short", 4), ("long", 30)):
        rows = "".join(f"{layer},{layer / 10}\n" for layer in range(layers))
        (folder / "analysis" / f"{name}.csv").write_text("layer,value\n" + rows)
    _, text = page(tmp_path)
    assert "<details open><summary>short</summary>" in text
    assert "<details><summary>long, 30 rows</summary>" in text


def test_long_and_many_curves_stay_small(tmp_path: Path, make_run: MakeRun) -> None:
    metrics = {f"val/m{i}": lambda step: step % 7 + 0.123456789 for i in range(20)}
    for label in ("mlm", "taco", "mlm_tp"):
        for seed in range(8):
            make_run(tmp_path, label, seed, metrics, range(0, 12_000, 10))
    report = compare(CompareConfig(runs=str(tmp_path), metric="val/m0"))
    assert report.page.stat().st_size < 10_000_000
