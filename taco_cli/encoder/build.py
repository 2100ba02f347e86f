"""From configuration to :class:`Encoder`: built from sizes, or loaded from a Hugging Face checkpoint."""

from __future__ import annotations

import logging
from typing import Any

import torch

from taco_cli.config.schema import Architecture, Attention, EncoderConfig, WordEmbeddings
from taco_cli.encoder.adapters import Adapter, TokenizerFacts, find_adapter, longest
from taco_cli.encoder.encoder import Encoder, positions_of
from taco_cli.encoder.quiet import quiet_transformers
from taco_cli.encoder.tables import copy_word_embeddings

logger = logging.getLogger(__name__)

# A checkpoint may have more rows than its tokenizer has tokens: tables are padded for speed.
_MOST_SPARE_ROWS = 128
# Parts of checkpoints that masked language modelling does not use.
_UNUSED_PARTS = ("pooler", "seq_relationship", "position_ids", "token_type_ids")


def build_encoder(config: EncoderConfig, tokenizer_facts: TokenizerFacts, sequence_length: int, seed: int) -> Encoder:
    """Build or load the encoder that ``config`` describes.

    Weights that no checkpoint gives are a function of ``seed`` alone; the global random state stays as it is.

    Raises:
        ValueError: for sizes that do not fit together, an unknown architecture, a checkpoint that does not fit the
            tokenizer or the configuration, or that lacks weights of the body.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if config.architecture is Architecture.hf:
            model, adapter = _load(config, tokenizer_facts)
        else:
            model, adapter = _from_sizes(config, tokenizer_facts, sequence_length)
    encoder = Encoder(model, adapter, config.attention)
    if sequence_length > encoder.positions:
        raise ValueError(
            f"sequence_length={sequence_length} is more than encoder.positions={encoder.positions}; "
            "lower the first or raise the second (a checkpoint's positions are fixed)"
        )
    if config.word_embeddings_from is not None:
        copy_word_embeddings(encoder, config.word_embeddings_from)
    encoder.word_embeddings.requires_grad_(config.word_embeddings is WordEmbeddings.trained)
    return encoder.train()  # a checkpoint is loaded for evaluation, where dropout is off


def _from_sizes(config: EncoderConfig, facts: TokenizerFacts, sequence_length: int) -> tuple[Any, Adapter]:
    from transformers import AutoConfig, AutoModelForMaskedLM

    _check_sizes(config, sequence_length)
    name = str(config.architecture)
    adapter = find_adapter(name)
    assert adapter.sizes is not None, name
    settings = adapter.sizes(config, facts, sequence_length)
    settings |= dict.fromkeys(adapter.dropout, config.dropout or 0.0)
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model(name, **settings), **_hf_attention(config))
    return model.float(), adapter


def _check_sizes(config: EncoderConfig, sequence_length: int) -> None:
    for key in ("layers", "hidden_size", "heads", "intermediate_size"):
        value = getattr(config, key)
        if value is None or value < 1:
            raise ValueError(
                f"encoder.{key}={value}: encoder.architecture={config.architecture} needs a positive number "
                "(only encoder=hf takes its sizes from a checkpoint)"
            )
    hidden_size, heads = config.hidden_size or 0, config.heads or 1
    if hidden_size % heads:
        raise ValueError(
            f"encoder.hidden_size={hidden_size} is not a multiple of encoder.heads={heads}; change one of them"
        )
    if config.architecture is Architecture.modernbert and (hidden_size // heads) % 2:
        raise ValueError(
            f"encoder.hidden_size / encoder.heads = {hidden_size // heads} is odd; rotary positions need pairs "
            "of channels: change one of them"
        )
    if config.dropout is not None and not 0.0 <= config.dropout < 1.0:
        raise ValueError(f"encoder.dropout={config.dropout} is not in [0, 1)")
    if sequence_length > longest(config, sequence_length):
        raise ValueError(
            f"sequence_length={sequence_length} is more than encoder.positions={config.positions}; "
            "lower the first or raise the second"
        )


def _hf_attention(config: EncoderConfig) -> dict[str, str]:
    """Hugging Face's own forward is used for architectures without a fast body; it knows no `auto`."""
    return {"attn_implementation": "eager" if config.attention is Attention.eager else "sdpa"}


def _load(config: EncoderConfig, facts: TokenizerFacts) -> tuple[Any, Adapter]:
    from transformers import AutoConfig, AutoModelForMaskedLM

    if not config.path:
        raise ValueError("encoder.path is empty: encoder.architecture=hf needs a folder or a hub name")
    try:
        hf_config = AutoConfig.from_pretrained(config.path)
    except (OSError, ValueError) as error:
        raise ValueError(f"encoder.path={config.path}: no Hugging Face model can be read there ({error})") from error
    adapter = find_adapter(hf_config.model_type)
    _check_checkpoint(config, hf_config, facts)
    if config.dropout is not None:
        for name in adapter.dropout:
            setattr(hf_config, name, config.dropout)
    with quiet_transformers():
        model, info = AutoModelForMaskedLM.from_pretrained(
            config.path,
            config=hf_config,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by us, with the others
            **_hf_attention(config),
        )
    _report_loading(config.path, model, info)
    return model, adapter


def _check_checkpoint(config: EncoderConfig, hf_config: Any, facts: TokenizerFacts) -> None:
    where = f"encoder.path={config.path}"
    sizes = {
        "layers": hf_config.num_hidden_layers,
        "hidden_size": hf_config.hidden_size,
        "heads": hf_config.num_attention_heads,
        "intermediate_size": getattr(hf_config, "intermediate_size", None) or getattr(hf_config, "hidden_dim", None),
        "positions": positions_of(hf_config),
    }
    for key, found in sizes.items():
        wanted = getattr(config, key)
        if wanted is not None and wanted != found:
            raise ValueError(f"{where} has {key} {found}, but encoder.{key}={wanted}; leave encoder.{key} null")
    spare = hf_config.vocab_size - facts.vocab_size
    if not 0 <= spare < _MOST_SPARE_ROWS:
        raise ValueError(
            f"{where} has a vocabulary of {hf_config.vocab_size}, the tokenizer one of {facts.vocab_size}; "
            f"use the checkpoint's own: tokenizer=pretrained tokenizer.path={config.path}"
        )
    if hf_config.pad_token_id is not None and hf_config.pad_token_id != facts.pad_id:
        raise ValueError(
            f"{where} pads with token {hf_config.pad_token_id}, the tokenizer with {facts.pad_id}, so they do not "
            f"belong together; use tokenizer=pretrained tokenizer.path={config.path}"
        )


def _report_loading(path: str, model: Any, info: dict[str, Any]) -> None:
    """Raise for a body that is not complete; warn of a head that is not; never be silent about the rest."""
    prefix = f"{model.base_model_prefix}."
    mismatched = sorted(str(item[0]) for item in info["mismatched_keys"])
    missing = sorted(set(info["missing_keys"]) | set(mismatched))
    body = [key for key in missing if key.startswith(prefix)]
    if body:
        raise ValueError(
            f"encoder.path={path} lacks {len(body)} weights of the body (or has them in another shape): "
            f"{_some(body)}; it is no complete {model.config.model_type} checkpoint"
        )
    if missing:
        logger.warning(
            "encoder.path=%s has no masked-LM head (%s): the body is loaded, the head starts fresh from the seed",
            path,
            _some(missing),
        )
    unexpected = sorted(info["unexpected_keys"])
    unused = [key for key in unexpected if not any(part in key for part in _UNUSED_PARTS)]
    if unused:
        logger.warning("encoder.path=%s has %d weights that are not used: %s", path, len(unused), _some(unused))
    if len(unexpected) > len(unused):
        rest = [key for key in unexpected if key not in unused]
        logger.info("encoder.path=%s: not needed for masked language modelling: %s", path, _some(rest))


def _some(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
