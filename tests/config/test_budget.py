from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.config.budget import Budget, BudgetKind


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [
        ("300steps", BudgetKind.steps, 300),
        ("1step", BudgetKind.steps, 1),
        ("10ksteps", BudgetKind.steps, 10_000),
        (" 300 steps ", BudgetKind.steps, 300),
        ("20Mtokens", BudgetKind.tokens, 20_000_000),
        ("1.5Btokens", BudgetKind.tokens, 1_500_000_000),
        ("1.1Mtokens", BudgetKind.tokens, 1_100_000),
        ("500_000tokens", BudgetKind.tokens, 500_000),
        ("90s", BudgetKind.seconds, 90),
        ("30min", BudgetKind.seconds, 1800),
        ("1.5 h", BudgetKind.seconds, 5400),
    ],
)
def test_parse_reads_every_form(text, kind, amount):
    assert Budget.parse(text) == Budget(kind, amount)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "300",
        "steps",
        "0steps",
        "-3steps",
        "1.5steps",
        "0.5tokens",
        "3 days",
        "2Mmin",
        "1e6tokens",
        "300  steps",
        "²steps",
        "1,000steps",
        "nanh",
    ],
)
def test_parse_refuses_with_key_value_and_allowed_forms(text):
    with pytest.raises(ValueError, match="budget") as caught:
        Budget.parse(text)
    message = str(caught.value)
    assert repr(text) in message
    for form in ("300steps", "20Mtokens", "30min"):
        assert form in message


@given(st.sampled_from(BudgetKind), st.integers(1, 10**13))
@settings(max_examples=200, deadline=None)
def test_text_reads_back(kind, amount):
    budget = Budget(kind, amount)
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("text", ["1000steps", "20Mtokens", "1.5Btokens", "30min", "2h", "90s", "0.5s"])
def test_text_is_what_a_user_would_write(text):
    assert str(Budget.parse(text)) == text


@given(
    st.sampled_from(BudgetKind),
    st.integers(1, 1000),
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.floats(0, 2000),
)
@settings(max_examples=200, deadline=None)
def test_progress_is_clipped_and_complete_exactly_when_done(kind, amount, step, tokens, seconds):
    budget = Budget(kind, amount)
    progress = budget.progress(step, tokens, seconds)
    assert 0.0 <= progress <= 1.0
    assert budget.done(step, tokens, seconds) == (progress == 1.0)


def test_each_kind_counts_its_own():
    assert Budget.parse("10steps").progress(5, 10**9, 1e9) == 0.5
    assert Budget.parse("1ktokens").progress(10**9, 250, 1e9) == 0.25
    assert Budget.parse("10s").progress(10**9, 10**9, 1.0) == 0.1


def test_steps_covers_the_tokens_and_is_unknown_for_time():
    assert Budget.parse("7steps").steps(1000) == 7
    assert Budget.parse("10ktokens").steps(1000) == 10
    assert Budget.parse("10_001tokens").steps(1000) == 11
    assert Budget.parse("1h").steps(1000) is None


@given(st.integers(1, 10**12), st.integers(1, 10**6))
@settings(max_examples=100, deadline=None)
def test_a_token_budget_is_done_after_its_steps_and_not_before(amount, tokens_per_step):
    budget = Budget(BudgetKind.tokens, amount)
    steps = budget.steps(tokens_per_step)
    assert steps is not None
    assert budget.done(steps, steps * tokens_per_step, 0.0)
    assert not budget.done(steps - 1, (steps - 1) * tokens_per_step, 0.0)
