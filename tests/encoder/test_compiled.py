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
    assert [record.name for record in caplog.records if record.name.startswith("taco_cli")] == [
        "taco_cli.encoder.compiled"
    ]
    assert "going on uncompiled" in caplog.text


def test_errors_of_the_call_itself_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", failing_compiler(ZeroDivisionError("mine")))
    with pytest.raises(ZeroDivisionError, match="mine"):
        compile_or_fall_back(lambda x: x)(1)


def test_damaged_cache_is_passed_by(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from torch._inductor.exc import InductorError

    calls = []

    def compile(function: Any, **_: Any) -> Any:
        def call(x: int) -> Any:
            calls.append(x)
            if len(calls) == 1:
                raise InductorError(ImportError("main.so: file too short"), None)
            return function(x)

        return call

    monkeypatch.setattr(torch, "compile", compile)
    call = compile_or_fall_back(lambda x: x + 1)
    with caplog.at_level(logging.WARNING):
        assert [call(1), call(2)] == [2, 3]
    assert "cache of compiled code is damaged" in caplog.text
    assert calls == [1, 1, 2]
