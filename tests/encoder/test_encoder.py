from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from taco_cli.config.schema import Attention
from taco_cli.encoder import Encoder
from taco_cli.encoder import encoder as encoder_module

ARCHITECTURES = ["bert", "roberta", "modernbert"]
Build = Callable[..., Encoder]


def some_ids(rows: int = 3, length: int = 24) -> Tensor:
    return torch.randint(5, 64, (rows, length), generator=torch.Generator().manual_seed(0))


def padded() -> tuple[Tensor, Tensor]:
    """Rows of 24, 20 and 9 real tokens."""
    real = torch.arange(24) < torch.tensor([24, 20, 9])[:, None]
    return some_ids().masked_fill(~real, 0), real


def huggingface_states(encoder: Encoder, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
    """The reference: Hugging Face's own forward pass."""
    return encoder.model.base_model(ids, attention_mask=mask, output_hidden_states=True).hidden_states


@pytest.mark.parametrize("attention", [Attention.eager, Attention.sdpa])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_and_gradients_are_those_of_hugging_face(
    build: Build, architecture: str, padding: bool, attention: Attention
) -> None:
    encoder = build(architecture, attention=attention).eval()
    ids, mask = padded() if padding else (some_ids(), None)
    real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
    direction = torch.randn(3, 24, 32, generator=torch.Generator().manual_seed(1))

    def gradients(states: list[Tensor]) -> dict[str, Tensor]:
        encoder.zero_grad()
        sum((state * direction)[real].sum() for state in states).backward()
        return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}

    ours, theirs = encoder.layers(ids, mask), list(huggingface_states(encoder, ids, mask))
    assert len(ours) == len(theirs) == 3
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine[real], reference[real], rtol=1e-5, atol=1e-5)
    mine_grad, reference_grad = gradients(ours), gradients(theirs)
    assert mine_grad.keys() == reference_grad.keys()
    for name, reference in reference_grad.items():
        error = (mine_grad[name] - reference).norm() / reference.norm().clamp_min(1e-2)  # a key bias has gradient zero
        assert error < 1e-5, name


def test_local_attention_of_long_sequences_is_that_of_hugging_face(build: Build) -> None:
    encoder = build("modernbert", length=1025, positions=1100, layers=3).eval()
    assert encoder.model.config.layer_types == ["full_attention", "sliding_attention", "sliding_attention"]
    ids = some_ids(2, 200)
    real = torch.arange(200) < torch.tensor([200, 150])[:, None]
    for mask in (None, real):
        kept = torch.ones_like(real) if mask is None else mask
        reference = huggingface_states(encoder, ids, mask)[-1]
        torch.testing.assert_close(encoder(ids, mask).hidden_states[kept], reference[kept], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_output_is_first_and_last_of_the_layers(build: Build, architecture: str) -> None:
    encoder = build(architecture).eval()
    output, layers = encoder(some_ids()), encoder.layers(some_ids())
    assert torch.equal(output.embeddings, layers[0])
    assert torch.equal(output.hidden_states, layers[-1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_embeddings_in_training_are_what_the_first_layer_read(build: Build, architecture: str) -> None:
    encoder = build(architecture, dropout=0.5).train()
    body = encoder.model.base_model
    read = []
    entrance = (
        body.layers[0].attn.Wqkv if architecture == "modernbert" else body.encoder.layer[0].attention.output.LayerNorm
    )
    if architecture == "modernbert":  # its first layer has no norm: the projection reads the embeddings themselves
        entrance.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
        embeddings = encoder(some_ids()).embeddings
        assert read[0] is embeddings
    else:  # the attention block's residual: the norm reads embeddings + attention output
        own = encoder.model.base_model.encoder.layer[0].attention.output.dense
        torch.nn.init.zeros_(own.weight)
        torch.nn.init.zeros_(own.bias)
        entrance.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
        embeddings = encoder(some_ids()).embeddings
        assert torch.equal(read[0], embeddings)
    assert 0.4 < (embeddings == 0).float().mean() < 0.6


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_does_not_reach_real_tokens(build: Build, architecture: str) -> None:
    encoder = build(architecture).eval()
    ids, real = padded()
    states = encoder(ids, real).hidden_states
    alone = encoder(ids[2:, :9]).hidden_states
    torch.testing.assert_close(states[2:, :9], alone, rtol=1e-5, atol=1e-5)
    other = encoder(torch.where(real, ids, 7), real).hidden_states
    torch.testing.assert_close(states[real], other[real], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_mask_is_the_mask_of_real_tokens(build: Build, architecture: str) -> None:
    encoder = build(architecture).eval()
    ids = some_ids()
    without, with_mask = encoder(ids), encoder(ids, torch.ones_like(ids, dtype=torch.bool))
    torch.testing.assert_close(without.hidden_states, with_mask.hidden_states, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_those_of_the_whole_model(build: Build, architecture: str) -> None:
    encoder = build(architecture).eval()
    ids = some_ids()
    expected = encoder.model(ids).logits.flatten(0, 1)[::5]
    torch.testing.assert_close(
        encoder.logits(encoder(ids).hidden_states.flatten(0, 1)[::5]), expected, rtol=1e-5, atol=1e-5
    )
    states = torch.randn(4, 32)
    by_hand = encoder.predict(states) @ encoder.decoder_weight.T + encoder.decoder_bias
    torch.testing.assert_close(encoder.logits(states), by_hand)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bf16_autocast_stays_near_float32(build: Build, architecture: str) -> None:
    encoder = build(architecture).eval()
    exact = encoder(some_ids()).hidden_states
    with torch.autocast("cpu", torch.bfloat16):
        rough = encoder(some_ids()).hidden_states
    assert (rough.float() - exact).abs().max() < 0.1
    assert (rough.float() - exact).norm() / exact.norm() < 0.02


def test_dropout_is_a_function_of_the_global_seed(build: Build) -> None:
    encoder = build(dropout=0.3).train()

    def states(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return encoder(some_ids()).hidden_states

    assert torch.equal(states(1), states(1))
    assert not torch.equal(states(1), states(2))


@pytest.mark.parametrize("attention", list(Attention))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dropout_uses_all_its_factors(
    build: Build, architecture: str, attention: Attention, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = build(architecture, attention=attention).train()
    made = []

    class Recorded(encoder_module.Dropout):
        def __init__(self, active: bool, factors: list[Tensor] | None = None) -> None:
            super().__init__(active, factors)
            made.append(self)

    monkeypatch.setattr(encoder_module, "Dropout", Recorded)
    encoder(some_ids())
    assert 0 < made[0].used == len(made[0].factors)


def test_too_long_a_sequence_names_the_keys(build: Build) -> None:
    with pytest.raises(
        ValueError, match=r"41 tokens .* 40 positions; lower sequence_length or raise encoder.positions"
    ):
        build()(some_ids(1, 41))


def test_roberta_numbers_positions_after_padding(build: Build, facts: object) -> None:
    encoder = build("roberta", positions=30)
    assert encoder.model.config.max_position_embeddings == 31
    assert encoder.positions == 30
    assert encoder(some_ids(1, 30)).hidden_states.shape == (1, 30, 32)


def test_compiled_call_agrees_and_leaves_names_alone(build: Build) -> None:
    encoder = build("bert", layers=1).train()
    names = list(encoder.state_dict())

    def run() -> tuple[Tensor, Tensor]:
        torch.manual_seed(3)
        encoder.zero_grad()
        states = encoder(some_ids()).hidden_states
        states.square().sum().backward()
        return states.detach(), encoder.word_embeddings.grad.clone()

    plain = run()
    encoder.set_compiled(True)
    compiled = run()
    assert list(encoder.state_dict()) == names
    for mine, reference in zip(compiled, plain, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-4, atol=1e-4)
    with torch.compiler.set_stance("fail_on_recompile"):
        run()


def test_a_deep_copy_runs_its_own_parameters(build: Build) -> None:
    encoder = build().eval()
    twin = copy.deepcopy(encoder)
    torch.nn.init.zeros_(encoder.word_embeddings)
    assert not torch.equal(twin(some_ids()).hidden_states, encoder(some_ids()).hidden_states)
