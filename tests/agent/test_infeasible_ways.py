"""An infeasible answer names the number formats and cards that would do, and each of them does."""

from __future__ import annotations

import pytest

from shardwright.agent.pipeline import plan

TOO_LARGE = "Serve Llama-3.1-405B on {}, 2k in, 256 out, 16 users, TPOT under 50 ms"


def test_formats_and_cards_that_would_do_are_named_with_their_plan() -> None:
    answer = plan(TOO_LARGE.format("8 H100"))
    assert answer.infeasible is not None
    ways = answer.infeasible.other_ways
    assert any(one.startswith("in fp8: ") and "quality" in one for one in ways)
    assert any(one.startswith("on 8 × h200-sxm: ") for one in ways)


@pytest.mark.parametrize("changed", ["8 H200", "8 H100 in fp8"])
def test_a_way_that_is_named_has_a_plan(changed: str) -> None:
    assert plan(TOO_LARGE.format(changed)).valid


def test_nothing_is_named_where_nothing_would_do() -> None:
    answer = plan("Serve Llama-3.1-70B on 4 A100, 2k in, 256 out, 16 users, TPOT under 0.1 ms")
    assert answer.infeasible is not None and answer.infeasible.other_ways == ()
