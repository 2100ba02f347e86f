"""Reads finished and unfinished runs and reports what differs between their arms."""

from taco_cli.report.compare import Report, compare
from taco_cli.report.results import Comparison

__all__ = ["Comparison", "Report", "compare"]
