from __future__ import annotations

from pathlib import Path

import pytest

from taco_cli.data.conllu import Tagged, read_conllu
from taco_cli.evaluation.conllu import find_treebank, first_pieces
from taco_cli.evaluation.model import Model


def test_treebank_is_found(data_dir: Path) -> None:
    train, dev = find_treebank(str(data_dir))
    assert (len(read_conllu(train)), len(read_conllu(dev))) == (60, 20)
    assert all("can't" not in sentence.words for sentence in read_conllu(train))


def test_missing_treebank_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"0 files match .*ud-ewt"):
        find_treebank(str(tmp_path))
    with pytest.raises(ValueError, match="give data_dir="):
        find_treebank(None)


def test_sentences_one_after_the_other(model: Model) -> None:
    sentences = [Tagged(["the", "cats", "ran"], ["DET", "NOUN", "VERB"]), Tagged(["a"], ["DET"])]
    tokens, places, tags = first_pieces(sentences, model.tokenizer, 32)
    ids, _ = tokens.batch([0])
    pieces = model.tokenizer.convert_ids_to_tokens(ids[0].tolist())
    assert pieces == ["[CLS]", "the", "cat", "##s", "ran", "[SEP]"]
    assert tokens.lengths.tolist() == [6, 3]
    assert [pieces[i] for i in places[0]] == ["the", "cat", "ran"]
    assert places[1].tolist() == [1]
    assert tags == ["DET", "NOUN", "VERB", "DET"]
