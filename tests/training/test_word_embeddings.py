"""What a run does to word embeddings that are frozen or taken over."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForMaskedLM

from taco_cli.config.schema import OptimizerName, RunConfig, WordEmbeddings
from taco_cli.tracking import RunFolder
from taco_cli.training import train
from tests.conftest import MakeConfig


def final_table(config: RunConfig) -> torch.Tensor:
    export = max(RunFolder.of(config).exports.glob("step-*"))
    weight: torch.Tensor = AutoModelForMaskedLM.from_pretrained(export).get_input_embeddings().weight
    return weight.detach()


@pytest.mark.parametrize("optimizer", list(OptimizerName))
def test_frozen_copies_stay_and_trained_ones_move(make_config: MakeConfig, optimizer: OptimizerName) -> None:
    source = make_config(name="source")
    train(source)
    taken = {"encoder__word_embeddings_from": str(RunFolder.of(source).path), "optimizer__name": optimizer}
    frozen = make_config(name="frozen", encoder__word_embeddings=WordEmbeddings.frozen, **taken)
    trained = make_config(name="trained", **taken)
    train(frozen)
    train(trained)
    assert torch.equal(final_table(frozen), final_table(source))
    assert not torch.equal(final_table(trained), final_table(source))
