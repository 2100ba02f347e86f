"""Evaluation of checkpoints: fine-tuning on GLUE and on tasks of one's own, and measures of frozen states."""

from taco_cli.evaluation.during import load_zero_shot
from taco_cli.evaluation.run import Evaluated, evaluate
from taco_cli.evaluation.summary import Summary, summarise, track

__all__ = ["Evaluated", "Summary", "evaluate", "load_zero_shot", "summarise", "track"]
