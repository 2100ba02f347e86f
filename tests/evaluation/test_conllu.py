from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from taco_cli.evaluation.conllu import Tagged, find_treebank, first_pieces, read_conllu
from taco_cli.evaluation.model import Model


def test_words_and_tags_without_ranges(data_dir: Path) -> None:
    train, dev = find_treebank(str(data_dir))
    assert (len(read_conllu(train)), len(read_conllu(dev))) == (60, 20)
    assert all("can't" not in sentence.words for sentence in read_conllu(train))
    assert all(len(sentence.words) == len(sentence.tags) for sentence in read_conllu(dev))


def test_last_sentence_without_an_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "x.conllu"
    path.write_text("1\tcat\t_\tNOUN\t_\t_\t0\t_\t_\t_")
    assert read_conllu(path) == [Tagged(["cat"], ["NOUN"])]


def test_errors_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "x.conllu"
    path.write_text("# text\n1\tcat\n")
    with pytest.raises(ValueError, match=r"x\.conllu, line 2: 2 columns"):
        read_conllu(path)
    path.write_text("\n")
    with pytest.raises(ValueError, match="no sentences"):
        read_conllu(path)
    with pytest.raises(ValueError, match=r"0 files match .*ud-ewt"):
        find_treebank(str(tmp_path))


def test_first_piece_of_every_word(model: Model) -> None:
    sentences = [Tagged(["the", "cats", "ran"], ["DET", "NOUN", "VERB"]), Tagged(["a"], ["DET"])]
    tokens, places, tags = first_pieces(sentences, model.tokenizer, 32)
    ids, _ = tokens.batch([0])
    pieces = model.tokenizer.convert_ids_to_tokens(ids[0].tolist())
    assert pieces == ["[CLS]", "the", "cat", "##s", "ran", "[SEP]"]
    assert [pieces[i] for i in places[0]] == ["the", "cat", "ran"]
    assert places[1].tolist() == [1]
    assert tags == ["DET", "NOUN", "VERB", "DET"]


def test_words_beyond_the_length_are_left_out(model: Model) -> None:
    tokens, places, tags = first_pieces([Tagged(["cat"] * 50, ["NOUN"] * 50)], model.tokenizer, 12)
    assert tokens.lengths.tolist() == [12]
    assert len(places[0]) == len(tags) == 10


def test_byte_level_words_begin_with_their_space() -> None:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        special_tokens=["<s>", "</s>", "<pad>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(["the cat ran", "the cat ran"], trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", mask_token="<mask>")
    sentence = Tagged(["the", "cat", "ran"], ["DET", "NOUN", "VERB"])
    tokens, [places], tags = first_pieces([sentence], tokenizer, 32)
    ids = tokens.batch([0])[0][0].tolist()
    assert ids == tokenizer("the cat ran")["input_ids"]  # as in running text
    assert tokenizer.convert_ids_to_tokens([ids[i] for i in places]) == ["the", "Ġcat", "Ġran"]
    assert tags == sentence.tags
