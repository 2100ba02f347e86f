"""Weights from elsewhere and the ids of their tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from taco_cli.config.schema import EncoderConfig
from taco_cli.data.tokenizer import bert_tokenizer
from taco_cli.training.vocabulary import refuse_other_vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
OURS = bert_tokenizer([*SPECIAL, "a", "b"])


@pytest.mark.parametrize("key", ["path", "word_embeddings_from"])
def test_the_same_id_must_be_the_same_token(tmp_path: Path, key: str, caplog: pytest.LogCaptureFixture) -> None:
    run = tmp_path / "run"
    config = EncoderConfig(**{key: str(run)})
    bert_tokenizer([*SPECIAL, "a", "b", "c"]).save_pretrained(run / "hf" / "step-000001")
    refuse_other_vocabulary(config, OURS)  # more tokens than we use
    bert_tokenizer([*SPECIAL, "b", "a"]).save_pretrained(run / "hf" / "step-000002")
    with pytest.raises(ValueError, match=rf"encoder\.{key}=.*: token 5 is 'b' there and 'a' in this run's"):
        refuse_other_vocabulary(config, OURS)
    assert not caplog.records


def test_no_tokenizer_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    refuse_other_vocabulary(EncoderConfig(path=str(tmp_path)), OURS)
    assert "has no tokenizer" in caplog.text


def test_weights_of_our_own_are_not_asked(caplog: pytest.LogCaptureFixture) -> None:
    refuse_other_vocabulary(EncoderConfig(), OURS)
    assert not caplog.records
