"""Shared prefixes as data: what they mean for lengths, what is refused, and the most that a cache can find."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shardwright.tools.plan.document import WorkloadBlock
from shardwright.tools.plan.load import longest_stated, repeated_share, spread_of
from shardwright.tools.plan.prefixes import SharedPrefixes
from shardwright.tools.plan.quantiles import Joint

REFUSED = json.loads((Path(__file__).parents[1] / "cases" / "prefixes_refused.json").read_text(encoding="utf-8"))


def workload(**more: Any) -> WorkloadBlock:
    return WorkloadBlock.model_validate({"input_tokens": 4000, "output_tokens": 300, **more})


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_what_cannot_be_is_refused_with_its_reason(case: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        WorkloadBlock.model_validate({"input_tokens": 1000, "output_tokens": 200, **case["workload"]})
    assert case["says"] in str(refused.value)


def test_turns_grow_by_what_was_said_and_their_mean_prompt_is_the_stated_one() -> None:
    # 1,600 of system prompt, 600 new a turn: 2,200; 2,200 + 300 + 600; ...
    load = workload(prefixes={"system_tokens": 1600, "turns": 5})
    spread = spread_of(load)
    assert spread == Joint(((2200, 300), (3100, 300), (4000, 300), (4900, 300), (5800, 300)))
    assert longest_stated(load) == (5800, 300)
    # A cache finds at most the system prompt, then each prompt with its answer except the answer's last token.
    assert repeated_share(load) == (1600 + 2499 + 3399 + 4299 + 5199) / 20_000


@given(st.integers(2, 256), st.integers(1, 2000), st.integers(0, 5000), st.integers(0, 3000))
def test_each_turn_repeats_all_before_it_and_says_more(turns: int, answer: int, system: int, more: int) -> None:
    least = -(-(2 * system + turns + 1 + answer * (turns - 1)) // 2)
    prefixes = {"turns": turns} if system == 0 else {"turns": turns, "system_tokens": system}
    load = workload(input_tokens=least + more, output_tokens=answer, prefixes=prefixes)
    spread = spread_of(load)
    assert isinstance(spread, Joint) and len(spread.pairs) == turns
    assert spread.means[0] == pytest.approx(least + more, abs=1.0)
    prompts = [tokens for tokens, _ in spread.pairs]
    assert prompts[0] > system
    assert all(later > earlier + answer for earlier, later in pairwise(prompts))
    assert 0.0 < repeated_share(load) < 1.0


def test_what_can_be_found_at_most_is_what_is_shared_or_the_rate_that_is_given() -> None:
    assert repeated_share(workload()) == 0.0
    assert repeated_share(workload(prefix_cache_hit_rate=0.3)) == 0.3
    assert repeated_share(workload(prefixes={"system_tokens": 1000})) == 0.25
    replay = {"lengths": {"pairs": [[3000, 300], [5000, 300]]}, "prefixes": {"replay": [[0, 0], [0, 2000]]}}
    assert repeated_share(workload(**replay)) == 2000 / 8000


def test_prefixes_are_written_as_they_were_read_and_only_where_they_are_stated() -> None:
    assert "prefixes" not in json.loads(workload().model_dump_json())
    for stated in (
        {"system_tokens": 1000, "system_prompts": 20, "system_skew": 1.0},
        {"turns": 5, "routing": "sticky"},
    ):
        written = workload(prefixes=stated).model_dump_json()
        assert json.loads(written)["prefixes"] == stated
        assert WorkloadBlock.model_validate_json(written).prefixes == SharedPrefixes.model_validate(stated)


def test_users_may_think_between_turns_at_a_stated_rate() -> None:
    load = workload(prefixes={"turns": 5}, request_rate=2.0, arrivals={"think_time_s": 30.0, "burstiness": 0.5})
    assert load.arrivals is not None and load.arrivals.think_time_s == 30.0


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"system_tokens": 6000}, "a system prompt of 6,000 tokens shared by all"),
        (
            {"system_tokens": 6000, "system_prompts": 20, "system_skew": 1.0},
            "a system prompt of 6,000 tokens of 20 different ones, the n-th asked for as n^-1",
        ),
        ({"turns": 5}, "conversations of 5 turns, each of which repeats all before it"),
        ({"replay": [[0, 0], [0, 16]]}, "beginnings as 2 recorded requests in a row shared them"),
    ],
)
def test_words_say_what_is_shared(stated: dict[str, Any], words: str) -> None:
    assert str(SharedPrefixes.model_validate(stated)) == words
