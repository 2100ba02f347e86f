from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from taco_cli.config.schema import OptimizerConfig, OptimizerName
from taco_cli.training.optimizer import build_optimizer, clip_gradients, hidden_matrices

_SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "pad_token_id": 0,
}
MODELS = {
    "bert": lambda: BertForMaskedLM(BertConfig(**_SIZES)),
    "roberta": lambda: RobertaForMaskedLM(RobertaConfig(**_SIZES)),
    "modernbert": lambda: ModernBertForMaskedLM(
        ModernBertConfig(**_SIZES, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
    ),
}
# Query, key, value, output, two feed-forward matrices; ModernBERT fuses the first three and has a gate.
HIDDEN_SHAPES = {
    "bert": [(16, 16)] * 4 + [(24, 16), (16, 24)],
    "roberta": [(16, 16)] * 4 + [(24, 16), (16, 24)],
    "modernbert": [(48, 16), (16, 16), (48, 16), (16, 24)],
}
MUON = OptimizerConfig(name=OptimizerName.muon, lr=1e-3, muon_lr=2e-3)
ADAMW = OptimizerConfig(lr=1e-3)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Matrices this small are slower with two, which only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=sorted(MODELS))
def architecture(request):
    return request.param


@pytest.fixture
def model(architecture):
    torch.manual_seed(0)
    return MODELS[architecture]()


def _backward(model: nn.Module, seed: int = 0) -> None:
    ids = torch.randint(3, 50, (2, 8), generator=torch.Generator().manual_seed(seed))
    model.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()


def _names(model: nn.Module, parameters) -> set[str]:
    wanted = {id(p) for p in parameters}
    return {name for name, p in model.named_parameters() if id(p) in wanted}


def test_biases_and_norms_alone_do_not_decay(model):
    groups = build_optimizer(model, ADAMW).parts["adamw"].param_groups
    still = _names(model, [p for group in groups if group["weight_decay"] == 0 for p in group["params"]])
    decaying = _names(model, [p for group in groups if group["weight_decay"] == 0.01 for p in group["params"]])
    norms_and_biases = {
        name for name, _ in model.named_parameters()
        if name.endswith("bias") or "norm" in name.lower()
    }  # fmt: skip
    assert still == norms_and_biases
    assert decaying == {name for name, _ in model.named_parameters()} - norms_and_biases
    assert any("embeddings" in name for name in decaying)


@pytest.mark.parametrize("config", [ADAMW, MUON], ids=["adamw", "muon"])
def test_every_parameter_is_updated_by_exactly_one(model, config):
    parameters = build_optimizer(model, config).parameters
    assert len({id(p) for p in parameters}) == len(parameters)
    assert {id(p) for p in parameters} == {id(p) for p in model.parameters()}


def test_muon_gets_the_matrices_of_the_layers_alone(architecture, model):
    shapes = sorted(tuple(p.shape) for p in hidden_matrices(model))
    assert shapes == sorted(HIDDEN_SHAPES[architecture] * 2)
    names = _names(model, hidden_matrices(model))
    assert not [name for name in names if "embedding" in name or "head" in name or "decoder" in name]
    assert _names(model, build_optimizer(model, MUON).parts["muon"].param_groups[0]["params"]) == names


def test_frozen_parameters_are_left_out(model):
    for parameter in model.get_input_embeddings().parameters():
        parameter.requires_grad_(False)
    parameters = build_optimizer(model, MUON).parameters
    assert all(p.requires_grad for p in parameters)
    assert len(parameters) == sum(p.requires_grad for p in model.parameters())


def test_muon_needs_repeated_layers():
    with pytest.raises(ValueError, match=r"optimizer\.name=muon.*optimizer=adamw"):
        build_optimizer(nn.Linear(3, 3), MUON)


def test_factor_scales_every_peak(model):
    optimizer = build_optimizer(model, MUON)
    optimizer.set_lr_factor(0.5)
    optimizer.set_lr_factor(0.25)  # of the peak, not of the last
    assert optimizer.lr == pytest.approx(0.25e-3)
    assert optimizer.parts["muon"].param_groups[0]["lr"] == pytest.approx(0.5e-3)


def test_factor_zero_changes_nothing(model):
    before = copy.deepcopy(model.state_dict())
    optimizer = build_optimizer(model, MUON)
    optimizer.set_lr_factor(0.0)
    _backward(model)
    optimizer.step()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_adamw_is_torchs_own_on_one_group(model):
    """Against the plain, unfused optimizer; fused kernels round differently in the last digits."""
    reference = copy.deepcopy(model)
    decay = [p for p in reference.parameters() if p.ndim >= 2]
    rest = [p for p in reference.parameters() if p.ndim < 2]
    plain = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.999), eps=1e-8, foreach=False,
    )  # fmt: skip
    optimizer = build_optimizer(model, ADAMW)
    for seed in range(3):
        _backward(model, seed)
        for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
            theirs.grad = None if ours.grad is None else ours.grad.clone()
        optimizer.step()
        plain.step()
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("config", [ADAMW, MUON], ids=["adamw", "muon"])
def test_state_survives_a_file_and_continues_bit_for_bit(model, config):
    model.eval()
    optimizer = build_optimizer(model, config)
    _train(model, optimizer, range(3))
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    _train(model, optimizer, range(3, 6))

    file.seek(0)
    state = torch.load(file, weights_only=True)
    again = copy.deepcopy(model)
    again.load_state_dict(state["model"])
    resumed = build_optimizer(again, config)
    resumed.load_state_dict(state["optimizer"])
    _train(again, resumed, range(3, 6))
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())


def _train(model, optimizer, seeds) -> None:
    for seed in seeds:
        optimizer.set_lr_factor(1.0 / (1 + seed))
        _backward(model, seed)
        optimizer.step()
        optimizer.zero_grad()


def test_state_of_another_kind_is_refused(model):
    state = build_optimizer(model, ADAMW).state_dict()
    with pytest.raises(ValueError, match=r"optimizer\.name.*adamw.*adamw \+ muon"):
        build_optimizer(model, MUON).load_state_dict(state)


def test_muon_updates_are_orthogonal_directions_of_adamws_size():
    layers = nn.ModuleList([nn.Linear(32, 64, bias=False)])
    optimizer = build_optimizer(layers, OptimizerConfig(name=OptimizerName.muon, muon_lr=1.0, muon_weight_decay=0.0))
    weight = next(layers.parameters())
    weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
    before = weight.detach().clone()
    optimizer.step()
    update = (before - weight).detach()
    # 0.2 sqrt(max(A, B)) times a matrix whose singular values are near 1: root mean square near 0.2.
    assert update.square().mean().sqrt().item() == pytest.approx(0.2, rel=0.25)
    singular = torch.linalg.svdvals(update / (0.2 * 64**0.5))
    assert singular.min() > 0.5
    assert singular.max() < 1.5


def test_clipping_returns_the_norm_and_bounds_it(model):
    _backward(model)
    gradients = [p.grad.clone() for p in model.parameters()]
    expected = torch.cat([g.flatten() for g in gradients]).norm()
    norm = clip_gradients(model.parameters(), max_norm=0.1)
    torch.testing.assert_close(norm, expected)
    after = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert after.norm().item() == pytest.approx(0.1, rel=1e-3)
    torch.testing.assert_close(after, torch.cat([g.flatten() for g in gradients]) * (0.1 / expected), rtol=1e-3, atol=0)


@pytest.mark.parametrize("max_norm", [0.0, 1e6])
def test_small_gradients_or_no_limit_stay_as_they_are(model, max_norm):
    _backward(model)
    before = [p.grad.clone() for p in model.parameters()]
    assert clip_gradients(model.parameters(), max_norm) > 0
    assert all(torch.equal(b, p.grad) for b, p in zip(before, model.parameters(), strict=True))


def test_clipping_without_gradients_is_zero():
    assert clip_gradients(nn.Linear(2, 2).parameters(), 1.0) == 0
