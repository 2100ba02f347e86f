"""The encoder that objectives, training and analysis see, whatever the architecture.

Legend: N sequences, L positions, P given positions, d hidden size, d' width of the decoder, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from taco_cli.config.schema import Attention
from taco_cli.encoder.adapters import Adapter
from taco_cli.encoder.attention import choose_attention
from taco_cli.encoder.compiled import compile_or_fall_back
from taco_cli.encoder.dropout import Dropout, draw_factors

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EncoderOutput(NamedTuple):
    """What an objective needs of one forward pass.

    Attributes:
        embeddings: ``(N, L, d)`` output of the embedding layer, the very tensor the first layer read.
        hidden_states: ``(N, L, d)`` output of the last layer, after the final norm if there is one.
    """

    embeddings: Tensor
    hidden_states: Tensor


class Encoder(nn.Module):
    """A Hugging Face masked-LM model with its body, its head and its decoder apart.

    Args:
        model: Hugging Face model for masked language modelling; the only place of parameters.
        adapter: its architecture's.
        attention: `auto` chooses at each call, by device and length.
    """

    def __init__(self, model: PreTrainedModel, adapter: Adapter, attention: Attention = Attention.auto) -> None:
        super().__init__()
        self.model = model
        self.attention = attention
        self._adapter = adapter
        # A plain function of the encoder, so that a deep copy runs its own parameters.
        self._body: Callable[..., tuple[Tensor, Tensor]] = Encoder._first_and_last

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> EncoderOutput:
        """Encode ``input_ids`` ``(N, L)``; ``attention_mask`` ``(N, L)`` bool is True at real tokens, None: no padding.

        Raises:
            ValueError: if L exceeds the encoder's positions.
        """
        return EncoderOutput(*self._body(self, input_ids, attention_mask, *self._choices(input_ids)))

    def layers(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """Return all hidden states ``(N, L, d)``: embeddings, then each layer's; the last one after the final norm."""
        return self._states(input_ids, attention_mask, *self._choices(input_ids))

    def predict(self, states: Tensor) -> Tensor:
        """Apply the head before the decoder, ``(P, d)`` to ``(P, d')``."""
        return self._adapter.transform(self.model, states)

    def logits(self, states: Tensor) -> Tensor:
        """Return the vocabulary logits ``(P, V)`` of ``states`` ``(P, d)``."""
        return functional.linear(self.predict(states), self.decoder_weight, self.decoder_bias)

    @property
    def decoder_weight(self) -> Tensor:
        """The decoder's weight, ``(V, d')``; tied to :attr:`word_embeddings`."""
        weight: Tensor = self._decoder.weight
        return weight

    @property
    def decoder_bias(self) -> Tensor | None:
        """The decoder's bias, ``(V,)``, or None."""
        bias: Tensor | None = self._decoder.bias
        return bias

    @property
    def word_embeddings(self) -> Tensor:
        """The word-embedding table, ``(V, d')``."""
        weight: Any = self.model.get_input_embeddings().weight
        return weight  # type: ignore[no-any-return]

    @property
    def hidden_size(self) -> int:
        """The width d of hidden states."""
        return int(self.model.config.hidden_size)

    @property
    def architecture(self) -> str:
        """The Hugging Face ``model_type``."""
        return str(self.model.config.model_type)

    @property
    def positions(self) -> int:
        """The longest sequence that can be encoded."""
        return positions_of(self.model.config)

    def set_compiled(self, compiled: bool) -> None:
        """Compile the call of the body, or stop doing so; parameters and their names stay as they are."""
        plain = Encoder._first_and_last
        self._body = compile_or_fall_back(plain) if compiled else plain

    @contextmanager
    def uncompiled(self) -> Iterator[None]:
        """Run the plain call within the block: for texts of many lengths, each of which would be compiled."""
        body, self._body = self._body, Encoder._first_and_last
        try:
            yield
        finally:
            self._body = body

    @property
    def _decoder(self) -> Any:
        return self.model.get_output_embeddings()

    def _choices(self, input_ids: Tensor) -> tuple[Attention, bool, list[Tensor] | None]:
        """What a forward pass is given besides its input: attention, whether dropout is active, its factors."""
        length = input_ids.shape[1]
        if length > self.positions:
            raise ValueError(
                f"a sequence of {length} tokens is longer than the encoder's {self.positions} positions; "
                "lower sequence_length or raise encoder.positions"
            )
        attention = choose_attention(self.attention, input_ids.device, length)
        return attention, self.training, self._draw_factors(input_ids, attention)

    def _draw_factors(self, input_ids: Tensor, attention: Attention) -> list[Tensor] | None:
        sites, device = self._adapter.sites, input_ids.device.type
        if not self.training or sites is None or device != "cpu":
            return None
        narrow = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if narrow else torch.float32
        return draw_factors(sites(self.model.config, attention, *input_ids.shape), dtype)

    def _first_and_last(self, *arguments: Any) -> tuple[Tensor, Tensor]:
        states = self._states(*arguments)
        return states[0], states[-1]

    def _states(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        attention: Attention,
        active: bool,
        factors: list[Tensor] | None,
    ) -> list[Tensor]:
        body = self.model.base_model
        if self._adapter.states is not None:
            return self._adapter.states(body, input_ids, attention_mask, attention, Dropout(active, factors))
        output = body(input_ids, attention_mask=attention_mask, output_hidden_states=True)
        return list(output.hidden_states)


def positions_of(config: Any) -> int:
    """Return the longest sequence of a Hugging Face configuration."""
    rows = int(config.max_position_embeddings)
    offset = config.pad_token_id + 1 if config.model_type in ("roberta", "camembert", "xlm-roberta") else 0
    return rows - offset
