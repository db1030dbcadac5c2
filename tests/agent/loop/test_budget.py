"""A budget is never given back, counts each kind separately, and names the limit that was reached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shardwright.agent.loop.budget import Budget, Limits, Prices
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import Usage

USAGES = st.builds(Usage, input_tokens=st.integers(0, 10**6), output_tokens=st.integers(0, 10**6))


def used(input_tokens: int = 0, output_tokens: int = 0, cached: int = 0, *, estimated: bool = False) -> Usage:
    return Usage(
        input_tokens=input_tokens, output_tokens=output_tokens, cached_input_tokens=cached, is_estimated=estimated
    )


def test_a_full_purse_is_not_exhausted() -> None:
    budget = Budget.start(Limits())
    assert budget.exhausted() is None
    assert budget.has_corrections
    assert budget.spent.usd is None


@given(st.lists(USAGES, max_size=20))
def test_answers_add_up_and_nothing_is_given_back(usages: list[Usage]) -> None:
    budget = Budget.start(Limits(), Prices(usd_per_million_input=1, usd_per_million_output=2))
    before = 0
    for at, usage in enumerate(usages):
        budget.charge_answer(usage, at)
        assert budget.spent.input_tokens + budget.spent.output_tokens >= before
        before = budget.spent.input_tokens + budget.spent.output_tokens
    assert budget.spent.turns == len(usages)
    assert budget.spent.requests == sum(range(len(usages)))
    assert budget.spent.input_tokens == sum(usage.input_tokens for usage in usages)
    assert budget.spent.output_tokens == sum(usage.output_tokens for usage in usages)
    cost = sum(usage.input_tokens + 2 * usage.output_tokens for usage in usages) / 1e6
    assert budget.spent.usd == pytest.approx(cost)


def test_tokens_end_a_run_at_their_limit() -> None:
    budget = Budget.start(Limits(tokens=100))
    budget.charge_answer(used(60, 39), 1)
    assert budget.exhausted() is None
    budget.charge_answer(used(0, 1), 1)
    assert budget.exhausted() == "tokens_spent"


def test_tool_calls_up_to_the_limit_may_be_made() -> None:
    budget = Budget.start(Limits(tool_calls=2))
    budget.charge_tool_calls(2)
    assert budget.exhausted() is None
    budget.charge_tool_calls(1)
    assert budget.exhausted() == "tool_calls_spent"


def test_corrections_are_counted_apart_from_everything_else() -> None:
    budget = Budget.start(Limits(corrections=1))
    budget.charge_answer(used(10, 10), 5)
    budget.charge_tool_calls(3)
    assert budget.has_corrections
    budget.charge_correction()
    assert not budget.has_corrections
    assert budget.exhausted() is None


def test_no_corrections_are_a_limit_too() -> None:
    assert not Budget.start(Limits(corrections=0)).has_corrections


def test_cost_ends_a_run_at_its_limit() -> None:
    budget = Budget.start(Limits(usd=0.01), Prices(usd_per_million_input=10, usd_per_million_output=0))
    budget.charge_answer(used(999), 1)
    assert budget.exhausted() is None
    budget.charge_answer(used(1), 1)
    assert budget.exhausted() == "cost_spent"


def test_time_ends_a_run_and_is_named_before_all_else() -> None:
    budget = Budget.start(Limits(tokens=1))
    budget.charge_answer(used(5), 1)
    budget.deadline = Deadline.after(0)
    assert budget.exhausted() == "time_spent"


def test_requests_without_an_answer_cost_no_turn() -> None:
    budget = Budget.start(Limits())
    budget.charge_requests(4)
    assert (budget.spent.requests, budget.spent.turns) == (4, 0)


def test_cached_input_costs_its_own_price_where_it_has_one() -> None:
    usage = used(1_000_000, 0, cached=400_000)
    dear = Prices(usd_per_million_input=10, usd_per_million_output=0)
    cheap = dear.model_copy(update={"usd_per_million_cached_input": 1.0})
    assert dear.cost_usd(usage) == pytest.approx(10)
    assert cheap.cost_usd(usage) == pytest.approx(6.4)


def test_one_estimated_count_makes_the_sum_an_estimate() -> None:
    budget = Budget.start(Limits())
    budget.charge_answer(used(1, estimated=True), 1)
    budget.charge_answer(used(1), 1)
    assert budget.spent.tokens_estimated


@pytest.mark.parametrize("wrong", [{"corrections": -1}, {"tokens": 0}, {"usd": 0}, {"seconds": 0}, {"rounds": 3}])
def test_limits_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate(wrong)
