from __future__ import annotations

from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from taco_cli.config.schema import CorpusConfig, CorpusSource, HubDataset
from taco_cli.data.sources import FileSource, expand, training_source, validation_source


def source(tmp_path: Path, *patterns: str) -> FileSource:
    return FileSource(list(patterns), "corpus.files", CorpusConfig(cache_dir=str(tmp_path / "cache")))


def test_globs_are_sorted_and_each_file_is_read_once(tmp_path: Path) -> None:
    for name in ["b.txt", "a.txt", "deep/er/c.txt", "[odd].txt"]:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n")
    patterns = [f"{tmp_path}/in/b.txt", f"{tmp_path}/in/**/*.txt", f"{tmp_path}/in/[odd].txt"]
    found = [str(path.relative_to(tmp_path / "in")) for path in expand(patterns, "corpus.files")]
    assert found == ["b.txt", "[odd].txt", "a.txt", "deep/er/c.txt"]
    assert next(source(tmp_path, *patterns).documents()) == "text of b.txt"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("nothing-*.txt", r"corpus\.files: .*nothing-\*\.txt matches no file"),
        ("missing.txt", r"missing\.txt matches no file"),
        ("folder", r"folder is a folder; name the files in it"),
        ("empty.txt", r"empty\.txt is empty"),
        ("other.csv", r"other\.csv: the kind of file is not known"),
    ],
)
def test_what_is_no_corpus_file_is_named(tmp_path: Path, pattern: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "other.csv").write_text("a,b")
    with pytest.raises(ValueError, match=message):
        source(tmp_path, f"{tmp_path}/{pattern}")


def test_no_files_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"corpus\.files is empty"):
        source(tmp_path)


def test_a_file_of_blank_lines_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n \n")
    with pytest.raises(ValueError, match=r"a\.txt: holds no text"):
        list(source(tmp_path, f"{tmp_path}/a.txt").documents())


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("same text")
    two.write_text("same text")
    first = source(tmp_path, str(one)).fingerprint()
    assert source(tmp_path, str(two)).fingerprint() == first
    two.write_text("Same text")
    assert source(tmp_path, str(two)).fingerprint() != first


def test_validation_files_are_optional(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("held out")
    assert validation_source(CorpusConfig()) is None
    found = validation_source(CorpusConfig(validation_files=[f"{tmp_path}/v.txt"]))
    assert found is not None
    assert list(found.documents()) == ["held out"]


@pytest.fixture
def hub_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusConfig:
    """Return the configuration of a folder of parquet files, which stands in for a data set of the hub."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    folder = tmp_path / "made_up"
    folder.mkdir()
    table = pyarrow.table({"title": ["a", "b", "c"], "text": ["First.", "Second.", "Third."]})
    pyarrow.parquet.write_table(table, folder / "train-00000-of-00001.parquet")
    return CorpusConfig(source=CorpusSource.hub, hub=[HubDataset(path=str(folder))], cache_dir=str(tmp_path / "cache"))


def test_hub_rows_are_documents(hub_config: CorpusConfig) -> None:
    found = training_source(hub_config)
    assert list(found.documents()) == list(found.documents()) == ["First.", "Second.", "Third."]
    assert found.fingerprint() == training_source(hub_config).fingerprint()
    assert found.facts()["hub"][0]["rows"] == 3
    first = found.fingerprint()
    hub_config.text_field = "title"
    assert training_source(hub_config).fingerprint() != first


def test_slices_of_a_split_are_different_texts(hub_config: CorpusConfig) -> None:
    keys = []
    for split in ("train", "train[:1]", "train[1:2]"):
        hub_config.hub[0].split = split
        keys.append(training_source(hub_config).fingerprint())
    assert len(set(keys)) == 3


def test_hub_faults_say_what_to_do(hub_config: CorpusConfig) -> None:
    hub_config.text_field = "body"
    with pytest.raises(ValueError, match=r"has no column 'body' but title, text; set corpus\.text_field"):
        training_source(hub_config)
    hub_config.hub = [HubDataset(path="nobody/nothing", name="x")]
    with pytest.raises(ValueError, match=r"cannot load nobody/nothing, x, train.*Without a network"):
        training_source(hub_config)
    hub_config.hub = []
    with pytest.raises(ValueError, match=r"corpus\.hub is empty"):
        training_source(hub_config)
