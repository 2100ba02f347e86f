"""Words with their parts of speech, from Universal Dependencies' CoNLL-U files, and their tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

_COLUMNS = 10
_NO_TAG = "_"
_WORD = re.compile(r"[0-9]+")
_NO_WORD = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")  # multi-word token, empty node


@dataclass(frozen=True)
class Tagged:
    """One sentence: words and their universal part-of-speech tags."""

    words: list[str]
    tags: list[str]


@dataclass(frozen=True)
class TaggedTokens:
    """One sentence as token ids, with the position and the tag of the first piece of every word that has one."""

    ids: list[int]
    places: list[int]
    tags: list[str]


def read_conllu(path: str | Path) -> list[Tagged]:
    """Read the sentences: columns FORM and UPOS.

    Multi-word tokens (``3-4``) and empty nodes (``5.1``) are left out, for their words are there one by one; so are
    words without a tag (``_``).

    Raises:
        ValueError: no such file, a line that is not CoNLL-U (it is named), or no sentence.
    """
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as a CoNLL-U file ({error})") from error
    sentences = [Tagged([], [])]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            sentences.append(Tagged([], []))
        elif not line.startswith("#"):
            for word, tag in _words(line, f"{path}, line {number}"):
                sentences[-1].words.append(word)
                sentences[-1].tags.append(tag)
    sentences = [sentence for sentence in sentences if sentence.words]
    if not sentences:
        raise ValueError(f"{path}: has no sentences with tagged words; give a CoNLL-U file with the UPOS column")
    return sentences


def tokenize_words(
    sentences: Sequence[Tagged], tokenizer: PreTrainedTokenizerFast, length: int
) -> Iterator[TaggedTokens]:
    """Yield the sentences as token ids, with special tokens, cut to ``length``; ``[MASK]`` spelled out is text."""
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())  # the caller's stays as it is
    backend.no_padding()
    backend.enable_truncation(length)
    backend.encode_special_tokens = True
    # Byte-level tokenizers write the space before a word into its first piece; others drop it.
    spaced = [[sentence.words[0], *(f" {word}" for word in sentence.words[1:])] for sentence in sentences]
    for sentence, encoding in zip(sentences, backend.encode_batch(spaced, is_pretokenized=True), strict=True):
        first: dict[int, int] = {}
        for place, word in enumerate(encoding.word_ids):
            if word is not None:
                first.setdefault(word, place)
        yield TaggedTokens(encoding.ids, list(first.values()), [sentence.tags[word] for word in first])


def _words(line: str, where: str) -> Iterator[tuple[str, str]]:
    fields = line.split("\t")
    if len(fields) != _COLUMNS:
        raise ValueError(f"{where}: {len(fields)} columns; CoNLL-U has {_COLUMNS}, separated by tabs")
    number, form, tag = fields[0], fields[1], fields[3]
    if not _WORD.fullmatch(number) and not _NO_WORD.fullmatch(number):
        raise ValueError(f"{where}: {number!r} is no number of a word; CoNLL-U has 3, 3-4 or 3.1 in the first column")
    if _WORD.fullmatch(number) and tag != _NO_TAG:
        yield form, tag
