"""Which documents are for training, which for validation, and which are left out.

Everything is decided by a hash of a document's text, so it depends neither on the order of documents nor on
where they come from: the same text is never in both splits, and 25 % of the training documents are among the
50 % of another run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from taco_cli.config.schema import CorpusConfig

from .sources import Source

TRAIN, VALIDATION = "train", "validation"

_PIECE_CHARACTERS = 1 << 16
# Not before the whitespace that BERT's normalizer takes for control characters and drops, which joins words.
_WORD_START = re.compile(r"[^\S\x0b\x0c\x1c-\x1f\x85](?=\S)")


@dataclass
class Counts:
    """What became of the documents that were read."""

    read: int = 0
    empty: int = 0  # nothing but whitespace
    duplicates: int = 0  # equal to an earlier document
    in_validation: int = 0  # of the training source, equal to one of corpus.validation_files
    beyond_fraction: int = 0  # left out by corpus.fraction
    words: dict[str, int] = field(default_factory=lambda: {TRAIN: 0, VALIDATION: 0})
    documents: dict[str, int] = field(default_factory=lambda: {TRAIN: 0, VALIDATION: 0})


@dataclass(frozen=True)
class Document:
    """A document with its split and the digest of its text."""

    split: str
    text: str
    digest: bytes  # 16 bytes

    def share(self, purpose: int) -> float:
        """Return a number on [0, 1) that depends on the text alone; purposes 0 to 3 are independent."""
        return int.from_bytes(self.digest[4 * purpose : 4 * purpose + 4], "little") / 2**32


FOR_VALIDATION, FOR_FRACTION, FOR_SAMPLE = range(3)  # purposes of `Document.share`


def split_documents(
    corpus: CorpusConfig, training: Source, validation: Source | None, counts: Counts, fraction: float
) -> Iterator[Document]:
    """Yield the documents that are used, validation files first; whitespace around them is dropped.

    Args:
        corpus: settings.
        training: documents to train on (and to hold out from, where `validation` is None).
        validation: documents of `corpus.validation_files`.
        counts: is added to.
        fraction: share of the training documents to keep.
    """
    seen: set[bytes] = set()
    if validation is not None:
        for digest, text in _distinct(validation, seen, counts):
            yield _counted(Document(VALIDATION, text, digest), counts)
    for digest, text in _distinct(training, seen, counts, frozenset(seen)):
        document = Document(TRAIN, text, digest)
        if validation is None and document.share(FOR_VALIDATION) < corpus.validation_fraction:
            document = Document(VALIDATION, text, digest)
        elif document.share(FOR_FRACTION) >= fraction:
            counts.beyond_fraction += 1
            continue
        yield _counted(document, counts)


def _distinct(
    source: Source, seen: set[bytes], counts: Counts, validation: frozenset[bytes] = frozenset()
) -> Iterator[tuple[bytes, str]]:
    for text in source.documents():
        text = text.strip()
        counts.read += 1
        if not text:
            counts.empty += 1
            continue
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest in validation:
            counts.in_validation += 1
        elif digest in seen:
            counts.duplicates += 1
        else:
            seen.add(digest)
            yield digest, text


def _counted(document: Document, counts: Counts) -> Document:
    counts.documents[document.split] += 1
    counts.words[document.split] += sum(len(piece.split()) for piece in pieces(document.text))
    return document


def pieces(text: str) -> Iterator[str]:
    """Cut a long text, which would take many times its size in words or tokens at once.

    A cut is before whitespace, which no tokenizer joins to the word before it, unless there is none.
    """
    start = 0
    while len(text) - start > _PIECE_CHARACTERS:
        cut = _WORD_START.search(text, start + _PIECE_CHARACTERS, start + 2 * _PIECE_CHARACTERS)
        end = cut.start() if cut else start + 2 * _PIECE_CHARACTERS
        yield text[start:end]
        start = end
    yield text[start:]
