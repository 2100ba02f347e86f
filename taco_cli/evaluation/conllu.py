"""The treebank of the part-of-speech probe, and its sentences as batches of tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from taco_cli.data.conllu import Tagged, tokenize_words
from taco_cli.evaluation.tokens import IntArray, Tokens


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


def first_pieces(
    sentences: list[Tagged], tokenizer: PreTrainedTokenizerFast, length: int
) -> tuple[Tokens, list[IntArray], list[str]]:
    """Tokenize sentences word by word.

    Returns:
        the sequences; for each, the position of the first piece of every word that has one within `length`;
        and the tags of those words, in the same order.
    """
    encoded = list(tokenize_words(sentences, tokenizer, length))
    starts = np.concatenate([[0], np.cumsum([len(one.ids) for one in encoded])]).astype(np.int64)
    assert isinstance(tokenizer.pad_token_id, int)
    flat = np.array([i for one in encoded for i in one.ids], dtype=np.int32)
    places = [np.array(one.places, dtype=np.int64) for one in encoded]
    return Tokens(flat, starts, tokenizer.pad_token_id), places, [tag for one in encoded for tag in one.tags]
