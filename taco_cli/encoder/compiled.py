"""Compilation of a call that falls back to the plain call where a machine cannot compile."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

logger = logging.getLogger(__name__)


def compile_or_fall_back(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function``; if its first call cannot be compiled, warn once and call it as it is from then on.

    A missing C++ compiler shows only when the first call is compiled, so that call decides, for the backward pass too.
    Torch keeps what it compiled on disk, and a process killed meanwhile leaves half a file there, on which every later
    start would fail: so a failure is tried once more without that cache. An error that is not the compiler's passes
    through.
    """
    import torch._functorch.config

    torch._functorch.config.force_non_lazy_backward_lowering = True
    # One graph per (shape, training or evaluation, with or without padding); no graph for unknown shapes, which would
    # be slower for all of them.
    chosen: Callable[..., Any] = torch.compile(function, dynamic=False)
    settled = False

    def call(*arguments: Any) -> Any:
        nonlocal chosen, settled
        if settled:
            return chosen(*arguments)
        settled = True
        try:
            return chosen(*arguments)
        except _compiler_errors() as error:
            first = error
        try:
            return _without_cache(chosen, *arguments)
        except _compiler_errors():
            logger.warning("torch.compile does not work here (%s); going on uncompiled", _first_line(first))
            chosen = function
            return chosen(*arguments)

    return call


def _without_cache(compiled: Callable[..., Any], *arguments: Any) -> Any:
    from torch._inductor.utils import fresh_cache

    torch.compiler.reset()
    with fresh_cache():
        result = compiled(*arguments)
    logger.warning("torch's cache of compiled code is damaged and was not used; `rm -r %s` mends it", _cache_folder())
    return result


def _cache_folder() -> str:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return str(cache_dir())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _compiler_errors() -> tuple[type[Exception], ...]:
    # Imported on failure alone: it takes a second, and not every torch build has inductor.
    try:
        from torch._dynamo.exc import TorchDynamoException
        from torch._inductor.exc import InductorError
    except ImportError:
        return (RuntimeError, ImportError)
    return (TorchDynamoException, InductorError)
