from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

from taco_cli.encoder.compiled import compile_or_fall_back


def failing_compiler(error: Exception) -> Any:
    def compile(function: Any, **_: Any) -> Any:
        def call(*_: Any) -> Any:
            raise error

        return call

    return compile


def test_without_a_compiler_one_warning_and_the_plain_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from torch._inductor.exc import InductorError, InvalidCxxCompiler

    monkeypatch.setattr(torch, "compile", failing_compiler(InductorError(InvalidCxxCompiler(), None)))
    call = compile_or_fall_back(lambda x: x + 1)
    with caplog.at_level(logging.WARNING):
        assert [call(1), call(2)] == [2, 3]
    assert len(caplog.records) == 1
    assert "going on uncompiled" in caplog.text


def test_errors_of_the_call_itself_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", failing_compiler(ZeroDivisionError("mine")))
    with pytest.raises(ZeroDivisionError, match="mine"):
        compile_or_fall_back(lambda x: x)(1)
