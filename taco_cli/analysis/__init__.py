"""Analyses of checkpoints: what their states look like, and what each loss term trains."""

from taco_cli.analysis.curves import track
from taco_cli.analysis.run import Analysis, analyze

__all__ = ["Analysis", "analyze", "track"]
