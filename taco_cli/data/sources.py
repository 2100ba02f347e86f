"""Where documents come from: docstrings, files, the hub. Each source has documents and a key of them."""

from __future__ import annotations

import glob
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from taco_cli.config.schema import CorpusConfig, CorpusSource, HubDataset, OnBadBytes

from .cache import file_digest, key_of
from .docstrings import DocstringSource
from .readers import documents_of_file, format_of

logger = logging.getLogger(__name__)


class Source(Protocol):
    """A stream of documents that can be read again and again, in the same order."""

    total_bytes: int | None  # of what `documents` reads, for the progress bar; None: not known
    done_bytes: int

    def fingerprint(self) -> str:
        """Return a key of the content."""

    def documents(self) -> Iterator[str]:
        """Yield the documents."""

    def facts(self) -> dict[str, Any]:
        """Return what a reader of the manifest wants to know about the source, as plain JSON."""


def training_source(corpus: CorpusConfig) -> Source:
    """Return the source that `corpus.source` names.

    Raises:
        ValueError: it has no documents by its settings, e.g. no file matches `corpus.files`.
    """
    if corpus.source == CorpusSource.docstrings:
        return DocstringSource(corpus.cache_dir, corpus.processes)
    if corpus.source == CorpusSource.files:
        return FileSource(corpus.files, "corpus.files", corpus)
    return HubSource(corpus.hub, corpus)


def validation_source(corpus: CorpusConfig) -> Source | None:
    """Return the source of `corpus.validation_files`, None where the validation split is a fraction."""
    if not corpus.validation_files:
        return None
    return FileSource(corpus.validation_files, "corpus.validation_files", corpus)


class FileSource:
    """Documents of files, in the order of the patterns and, within one, of sorted paths."""

    def __init__(self, patterns: list[str], key: str, corpus: CorpusConfig) -> None:
        self._corpus = corpus
        self._paths = expand(patterns, key)
        self.total_bytes: int | None = sum(path.stat().st_size for path in self._paths)
        self.done_bytes = 0

    def fingerprint(self) -> str:
        """Return a key of the bytes of the files and of how they are read, not of where they are."""
        digests = [[*format_of(path), file_digest(path, self._corpus.cache_dir)] for path in self._paths]
        return key_of("files", digests, self._corpus.text_field, str(self._corpus.on_bad_bytes))

    def documents(self) -> Iterator[str]:
        """Yield the documents of all files."""
        before = 0
        for path in self._paths:
            count = 0

            def on_read(position: int, before: int = before) -> None:
                self.done_bytes = before + position

            replace = self._corpus.on_bad_bytes == OnBadBytes.replace
            for document in documents_of_file(path, self._corpus.text_field, replace, on_read):
                count += 1
                yield document
            if count == 0:
                raise ValueError(f"{path}: holds no text; take the file out of the corpus")
            before += path.stat().st_size

    def facts(self) -> dict[str, Any]:
        """Return the files with their sizes in bytes."""
        return {"files": {str(path): path.stat().st_size for path in self._paths}}


def expand(patterns: list[str], key: str) -> list[Path]:
    """Return the files that patterns name; ``**`` matches folders at any depth.

    Raises:
        ValueError: a pattern without a file, a folder, an empty file, an unknown kind of file.
    """
    if not patterns:
        raise ValueError(f"{key} is empty: give files or globs, e.g. {key}='[texts/**/*.jsonl]'")
    paths: dict[Path, None] = {}
    for pattern in patterns:
        literal = Path(pattern).expanduser()
        if literal.is_dir():
            raise ValueError(f"{key}: {pattern} is a folder; name the files in it, e.g. {pattern}/**/*.txt")
        if literal.exists():
            matches = [literal]
        else:
            matches = [Path(p) for p in sorted(glob.glob(str(literal), recursive=True)) if not Path(p).is_dir()]
        if not matches:
            raise ValueError(f"{key}: {pattern} matches no file (looked from {Path.cwd()})")
        paths.update(dict.fromkeys(matches))
    for path in paths:
        format_of(path)
        if path.stat().st_size == 0:
            raise ValueError(f"{key}: {path} is empty; take it out of the corpus")
    return list(paths)


class HubSource:
    """Data sets of the Hugging Face hub (or folders of parquet files), concatenated."""

    def __init__(self, datasets: list[HubDataset], corpus: CorpusConfig) -> None:
        if not datasets:
            raise ValueError("corpus.hub is empty: give data sets, e.g. corpus.hub='[{path: wikitext, ...}]'")
        self._corpus = corpus
        self._described = datasets
        self._loaded = [_load(dataset, corpus.text_field) for dataset in datasets]
        self.total_bytes: int | None = None
        self.done_bytes = 0

    def fingerprint(self) -> str:
        """Return a key of the data as stored on this machine, and of the name of the column."""
        keys: list[Any] = []
        for described, loaded in zip(self._described, self._loaded, strict=True):
            files = [Path(item["filename"]) for item in loaded.cache_files]
            digests = [file_digest(path, self._corpus.cache_dir) for path in files]
            # train[:10%] lies in the files of train
            keys.append([digests or [loaded._fingerprint], described.split, len(loaded)])
        return key_of("hub", keys, self._corpus.text_field)

    def documents(self) -> Iterator[str]:
        """Yield the texts of all rows."""
        field = self._corpus.text_field
        for described, loaded in zip(self._described, self._loaded, strict=True):
            row = 0
            for batch in loaded.select_columns([field]).iter(batch_size=1000):
                for text in batch[field]:
                    if not isinstance(text, str):
                        found = type(text).__name__
                        raise ValueError(f"corpus.hub: {described.path}, row {row}: {field!r} holds a {found}")
                    row += 1
                    yield text

    def facts(self) -> dict[str, Any]:
        """Return the data sets with their numbers of rows."""
        pairs = zip(self._described, self._loaded, strict=True)
        return {"hub": [{"path": d.path, "name": d.name, "split": d.split, "rows": len(x)} for d, x in pairs]}


def _load(described: HubDataset, field: str) -> Any:
    from datasets import load_dataset

    what = ", ".join(str(part) for part in (described.path, described.name, described.split) if part)
    try:
        loaded = load_dataset(described.path, described.name, split=described.split)
    except Exception as fault:  # the library and those below it raise many kinds
        raise ValueError(
            f"corpus.hub: cannot load {what}: {type(fault).__name__}: {fault}. Check path, name and split. "
            "Without a network: load it once where there is one and copy ~/.cache/huggingface, or download "
            "its files for corpus=text corpus.files=..., or take corpus=docstrings, which needs no download"
        ) from fault
    if field not in loaded.column_names:
        raise ValueError(
            f"corpus.hub: {what} has no column {field!r} but {', '.join(loaded.column_names)}; set corpus.text_field"
        )
    return loaded
