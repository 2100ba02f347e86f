"""Words with their parts of speech, from Universal Dependencies' CoNLL-U files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from taco_cli.evaluation.tokens import IntArray, Tokens

_COLUMNS = 10


@dataclass(frozen=True)
class Tagged:
    """One sentence: words and their universal part-of-speech tags."""

    words: list[str]
    tags: list[str]


def find_treebank(data_dir: str | None) -> tuple[Path, Path]:
    """Return the files of training and of scoring, ``ud-ewt/*-train.conllu`` and ``*-dev.conllu``.

    Raises:
        ValueError: they are not there.
    """
    if data_dir is None:
        raise ValueError(
            "task pos_probe: give data_dir=<folder> with ud-ewt/en_ewt-ud-train.conllu and -dev.conllu in it"
        )
    folder = Path(data_dir).expanduser() / "ud-ewt"
    found = []
    for split in ("train", "dev"):
        files = sorted(folder.glob(f"*-{split}.conllu"))
        if len(files) != 1:
            raise ValueError(
                f"task pos_probe: {len(files)} files match {folder / f'*-{split}.conllu'}, and one is needed; "
                "correct data_dir"
            )
        found.append(files[0])
    return found[0], found[1]


def read_conllu(path: Path) -> list[Tagged]:
    """Read the sentences; multi-word tokens and empty nodes are left out, their words are there one by one.

    Raises:
        ValueError: a line has not the ten columns (file and line are named), or there is no sentence.
    """
    sentences, words, tags = [], list[str](), list[str]()
    for number, line in enumerate([*path.read_text(encoding="utf-8").split("\n"), ""], start=1):
        if not line.strip():
            if words:
                sentences.append(Tagged(words, tags))
                words, tags = [], []
            continue
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != _COLUMNS:
            raise ValueError(f"{path}, line {number}: {len(fields)} columns; CoNLL-U has {_COLUMNS}")
        if fields[0].isdecimal():
            words.append(fields[1])
            tags.append(fields[3])
    if not sentences:
        raise ValueError(f"{path}: has no sentences")
    return sentences


def first_pieces(
    sentences: list[Tagged], tokenizer: PreTrainedTokenizerFast, length: int
) -> tuple[Tokens, list[IntArray], list[str]]:
    """Tokenize sentences word by word.

    Returns:
        the sequences; for each, the position of the first piece of every word that has one within `length`;
        and the tags of those words, in the same order.
    """
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_padding()
    backend.enable_truncation(length)
    backend.encode_special_tokens = True
    # Byte-level tokenizers write the space before a word into its first piece; others drop it.
    spaced = [[words[0], *(f" {word}" for word in words[1:])] for words in (sentence.words for sentence in sentences)]
    encodings = backend.encode_batch(spaced, is_pretokenized=True)
    places, tags = [], list[str]()
    for sentence, encoding in zip(sentences, encodings, strict=True):
        first = {word: i for i, word in reversed(list(enumerate(encoding.word_ids))) if word is not None}
        known = sorted(first)
        places.append(np.array([first[word] for word in known], dtype=np.int64))
        tags += [sentence.tags[word] for word in known]
    starts = np.concatenate([[0], np.cumsum([len(e.ids) for e in encodings])]).astype(np.int64)
    assert isinstance(tokenizer.pad_token_id, int)
    flat = np.array([i for encoding in encodings for i in encoding.ids], dtype=np.int32)
    return Tokens(flat, starts, tokenizer.pad_token_id), places, tags
