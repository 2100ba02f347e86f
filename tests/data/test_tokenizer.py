from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from taco_cli.config.schema import TokenizerConfig
from taco_cli.data import tokenizer as subject
from taco_cli.data.split import TRAIN, Document

from .conftest import made_up_texts

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TRAIN_IN_ANOTHER_PROCESS = """
from taco_cli.config.schema import TokenizerConfig
from taco_cli.data.tokenizer import train
from tests.data.test_tokenizer import TEXTS, documents
print("\\n".join(train(documents(TEXTS), TokenizerConfig(vocab_size=300))))
"""
TEXTS = [*made_up_texts(80), "Café, naïve: 10 °C 京都 x²!", "ÄÖÜ and 50 % of e-mail"]


def documents(texts: list[str]) -> list[Document]:
    return [Document(TRAIN, text, hashlib.blake2b(text.encode(), digest_size=16).digest()) for text in texts]


def train(texts: list[str], **settings: float) -> list[str]:
    return subject.train(documents(texts), TokenizerConfig(**{"vocab_size": 300, **settings}))  # type: ignore[arg-type]


def test_training_gives_special_tokens_first_then_pieces_up_to_the_size() -> None:
    pieces = train(TEXTS)
    assert pieces[:5] == SPECIAL
    assert len(pieces) == len(set(pieces)) == 300
    assert any(piece.startswith("##") and len(piece) > 3 for piece in pieces)


def test_training_depends_on_the_set_of_documents_alone() -> None:
    pieces = train(TEXTS)
    assert train(TEXTS[::-1]) == pieces
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", TRAIN_IN_ANOTHER_PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, encoding="utf-8")
    assert done.stdout.rstrip("\n").split("\n") == pieces


def test_every_frequent_character_has_a_piece_so_no_word_is_unknown() -> None:
    tokenizer = subject.bert_tokenizer(train(TEXTS))
    for text in TEXTS:
        assert "[UNK]" not in tokenizer.tokenize(text)


def test_the_trained_tokenizer_is_uncased_bert(tmp_path: Path) -> None:
    tokenizer = subject.bert_tokenizer(train(TEXTS))
    tokenizer.model_max_length = 32
    ids = tokenizer("Café NAÏVE")["input_ids"]
    assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id) == (2, 3)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "cafe naive"
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(str(tmp_path))
    assert again("Café NAÏVE")["input_ids"] == ids
    assert again.model_max_length == 32
    assert subject.fingerprint(again) == subject.fingerprint(tokenizer)


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.vocab_size=100: at least 128"):
        train(TEXTS, vocab_size=100)
    assert len(train(TEXTS, vocab_size=128)) == 128


def test_the_sample_is_bounded_and_spread_over_the_corpus() -> None:
    texts = made_up_texts(200)
    size = sum(map(len, texts))
    found = subject.sample(documents(texts), size / 4 / 1e6)
    assert 0.2 * size < sum(map(len, found)) <= size / 4
    places = [texts.index(text) for text in found]
    assert 70 < sum(places) / len(places) < 130
    assert subject.sample(documents(texts[::-1]), size / 4 / 1e6) == found


def test_a_document_larger_than_the_sample_is_cut() -> None:
    assert subject.sample(documents(["abcdefghij" * 100]), 50e-6) == ["abcdefghij" * 5]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    subject.save_vocabulary(train(TEXTS), folder)
    return folder / "vocab.txt"


def test_a_vocabulary_a_tokenizer_file_and_folders_load_alike(vocabulary: Path, tmp_path: Path) -> None:
    from_vocabulary = subject.load(str(vocabulary))
    whole, bare = tmp_path / "whole", tmp_path / "bare"
    from_vocabulary.save_pretrained(whole)
    bare.mkdir()
    (bare / "tokenizer.json").write_bytes((whole / "tokenizer.json").read_bytes())
    text = "Café, naïve: 10 °C"
    for path in (whole, bare, bare / "tokenizer.json", vocabulary.parent):
        loaded = subject.load(str(path))
        assert loaded(text)["input_ids"] == from_vocabulary(text)["input_ids"]
        assert (loaded.mask_token_id, loaded.pad_token_id) == (4, 0)
        assert subject.fingerprint(loaded) == subject.fingerprint(from_vocabulary)


def roberta_file(folder: Path, names: list[str]) -> Path:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(special_tokens=names, initial_alphabet=alphabet, show_progress=False, vocab_size=400)
    tokenizer.train_from_iterator(TEXTS, trainer)
    if "<s>" in names:
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", names.index("</s>")), ("<s>", names.index("<s>"))
        )
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_roberta_names_serve_as_cls_sep_mask_and_pad(tmp_path: Path) -> None:
    loaded = subject.load(str(roberta_file(tmp_path, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])))
    assert [loaded.cls_token, loaded.pad_token, loaded.sep_token] == ["<s>", "<pad>", "</s>"]
    assert (loaded.mask_token_id, loaded.unk_token_id) == (4, 3)


def test_missing_special_tokens_are_named(tmp_path: Path) -> None:
    path = roberta_file(tmp_path, ["<pad>", "</s>", "<unk>"])
    with pytest.raises(ValueError, match=r"tokenizer\.json has no token for cls, mask"):
        subject.load(str(path))
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\nword\n")
    with pytest.raises(ValueError, match=r"vocab\.txt lacks \[CLS\], \[SEP\], \[MASK\]"):
        subject.load(str(tmp_path / "vocab.txt"))
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\nand\nword\n")
    with pytest.raises(ValueError, match=r"vocab\.txt: line 8 repeats 'word' of line 6"):
        subject.load(str(tmp_path / "vocab.txt"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", r"tokenizer\.path is empty"),
        ("{tmp}/none.txt", r"there is no such file"),
        ("{tmp}/none.json", r"there is no such file"),
        ("{tmp}/bad.json", r"is no tokenizer\.json"),
        ("{tmp}", r"no tokenizer_config\.json, tokenizer\.json or vocab\.txt"),
        ("no/such-name", r"tokenizer\.path=no/such-name cannot be loaded"),
    ],
)
def test_what_cannot_be_loaded_is_named(
    tmp_path: Path, path: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ValueError, match=message):
        subject.load(path.format(tmp=tmp_path))


def test_the_fingerprint_sees_vocabulary_and_roles_but_not_lengths(vocabulary: Path) -> None:
    loaded = subject.load(str(vocabulary))
    first = subject.fingerprint(loaded)
    loaded.model_max_length = 7
    loaded("text", truncation=True, max_length=3)
    assert subject.fingerprint(loaded) == first
    other = subject.bert_tokenizer([*vocabulary.read_text().split("\n")[:-2], "different"])
    assert subject.fingerprint(other) != first
    changed: PreTrainedTokenizerFast = subject.load(str(vocabulary))
    changed.sep_token = "[CLS]"
    assert subject.fingerprint(changed) != first
