"""Watching methods of the tool from outside while a benchmark runs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: type, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Replace a method by ``wrapper(method)`` inside the block."""
    method = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, functools.wraps(method)(wrapper(method)))
    try:
        yield
    finally:
        setattr(owner, name, method) if own else delattr(owner, name)


def after(owner: type, name: str, act: Callable[[Any], None]) -> Any:
    """Call ``act(self)`` after each call of a method."""

    def wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            result = method(self, *arguments, **named)
            act(self)
            return result

        return call

    return replaced(owner, name, wrapper)


def timed(owner: type, name: str, tell: Callable[[float], None]) -> Any:
    """Call ``tell(seconds)`` after each call of a method."""

    def wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                tell(time.perf_counter() - start)

        return call

    return replaced(owner, name, wrapper)
