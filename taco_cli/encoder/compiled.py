"""Compilation of a call that falls back to the plain call where a machine cannot compile."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import torch

logger = logging.getLogger(__name__)


def compile_or_fall_back(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function``; if its first call cannot be compiled, warn once and call it as it is from then on.

    A missing C++ compiler shows only when the first call is compiled, so that call decides. An error that is not the
    compiler's passes through.
    """
    # One graph per (shape, training or evaluation, with or without padding); no graph for unknown shapes, which would
    # be slower for all of them.
    with warnings.catch_warnings():
        # torch's own modules use what torch has deprecated when the compiler is first imported.
        warnings.filterwarnings("ignore", "`torch.jit.*` is deprecated", DeprecationWarning)
        # Several encoders in one process (a sweep) share the code that is compiled, and torch gives up on code with
        # many graphs: forget those of earlier encoders.
        torch.compiler.reset()
        chosen: Callable[..., Any] = torch.compile(function, dynamic=False)

    def call(*arguments: Any) -> Any:
        nonlocal chosen
        try:
            return chosen(*arguments)
        except _compiler_errors() as error:
            if chosen is function:
                raise
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            logger.warning("torch.compile does not work here (%s); going on uncompiled", reason)
            chosen = function
            return chosen(*arguments)

    return call


def _compiler_errors() -> tuple[type[Exception], ...]:
    # Imported on failure alone: it takes a second, and not every torch build has inductor.
    try:
        from torch._dynamo.exc import TorchDynamoException
        from torch._inductor.exc import InductorError
    except ImportError:
        return (RuntimeError, ImportError)
    return (TorchDynamoException, InductorError)
