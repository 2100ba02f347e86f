"""Words with their part of speech from CoNLL-U files, one list per sentence."""

from __future__ import annotations

from pathlib import Path

Sentence = list[tuple[str, str]]  # (word, universal part of speech)


def read_conllu(path: str) -> list[Sentence]:
    """Return the sentences of a CoNLL-U file: columns FORM and UPOS of its words.

    Multiword tokens (``3-4``) and empty nodes (``5.1``) are left out, as are words without a tag (``_``).

    Raises:
        ValueError: no file, a line that is not CoNLL-U (its number is named), or no sentence.
    """
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as a CoNLL-U file ({error})") from error
    sentences: list[Sentence] = [[]]
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\r")
        if not line:
            sentences.append([])
        elif not line.startswith("#"):
            sentences[-1] += _word(line.split("\t"), f"{path}, line {number}")
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise ValueError(f"{path}: no sentence with tagged words in it; take a CoNLL-U file with the UPOS column")
    return sentences


def _word(columns: list[str], where: str) -> Sentence:
    if len(columns) != 10:
        raise ValueError(f"{where}: {len(columns)} columns, CoNLL-U has 10 separated by tabs")
    index, form, tag = columns[0], columns[1], columns[3]
    return [] if "-" in index or "." in index or tag == "_" else [(form, tag)]
