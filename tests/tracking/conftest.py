from __future__ import annotations

import pytest

from taco_cli.config.schema import RunConfig
from taco_cli.tracking import RunFolder


@pytest.fixture
def config(tmp_path) -> RunConfig:
    return RunConfig(name="ablations", label="taco", seed=3, output_root=str(tmp_path / "outputs"))


@pytest.fixture
def folder(config) -> RunFolder:
    return RunFolder.of(config)
