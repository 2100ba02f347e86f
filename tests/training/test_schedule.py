from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import get_cosine_schedule_with_warmup, get_linear_schedule_with_warmup

from taco_cli.config.schema import OptimizerConfig, Schedule
from taco_cli.training.schedule import lr_factor


def _reference(make, warmup_steps: int, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = make(optimizer, num_warmup_steps=warmup_steps, num_training_steps=steps)
    factors = []
    for _ in range(steps):
        factors.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return factors


@pytest.mark.parametrize(
    ("schedule", "make"),
    [(Schedule.linear, get_linear_schedule_with_warmup), (Schedule.cosine, get_cosine_schedule_with_warmup)],
)
@pytest.mark.parametrize("warmup_steps", [0, 1, 10])
def test_equals_transformers_for_a_step_budget(schedule, make, warmup_steps):
    steps = 100
    config = OptimizerConfig(schedule=schedule, warmup=warmup_steps / steps)
    ours = [lr_factor(step / steps, config) for step in range(steps)]
    assert ours == pytest.approx(_reference(make, warmup_steps, steps), abs=1e-12)


def test_the_first_update_after_warmup_begins_at_zero_and_the_second_does_not():
    config = OptimizerConfig(warmup=0.1)
    assert lr_factor(0.0, config) == 0.0
    assert lr_factor(1 / 100, config) == pytest.approx(0.1)


def test_constant_holds_the_peak_until_the_decay():
    config = OptimizerConfig(schedule=Schedule.constant, warmup=0.1, decay=0.2)
    assert [lr_factor(p, config) for p in (0.05, 0.1, 0.5, 0.8)] == pytest.approx([0.5, 1, 1, 1])
    assert [lr_factor(p, config) for p in (0.9, 0.95, 1.0)] == pytest.approx([0.5, 0.25, 0])


def test_constant_without_decay_stays_at_the_peak():
    config = OptimizerConfig(schedule=Schedule.constant, warmup=0.0, decay=0.0)
    assert {lr_factor(p, config) for p in (0.0, 0.5, 0.999)} == {1.0}


@given(st.sampled_from(Schedule), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_is_a_share_for_any_setting(schedule, progress, warmup, decay):
    config = OptimizerConfig(schedule=schedule, warmup=warmup, decay=decay)
    assert 0.0 <= lr_factor(progress, config) <= 1.0


@given(st.sampled_from(Schedule), st.floats(0.2, 1), st.floats(0.2, 1))
@settings(max_examples=100, deadline=None)
def test_never_rises_after_warmup(schedule, one, other):
    config = OptimizerConfig(schedule=schedule, warmup=0.2)
    early, late = sorted((one, other))
    assert lr_factor(early, config) >= lr_factor(late, config)
