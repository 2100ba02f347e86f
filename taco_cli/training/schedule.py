"""The learning rate's course: a pure function of the budget's share used, so that a resume cannot shift it.

Step ``s`` (counted from 0) uses the progress at its *beginning*. With a budget of ``T`` steps that is
``s / T``, and the factors are those of Hugging Face's schedules: warm-up over ``w`` steps gives 0, 1/w, 2/w,
..., the peak at step ``w``, and the last step has ``1 / (T - w)`` of it (linear). With a warm-up the very
first update therefore has learning rate zero, as in the released code: it only fills the optimizer's
averages.
"""

from __future__ import annotations

import math

from taco_cli.config.schema import OptimizerConfig, Schedule


def lr_factor(progress: float, config: OptimizerConfig) -> float:
    """Return the learning rate as a share of its peak, in [0, 1].

    Args:
        progress: share of the budget used before this step, in [0, 1].
        config: `schedule`, `warmup` (share of the budget) and, for `constant`, `decay` (share of the budget).
    """
    if progress < config.warmup:
        return progress / config.warmup
    if progress >= 1.0:
        return 0.0
    if config.schedule is Schedule.constant:
        return min(1.0, (1.0 - progress) / config.decay) if config.decay > 0 else 1.0
    after_warmup = (progress - config.warmup) / (1.0 - config.warmup)
    if config.schedule is Schedule.cosine:
        return 0.5 * (1.0 + math.cos(math.pi * after_warmup))
    return 1.0 - after_warmup
