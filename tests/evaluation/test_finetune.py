from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from taco_cli.config.glue import Pooling, ProtocolConfig, TaskConfig
from taco_cli.evaluation.classifier import Classifier
from taco_cli.evaluation.finetune import fine_tune, lr_factor, predict, subset, targets_of
from taco_cli.evaluation.model import Model
from taco_cli.evaluation.protocol import Settings, resolve
from taco_cli.evaluation.reading import Examples, read
from taco_cli.evaluation.tasks import TASKS

PROTOCOL = ProtocolConfig("tiny", 24, 8, [5e-3], 6, 2, pooling=Pooling.mean)
TINY = resolve(PROTOCOL, 16, 32)[0]


@pytest.fixture(scope="module")
def train(data_dir: Path) -> Examples:
    return read(TASKS["sst2"], "train", str(data_dir))


def tuned(model: Model, task: TaskConfig, data: Examples, settings: Settings = TINY, seed: int = 1) -> Classifier:
    tokens = model.tokens(data.digest(), data.texts, settings.length)
    return fine_tune(model.encoder, task, tokens, targets_of(task, data.labels), settings, seed, model.machine)


def predicted(model: Model, classifier: Classifier, data: Examples) -> list[str] | list[float]:
    return predict(classifier, model.tokens(data.digest(), data.texts, 24), model.machine)


def accuracy(guesses: list[str] | list[float], data: Examples) -> float:
    return sum(a == b for a, b in zip(guesses, data.labels, strict=True)) / len(data)


@pytest.mark.parametrize("pooling", list(Pooling))
def test_learns_and_leaves_the_encoder_alone(pooling: Pooling, model: Model, train: Examples, data_dir: Path) -> None:
    before = copy.deepcopy(model.encoder.state_dict())
    classifier = tuned(model, TASKS["sst2"], train, replace(TINY, pooling=pooling, epochs=10))
    dev = read(TASKS["sst2"], "dev", str(data_dir))
    assert accuracy(predicted(model, classifier, dev), dev) > 0.85
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.state_dict().items())


def test_same_bits_again_and_no_trace_in_the_global_random_state(model: Model, train: Examples) -> None:
    torch.manual_seed(5)
    first = tuned(model, TASKS["sst2"], train)
    after = torch.random.get_rng_state()
    torch.manual_seed(5)
    assert torch.equal(torch.random.get_rng_state(), after)
    torch.manual_seed(77)
    second = tuned(model, TASKS["sst2"], train)
    other = tuned(model, TASKS["sst2"], train, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.out.weight, other.out.weight)


def test_order_of_labels_changes_nothing(model: Model, train: Examples, data_dir: Path) -> None:
    dev = read(TASKS["sst2"], "dev", str(data_dir))
    guesses = []
    for labels in (["negative", "positive"], ["positive", "negative"]):
        classifier = tuned(model, replace(TASKS["sst2"], labels=labels), train)
        guesses.append(predicted(model, classifier, dev))
    assert guesses[0] == guesses[1]
    assert accuracy(guesses[0], dev) > 0.6


def test_regression_follows_the_score(model: Model, data_dir: Path) -> None:
    data = read(TASKS["stsb"], "train", str(data_dir))
    scores = predicted(model, tuned(model, TASKS["stsb"], data, replace(TINY, epochs=20)), data)
    correlation = torch.corrcoef(torch.tensor([[float(s) for s in scores], [float(s or 0) for s in data.labels]]))
    assert correlation[0, 1] > 0.7


def test_padding_is_never_seen(model: Model, train: Examples) -> None:
    for pooling in Pooling:
        classifier = Classifier(copy.deepcopy(model.encoder), ["a", "b"], pooling, 0.0, 1).eval()
        tokens = model.tokens(train.digest(), train.texts, 24)
        together = classifier(*tokens.batch(range(len(tokens))))
        alone = torch.cat([classifier(*tokens.batch([i])) for i in range(len(tokens))])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("labels", [["negative", "positive"], ["positive", "negative"]])
def test_saved_model_is_scored_by_name(
    labels: list[str], model: Model, train: Examples, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    task = replace(TASKS["sst2"], labels=labels)
    classifier = tuned(model, task, train)
    classifier.save(tmp_path / "saved", tokenizer)
    loaded = Classifier.load(tmp_path / "saved", model.special).eval()
    assert loaded.labels == labels
    assert loaded.pooling is TINY.pooling
    assert predicted(model, loaded, train) == predicted(model, classifier, train)


def test_linear_warm_up_and_decay() -> None:
    factors = [lr_factor(step, 10, 4) for step in range(10)]
    assert factors[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert factors[5:] == pytest.approx([5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    assert [lr_factor(step, 2, 0) for step in range(2)] == [1.0, 0.5]


def test_subset_is_drawn_by_the_seed() -> None:
    assert subset(10, None, 1).tolist() == list(range(10))
    assert len(set(subset(100, 20, 1).tolist())) == 20
    assert subset(100, 20, 1).tolist() == subset(100, 20, 1).tolist() != subset(100, 20, 2).tolist()


def test_published_settings_by_hidden_size(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        small, base = resolve(ProtocolConfig(), 512, 512)[0], resolve(ProtocolConfig(), 768, 512)[0]
    assert (small.lr, small.epochs) == (5e-5, 4)
    assert (base.lr, base.epochs) == (3e-5, 6)
    assert "published for small" in caplog.text
    assert "published for base" in caplog.text
    assert small.warmup(1000) == 100
    assert small.warmup(50) == 25
    assert resolve(ProtocolConfig(), 16, 64)[0].length == 64
