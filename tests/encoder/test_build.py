from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    GPT2Config,
)

from taco_cli.config.schema import Architecture, EncoderConfig
from taco_cli.encoder import Encoder, build_encoder
from taco_cli.encoder.adapters import ADAPTERS

from .conftest import Facts

Sizes = Callable[..., EncoderConfig]
TINY = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}


def from_path(path: Path, **changes: Any) -> EncoderConfig:
    return EncoderConfig(architecture=Architecture.hf, path=str(path), **changes)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_weights_depend_on_the_seed_alone(build: Callable[..., Encoder], architecture: str) -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first = build(architecture).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    second, other = build(architecture).state_dict(), build(architecture, seed=2).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_decoder_is_tied_to_the_word_embeddings(build: Callable[..., Encoder], architecture: str) -> None:
    encoder = build(architecture)
    assert encoder.decoder_weight is encoder.word_embeddings
    assert encoder.word_embeddings.shape == (64, 32)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_sizes_dropout_and_ids_reach_the_model(build: Callable[..., Encoder], architecture: str) -> None:
    encoder = build(architecture, dropout=0.25)
    config = encoder.model.config
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == (2, 32, 4)
    assert (config.intermediate_size, config.vocab_size, config.pad_token_id) == (48, 64, 0)
    assert {getattr(config, name) for name in ADAPTERS[architecture].dropout} == {0.25}
    assert encoder.positions == 40


def test_positions_default_to_512_or_what_is_needed(build: Callable[..., Encoder]) -> None:
    assert build(positions=None).positions == 512
    assert build(positions=None, length=600).positions == 600


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 30}, "encoder.hidden_size=30 is not a multiple of encoder.heads=4"),
        ({"layers": None}, "encoder.layers=None"),
        ({"heads": 0}, "encoder.heads=0"),
        ({"positions": 20}, "sequence_length=24 is more than encoder.positions=20"),
        ({"dropout": 1.0}, "encoder.dropout=1.0"),
        ({"architecture": "modernbert", "hidden_size": 36, "heads": 4}, "is odd"),
    ],
)
def test_sizes_that_do_not_fit_name_the_keys(build: Callable[..., Encoder], changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(changes.pop("architecture", "bert"), **changes)


class TestCheckpoint:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        torch.manual_seed(0)
        BertForMaskedLM(BertConfig(**TINY)).save_pretrained(tmp_path)
        return tmp_path

    def test_loads_what_was_saved(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        encoder = build_encoder(from_path(folder, dropout=0.0), Facts(), 40, 1)
        saved = AutoModelForMaskedLM.from_pretrained(folder).state_dict()
        assert all(torch.equal(value, saved[name]) for name, value in encoder.model.state_dict().items())
        assert encoder.decoder_weight is encoder.word_embeddings
        assert encoder.model.config.hidden_dropout_prob == 0.0
        assert not caplog.records

    def test_trains_with_dropout(self, folder: Path) -> None:
        assert all(module.training for module in build_encoder(from_path(folder), Facts(), 40, 1).modules())

    def test_body_alone_gets_a_fresh_head_and_a_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        body = BertModel(BertConfig(**TINY), add_pooling_layer=True)
        body.save_pretrained(tmp_path)
        with caplog.at_level(logging.WARNING):
            encoder = build_encoder(from_path(tmp_path), Facts(), 24, 1)
        (record,) = caplog.records
        assert "no masked-LM head" in record.getMessage()
        assert "cls.predictions.transform.dense.weight" in record.getMessage()
        assert torch.equal(encoder.word_embeddings, body.embeddings.word_embeddings.weight)
        again = build_encoder(from_path(tmp_path), Facts(), 24, 1)
        head = again.model.cls.predictions.transform.dense.weight
        assert torch.equal(encoder.model.cls.predictions.transform.dense.weight, head)

    def test_pretraining_heads_that_are_not_used_are_no_news(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        BertForPreTraining(BertConfig(**TINY)).save_pretrained(tmp_path)
        build_encoder(from_path(tmp_path), Facts(), 24, 1)
        assert not caplog.records

    def test_unknown_weights_are_reported(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        change_weights(folder, lambda weights: weights.update({"adapter.weight": torch.ones(3)}))
        build_encoder(from_path(folder), Facts(), 24, 1)
        assert "adapter.weight" in caplog.text

    def test_incomplete_body_is_refused(self, folder: Path) -> None:
        change_weights(folder, lambda weights: weights.pop("bert.encoder.layer.1.output.dense.weight"))
        with pytest.raises(ValueError, match=r"lacks 1 weights of the body.*layer.1.output.dense.weight"):
            build_encoder(from_path(folder), Facts(), 24, 1)

    def test_body_of_another_shape_is_refused(self, folder: Path) -> None:
        name = "bert.encoder.layer.1.output.dense.weight"
        change_weights(folder, lambda weights: weights.update({name: torch.ones(3, 3)}))
        with pytest.raises(ValueError, match=name):
            build_encoder(from_path(folder), Facts(), 24, 1)

    @pytest.mark.parametrize(
        ("facts", "changes", "message"),
        [
            (Facts(vocab_size=65), {}, "vocabulary of 64, the tokenizer one of 65"),
            (Facts(vocab_size=64, pad_id=1), {}, "pads with token 0, the tokenizer with 1"),
            (Facts(), {"layers": 3}, "has layers 2, but encoder.layers=3"),
            (Facts(), {"positions": 99}, "has positions 40, but encoder.positions=99"),
        ],
    )
    def test_mismatch_names_both_sides(self, folder: Path, facts: Facts, changes: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            build_encoder(from_path(folder, **changes), facts, 24, 1)

    def test_longer_sequences_than_positions_are_refused(self, folder: Path) -> None:
        with pytest.raises(ValueError, match=r"sequence_length=41 is more than encoder\.positions=40"):
            build_encoder(from_path(folder), Facts(), 41, 1)

    def test_unknown_architecture_lists_the_known_ones(self, tmp_path: Path) -> None:
        GPT2Config().save_pretrained(tmp_path)
        with pytest.raises(ValueError, match=r"'gpt2'; known: bert, .*modernbert"):
            build_encoder(from_path(tmp_path), Facts(), 24, 1)

    def test_nothing_there_names_the_key(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"encoder\.path"):
            build_encoder(from_path(tmp_path / "nowhere"), Facts(), 24, 1)
        with pytest.raises(ValueError, match=r"encoder\.path is empty"):
            build_encoder(EncoderConfig(architecture=Architecture.hf), Facts(), 24, 1)


OTHERS = {
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "electra": {"embedding_size": 16},
    "camembert": {},
    "xlm-roberta": {},
}


@pytest.mark.parametrize("model_type", OTHERS)
def test_other_architectures_work_by_hugging_faces_forward(tmp_path: Path, model_type: str) -> None:
    keys = TINY if model_type != "distilbert" else {"vocab_size": 64, "max_position_embeddings": 40, "pad_token_id": 0}
    config = AutoConfig.for_model(model_type, **(keys | OTHERS[model_type]))
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    encoder = build_encoder(from_path(tmp_path), Facts(), 24, 1).eval()
    ids = torch.randint(5, 64, (2, 24))
    real = torch.arange(24) < torch.tensor([24, 9])[:, None]
    ids = ids.masked_fill(~real, 0)
    output = encoder(ids, real)
    assert output.embeddings.shape == output.hidden_states.shape == (2, 24, 32)
    expected = encoder.model(ids, attention_mask=real).logits
    torch.testing.assert_close(encoder.logits(output.hidden_states[real]), expected[real], rtol=1e-5, atol=1e-5)
    assert encoder.decoder_weight is encoder.word_embeddings


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
