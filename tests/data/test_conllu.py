"""CoNLL-U files as they come, files that are none, and words as tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from taco_cli.data.conllu import Tagged, TaggedTokens, read_conllu, tokenize_words

REST = "_\t_\t0\troot\t_\t_"


def test_words_and_tags(tmp_path: Path) -> None:
    """A byte-order mark, Windows line ends, ranges, empty nodes, words without a tag, no line at the end."""
    path = tmp_path / "made.conllu"
    path.write_bytes(
        b"\xef\xbb\xbf# text = don't go\r\n"
        + f"1-2\tdon't\t_\tX\t{REST}\r\n1\tdo\tdo\tAUX\t{REST}\r\n2\tn't\tnot\tPART\t{REST}\r\n".encode()
        + f"2.1\tx\t_\tVERB\t{REST}\r\n3\tgo\tgo\tVERB\t{REST}\r\n4\t?\t?\t_\t{REST}\r\n\r\n \r\n".encode()
        + f"1\tyes\tyes\tINTJ\t{REST}".encode()
    )
    expected = [Tagged(["do", "n't", "go"], ["AUX", "PART", "VERB"]), Tagged(["yes"], ["INTJ"])]
    assert read_conllu(path) == read_conllu(str(path)) == expected


def test_what_is_no_conllu_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "made.conllu"
    path.write_text(f"1\tdo\tdo\tAUX\t{REST}\ndo AUX\n")
    with pytest.raises(ValueError, match=r"made\.conllu, line 2: 1 columns"):
        read_conllu(path)
    path.write_text(f"# text\ndo\t1\tdo\tAUX\t{REST}\n")
    with pytest.raises(ValueError, match=r"made\.conllu, line 2: 'do' is no number of a word"):
        read_conllu(path)
    path.write_text(f"# nothing\n\n1\tdo\tdo\t_\t{REST}\n")
    with pytest.raises(ValueError, match="no sentences"):
        read_conllu(path)
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ValueError, match=r"made\.conllu: cannot be read"):
        read_conllu(path)
    with pytest.raises(ValueError, match=r"missing\.conllu: cannot be read"):
        read_conllu(tmp_path / "missing.conllu")


@pytest.fixture
def word_pieces() -> PreTrainedTokenizerFast:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "ran", "[", "]", "mask"]
    backend = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    backend.add_special_tokens(words[:5])
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", mask_token="[MASK]")


def test_first_piece_of_every_word(word_pieces: PreTrainedTokenizerFast) -> None:
    sentences = [Tagged(["the", "cats", "ran"], ["DET", "NOUN", "VERB"]), Tagged(["cat"], ["NOUN"])]
    long, short = tokenize_words(sentences, word_pieces, 32)
    assert word_pieces.convert_ids_to_tokens(long.ids) == ["[CLS]", "the", "cat", "##s", "ran", "[SEP]"]
    assert (long.places, long.tags) == ([1, 2, 4], ["DET", "NOUN", "VERB"])
    assert short == TaggedTokens([2, 6, 3], [1], ["NOUN"])


def test_words_beyond_the_length_are_left_out(word_pieces: PreTrainedTokenizerFast) -> None:
    (found,) = tokenize_words([Tagged(["cats"] * 9, ["NOUN"] * 9)], word_pieces, 7)
    assert word_pieces.convert_ids_to_tokens(found.ids) == ["[CLS]", "cat", "##s", "cat", "##s", "cat", "[SEP]"]
    assert (found.places, found.tags) == ([1, 3, 5], ["NOUN"] * 3)
    assert word_pieces.backend_tokenizer.truncation is None  # the caller's tokenizer stays as it is


def test_a_mask_spelled_out_is_text(word_pieces: PreTrainedTokenizerFast) -> None:
    (found,) = tokenize_words([Tagged(["[MASK]", "ran"], ["X", "VERB"])], word_pieces, 32)
    assert word_pieces.mask_token_id not in found.ids
    assert (found.places, found.tags) == ([1, 4], ["X", "VERB"])


def test_a_word_without_pieces_has_no_place() -> None:
    backend = Tokenizer(models.WordLevel({"cat": 0, "[UNK]": 1}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    (found,) = tokenize_words([Tagged(["\u00a0", "cat"], ["X", "NOUN"])], tokenizer, 8)
    assert found == TaggedTokens([0], [0], ["NOUN"])


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
    (found,) = tokenize_words([Tagged(["the", "cat", "ran"], ["DET", "NOUN", "VERB"])], tokenizer, 32)
    assert found.ids == tokenizer("the cat ran")["input_ids"]  # as in running text
    assert tokenizer.convert_ids_to_tokens([found.ids[i] for i in found.places]) == ["the", "Ġcat", "Ġran"]
    assert found.tags == ["DET", "NOUN", "VERB"]
