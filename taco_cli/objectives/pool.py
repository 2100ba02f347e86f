"""The pool of a micro-batch: its sequences, gathered over data-parallel ranks (method, section 3).

Every rank calls every collective whether or not it has anchors, so that none waits for another.

Shapes: N sequences of a rank, R = ranks x N sequences of the pool.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from taco_cli.config.schema import Pool


def pool_ranks(pool: Pool) -> tuple[int, int]:
    """Return this process's place in the pool and the number of processes that share it."""
    if pool == Pool.rank or not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def gather_rows(part: Tensor, ranks: int) -> Tensor:
    """Concatenate equal parts along the first dimension in rank order; differentiable.

    The gradient of a part is the sum of what all ranks' losses say about it.
    """
    if ranks == 1:
        return part
    gathered: Tensor = _Gather.apply(part, ranks)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, ranks: int) -> Tensor:
        ctx.rows, ctx.rank = part.shape[0], distributed.get_rank()
        # As bytes, since not every backend carries every type.
        source = part.contiguous().view(torch.uint8)
        gathered = source.new_empty((ranks * source.shape[0], *source.shape[1:]))
        distributed.all_gather_into_tensor(gathered, source)
        return gathered.view(part.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        total = grad.to(torch.promote_types(grad.dtype, torch.float32), copy=True)
        distributed.all_reduce(total)
        return total[ctx.rank * ctx.rows :][: ctx.rows].to(grad.dtype), None
