"""Pre-training: one run from its configuration to its last checkpoint."""

from taco_cli.training.entry import Result, train

__all__ = ["Result", "train"]
