"""How large the tensors of a computation get."""

from __future__ import annotations

from typing import Any

from torch import Tensor, strided
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Remembers the most elements of any floating-point tensor that an operation returned."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.layout == strided and leaf.is_floating_point():
                self.elements = max(self.elements, leaf.numel())
        return result
