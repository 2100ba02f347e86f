from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast, pipeline

from taco_cli.config.schema import Architecture, EncoderConfig
from taco_cli.encoder import Encoder, build_encoder, export

from .conftest import Facts

ARCHITECTURES = ["bert", "roberta", "modernbert"]
FACTS: dict[str, Any] = {
    "name": "pretrain/taco/seed_1",
    "objective": "taco",
    "steps": 300,
    "tokens": 1_228_800,
    "corpus": {"name": "docstrings", "documents": 12345, "licences": "MIT | BSD"},
    "metrics": {"val/mlm": 4.2411111},
    "config": {"seed": 1},
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_round_trip_through_hugging_face(
    build: Callable[..., Encoder], tokenizer: PreTrainedTokenizerFast, tmp_path: Path, architecture: str
) -> None:
    encoder = build(architecture).eval()
    encoder.set_compiled(True)  # not called, so nothing is compiled: names must stay as they are
    folder = export(encoder, tokenizer, tmp_path / "hf" / "step-000300", FACTS)
    names = load_file(folder / "model.safetensors")
    assert not [name for name in names if "_orig_mod" in name]
    assert sum(tensor.shape == (64, 32) for tensor in names.values()) == 1  # tied: stored once

    model, loading = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    loaded_tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = loaded_tokenizer("w1 w2 [MASK] w4", return_tensors="pt")
    expected = encoder.logits(encoder(ids["input_ids"]).hidden_states)
    torch.testing.assert_close(model.eval()(**ids).logits, expected, rtol=1e-5, atol=1e-5)
    assert len(pipeline("fill-mask", model=model, tokenizer=loaded_tokenizer)("w1 w2 [MASK] w4")) == 5
    assert (model.config.pad_token_id, loaded_tokenizer.pad_token_id) == (0, 0)

    config = EncoderConfig(architecture=Architecture.hf, path=str(folder))
    again = build_encoder(config, Facts(), 24, seed=9)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in encoder.state_dict().items())


def test_modernbert_configuration_says_the_same_to_older_versions(
    build: Callable[..., Encoder], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    import json

    config = json.loads((export(build("modernbert"), tokenizer, tmp_path / "hf", FACTS) / "config.json").read_text())
    assert config["global_attn_every_n_layers"] == 1
    assert config["global_rope_theta"] == config["rope_parameters"]["full_attention"]["rope_theta"] == 10_000.0
    assert config["layer_types"] == ["full_attention"] * 2
    assert config["sep_token_id"] == tokenizer.sep_token_id


def test_body_loads_alone_and_the_card_says_what_is_missing(
    build: Callable[..., Encoder], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    folder = export(build("bert"), tokenizer, tmp_path / "hf", FACTS)
    _, loading = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert all("pooler" in name for name in loading["missing_keys"])
    assert "no trained pooler" in (folder / "README.md").read_text()


def test_card_tells_the_run(build: Callable[..., Encoder], tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    card = (export(build("bert"), tokenizer, tmp_path / "hf", FACTS) / "README.md").read_text()
    front = card.split("---")[1]
    assert "library_name: transformers" in front
    assert "pipeline_tag: fill-mask" in front
    for words in (
        "`taco`",
        "1,228,800",
        "12,345",
        "4.24111",
        "MIT \\| BSD",
        '"seed": 1',
        "[MASK] is here",
        "License",
    ):
        assert words in card


def test_failure_leaves_the_old_export_and_nothing_else(
    build: Callable[..., Encoder],
    tokenizer: PreTrainedTokenizerFast,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = build("bert")
    folder = export(encoder, tokenizer, tmp_path / "hf", FACTS)
    before = (folder / "README.md").read_text()

    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(type(tokenizer), "save_pretrained", full_disk)
    with pytest.raises(OSError, match="no space left"):
        export(encoder, tokenizer, folder, FACTS | {"steps": 301})
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]
    assert (folder / "README.md").read_text() == before


def test_a_newer_export_replaces_the_old_one(
    build: Callable[..., Encoder], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    folder = export(build("bert"), tokenizer, tmp_path / "hf", FACTS)
    export(build("bert"), tokenizer, folder, FACTS | {"steps": 999})
    assert "| steps | 999 |" in (folder / "README.md").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_tokenizer_with_more_tokens_is_refused(
    facts: Facts, sizes: Callable[..., EncoderConfig], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    encoder = build_encoder(sizes(), Facts(vocab_size=60), 24, 1)
    with pytest.raises(ValueError, match="tokenizer has 64 tokens, the encoder 60"):
        export(encoder, tokenizer, tmp_path / "hf", FACTS)
