"""Compilation changes speed alone: a run resumes to the same bits, and is the same in a sweep, with it on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache

from taco_cli.config.schema import Precision, RunConfig
from taco_cli.signals import Interrupted, StopRequest
from taco_cli.tracking import RunFolder
from taco_cli.training import train
from tests.conftest import MakeConfig
from tests.training.test_run import assert_same_bits, curves, final_weights


@pytest.fixture(scope="module", autouse=True)
def compiler() -> Iterator[None]:
    """Compile into a cache of this module's own, once; skip where that does not work."""
    with fresh_cache():
        try:
            torch.compile(lambda x: x.sin() + 1)(torch.ones(4))
        except Exception as error:
            pytest.skip(f"torch.compile does not work here: {str(error).splitlines()[0]}")
        yield


def compiled(make_config: MakeConfig, **changes: object) -> RunConfig:
    return make_config(
        trainer__compile="true", trainer__precision=Precision.bf16, budget="6steps", checkpoint_every=3, **changes
    )


def test_resumed_alone_and_after_another_job_it_gives_the_same_bits(make_config: MakeConfig) -> None:
    alone, parted, second = (compiled(make_config, name=name) for name in ("alone", "parted", "second"))
    train(alone)
    request = StopRequest()
    request.number = 15  # as if the signal came during the first step
    with pytest.raises(Interrupted):
        train(parted, request)
    train(parted)
    train(compiled(make_config, name="first", label="mlm", objective__tc__weight=0.0, seed=5))
    train(second)
    for other in (parted, second):
        assert_same_bits(final_weights(RunFolder.of(alone)), final_weights(RunFolder.of(other)))
        assert curves(RunFolder.of(alone)) == curves(RunFolder.of(other))


def test_nothing_is_compiled_after_the_first_steps(make_config: MakeConfig, caplog: pytest.LogCaptureFixture) -> None:
    graphs = []
    for steps in ("1steps", "9steps"):  # with two validations and a checkpoint in between
        config = compiled(make_config, name=f"for-{steps}")
        config.budget, config.validate_every = steps, 4
        torch.compiler.reset()  # or what an earlier run compiled would serve
        counters.clear()
        with caplog.at_level(logging.WARNING):
            train(config)
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs[0] == graphs[1] > 0
    assert "uncompiled" not in caplog.text
