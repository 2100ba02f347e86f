"""What counts compilations really counts them."""

from __future__ import annotations

import torch

from benchmarks.modules import graphs


def test_another_shape_is_another_graph() -> None:
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    before = graphs()
    double(torch.ones(2))
    double(torch.ones(2))
    assert graphs() == before + 1
    double(torch.ones(3))
    assert graphs() == before + 2
