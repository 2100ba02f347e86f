"""What differs between Hugging Face masked-LM architectures, one :class:`Adapter` per ``model_type``.

Everything else (the body, the decoder, the input embeddings) has a common name in transformers. To add an
architecture, add its adapter to ``ADAPTERS``; ``sizes`` is needed only if it should be built from scratch, and
``states`` only if it has a faster body than Hugging Face's own forward.

Legend: N sequences, L positions, P given positions, d hidden size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor
from torch.nn import functional

from taco_cli.config.schema import EncoderConfig
from taco_cli.encoder.body import Sites, States, bert_sites, bert_states, modernbert_sites, modernbert_states

# Up to this length every ModernBERT layer attends to the whole sequence, with one rotary base. Beyond it, two
# layers of three see a window of 128 positions, as published.
_LONGEST_GLOBAL = 1024
_SHORT_ROTARY_BASE = 10_000.0


class TokenizerFacts(Protocol):
    """What an encoder must know of its tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens, special ones included."""

    @property
    def pad_id(self) -> int:
        """Id of the padding token."""


@dataclass(frozen=True)
class Adapter:
    """One architecture.

    Attributes:
        transform: the head before the decoder, states ``(P, d)`` to ``(P, d')``.
        sizes: keyword arguments of the Hugging Face configuration for our sizes; None: only loaded, never built.
        dropout: names of the configuration's dropout probabilities.
        states: fast forward pass of the body; None: Hugging Face's own.
        sites: where ``states`` drops elements.
    """

    transform: Callable[[Any, Tensor], Tensor]
    dropout: tuple[str, ...]
    sizes: Callable[[EncoderConfig, TokenizerFacts, int], dict[str, Any]] | None = None
    states: States | None = None
    sites: Sites | None = None


def find_adapter(model_type: str) -> Adapter:
    """Return the adapter of a Hugging Face ``model_type``; ValueError lists the known ones."""
    if model_type not in ADAPTERS:
        raise ValueError(
            f"no adapter for model_type {model_type!r}; known: {', '.join(sorted(ADAPTERS))}. "
            "Choose a checkpoint of one of these, or add an Adapter to taco_cli/encoder/adapters.py"
        )
    return ADAPTERS[model_type]


def _common_sizes(config: EncoderConfig, facts: TokenizerFacts) -> dict[str, Any]:
    return {
        "vocab_size": facts.vocab_size,
        "pad_token_id": facts.pad_id,
        "num_hidden_layers": config.layers,
        "hidden_size": config.hidden_size,
        "num_attention_heads": config.heads,
        "intermediate_size": config.intermediate_size,
    }


def _bert_sizes(config: EncoderConfig, facts: TokenizerFacts, sequence_length: int) -> dict[str, Any]:
    return {"max_position_embeddings": longest(config, sequence_length)} | _common_sizes(config, facts)


def _roberta_sizes(config: EncoderConfig, facts: TokenizerFacts, sequence_length: int) -> dict[str, Any]:
    # RoBERTa numbers positions from pad_id + 1, so its table has that many unused rows.
    rows = longest(config, sequence_length) + facts.pad_id + 1
    ids = {"bos_token_id": None, "eos_token_id": None}  # the defaults name tokens of another vocabulary
    return {"max_position_embeddings": rows, "type_vocab_size": 1} | ids | _common_sizes(config, facts)


def _modernbert_sizes(config: EncoderConfig, facts: TokenizerFacts, sequence_length: int) -> dict[str, Any]:
    sizes = {"max_position_embeddings": longest(config, sequence_length)} | _common_sizes(config, facts)
    sizes |= dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
    if sequence_length <= _LONGEST_GLOBAL:
        sizes |= {"global_attn_every_n_layers": 1, "global_rope_theta": _SHORT_ROTARY_BASE}
    return sizes


def longest(config: EncoderConfig, sequence_length: int) -> int:
    """Return the longest sequence of an encoder to be built: ``encoder.positions``, else 512 or what is asked."""
    return config.positions or max(512, sequence_length)


def _bert_transform(model: Any, states_Pd: Tensor) -> Tensor:
    transformed: Tensor = model.cls.predictions.transform(states_Pd)
    return transformed


def _roberta_transform(model: Any, states_Pd: Tensor) -> Tensor:
    head = model.lm_head
    transformed: Tensor = head.layer_norm(functional.gelu(head.dense(states_Pd)))
    return transformed


def _modernbert_transform(model: Any, states_Pd: Tensor) -> Tensor:
    transformed: Tensor = model.head(states_Pd)
    return transformed


def _distilbert_transform(model: Any, states_Pd: Tensor) -> Tensor:
    transformed: Tensor = model.vocab_layer_norm(model.activation(model.vocab_transform(states_Pd)))
    return transformed


def _electra_transform(model: Any, states_Pd: Tensor) -> Tensor:
    transformed: Tensor = model.generator_predictions(states_Pd)
    return transformed


_BERT_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")
_MODERNBERT_DROPOUT = ("embedding_dropout", "attention_dropout", "mlp_dropout")
_ROBERTA = Adapter(_roberta_transform, _BERT_DROPOUT, _roberta_sizes, bert_states, bert_sites)

ADAPTERS: dict[str, Adapter] = {
    "bert": Adapter(_bert_transform, _BERT_DROPOUT, _bert_sizes, bert_states, bert_sites),
    "roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "modernbert": Adapter(
        _modernbert_transform, _MODERNBERT_DROPOUT, _modernbert_sizes, modernbert_states, modernbert_sites
    ),
    "distilbert": Adapter(_distilbert_transform, ("dropout", "attention_dropout")),
    "electra": Adapter(_electra_transform, _BERT_DROPOUT),
}
