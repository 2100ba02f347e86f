from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from taco_cli.data import encode, split
from taco_cli.data.encode import Encoder
from taco_cli.data.tokenizer import bert_tokenizer, load

from .conftest import made_up_texts
from .test_tokenizer import roberta_file, train

TEXTS = [*made_up_texts(50), "[mask] [cls] [sep] [pad] [unk]"]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerFast:
    if request.param == "bert":
        return bert_tokenizer(train(TEXTS))
    folder = tmp_path_factory.mktemp("roberta")
    return load(str(roberta_file(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])))


def test_ids_are_those_of_the_tokenizer_in_order(
    tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "_CHUNK_CHARACTERS", 1000)
    found = list(Encoder(tokenizer).stream(enumerate(TEXTS)))
    assert [label for label, _ in found] == list(range(len(TEXTS)))
    for text, (_, ids) in zip(TEXTS, found, strict=True):
        assert ids.tolist() == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_no_documents(tokenizer: PreTrainedTokenizerFast) -> None:
    assert list(Encoder(tokenizer).stream([])) == []


def test_long_documents_are_tokenised_in_pieces_without_a_trace(
    tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n ".join(TEXTS[:20])
    (whole,) = Encoder(tokenizer).encode([text])
    monkeypatch.setattr(split, "_PIECE_CHARACTERS", 100)
    monkeypatch.setattr(encode, "_CHUNK_CHARACTERS", 250)
    (in_pieces,) = Encoder(tokenizer).encode([text])
    assert np.array_equal(in_pieces, whole)


def test_special_tokens_spelled_out_in_the_text_stay_text(tokenizer: PreTrainedTokenizerFast) -> None:
    text = "".join(f"a {token} b{token}c " for token in tokenizer.all_special_tokens)
    (ids,) = Encoder(tokenizer).encode([text])
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    assert special
    assert not special & set(ids.tolist())
    spelled = tokenizer.decode(ids).replace(" ", "").lower()
    assert "mask" in spelled
    # The tokenizer itself does otherwise, so the test would notice.
    assert special & set(tokenizer(text, add_special_tokens=False)["input_ids"])
    assert tokenizer.backend_tokenizer.encode_special_tokens is False


def test_a_special_token_that_is_a_word_of_the_vocabulary_is_left_out() -> None:
    backend = Tokenizer(
        models.WordLevel({"[UNK]": 0, "[MASK]": 1, "[CLS]": 2, "[SEP]": 3, "[PAD]": 4, "a": 5}, "[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "mask", "cls", "sep", "pad")}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **named)
    (ids,) = Encoder(tokenizer).encode(["a [MASK] b [SEP] a"])
    assert ids.tolist() == [5, 0, 5]


def test_the_callers_truncation_does_not_count(tmp_path: Path) -> None:
    tokenizer = bert_tokenizer(train(TEXTS))
    tokenizer(TEXTS[0], truncation=True, max_length=4, padding="max_length")
    (ids,) = Encoder(tokenizer).encode([TEXTS[0]])
    assert len(ids) > 50
