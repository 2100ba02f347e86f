"""Pre-training: one run from its configuration to its last checkpoint."""

from taco_cli.training.run import Result, train

__all__ = ["Result", "train"]
