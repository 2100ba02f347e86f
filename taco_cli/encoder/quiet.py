"""Silence for what transformers prints while it reads or writes weights, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide the progress bars over shards and the loading report.

    The report lists missing and unexpected weights; whoever loads in this context must report them from
    ``output_loading_info``.
    """
    from transformers.utils import logging as hf_logging

    reporters = [logging.getLogger(f"transformers.{name}") for name in ("modeling_utils", "utils.loading_report")]
    before = [reporter.disabled for reporter in reporters]
    bars = hf_logging.is_progress_bar_enabled()
    try:
        for reporter in reporters:
            reporter.disabled = True
        hf_logging.disable_progress_bar()
        yield
    finally:
        for reporter, disabled in zip(reporters, before, strict=True):
            reporter.disabled = disabled
        if bars:
            hf_logging.enable_progress_bar()
