"""A mix of workloads: one plan, limits held for each kind of request, rates of the mixture."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.search.mix import Part, search_mix
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.simulated import candidate_at

from ..spaces import colocated
from .requests import search_request

H100 = (1, 4, "h100-sxm")
CHAT = search_request(
    "Llama-3.1-8B-Instruct", H100, input_tokens=1024, output_tokens=256, concurrency=32, objective="throughput"
)
LONG = replace(CHAT, workload=CHAT.workload.model_copy(update={"input_tokens": 6000, "output_tokens": 512}))


def test_one_kind_alone_is_planned_as_the_search_plans_it() -> None:
    mixed, alone = search_mix([Part("chat", CHAT, 3.0)]).best, search(CHAT).best
    assert mixed is not None and alone is not None
    assert (mixed.strategy, mixed.concurrency) == (alone.strategy, alone.concurrency)
    assert mixed.output_tokens_per_s == pytest.approx(alone.output_tokens_per_s)


def test_the_best_mixed_plan_is_that_of_an_enumeration() -> None:
    weights = {"chat": 0.75, "long": 0.25}
    rates: dict[object, float] = {}
    for strategy in colocated(CHAT.space):
        seconds = 0.0
        for request, weight in ((CHAT, weights["chat"]), (LONG, weights["long"])):
            candidate = candidate_at(request, base_setting(request), strategy, 32)
            seconds += (
                weight * request.workload.output_tokens / candidate.output_tokens_per_s if candidate.feasible else 1e9
            )
        rates[strategy] = (0.75 * 256 + 0.25 * 512) / seconds
    result = search_mix([Part("chat", CHAT, 3.0), Part("long", LONG, 1.0)])
    best = result.best
    assert best is not None
    assert best.output_tokens_per_s == pytest.approx(rates[best.strategy])
    assert best.output_tokens_per_s >= max(rates.values()) * (1 - 0.006)
    assert result.evaluated >= len(rates)


def test_limits_hold_for_each_kind() -> None:
    strict = replace(LONG, workload=LONG.workload.model_copy(update={"ttft_ms_max": 400.0}))
    result = search_mix([Part("chat", CHAT, 3.0), Part("long", strict, 1.0)])
    assert result.best is not None
    assert result.best.parts["long"].ttft_ms <= 400.0
    assert any(
        candidate.why_not and candidate.why_not[0].startswith("long: PE010: TTFT") for candidate in result.candidates
    )
    impossible = replace(LONG, workload=LONG.workload.model_copy(update={"ttft_ms_max": 1.0}))
    assert search_mix([Part("chat", CHAT, 3.0), Part("long", impossible, 1.0)]).best is None


def test_a_heavier_kind_weighs_more() -> None:
    light = search_mix([Part("chat", CHAT, 9.0), Part("long", LONG, 1.0)]).best
    heavy = search_mix([Part("chat", CHAT, 1.0), Part("long", LONG, 9.0)]).best
    assert light is not None and heavy is not None
    assert light.requests_per_s > heavy.requests_per_s


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "at least one workload"),
        ([Part("chat", CHAT, 1.0), Part("chat", LONG, 1.0)], "a name of its own"),
        ([Part("chat", CHAT, 0.0)], "weight 0"),
        ([Part("chat", replace(CHAT, disaggregated=True), 1.0)], "not disaggregated"),
    ],
)  # fmt: skip
def test_what_a_mix_has_no_answer_to_is_refused_in_one_line(parts: list[Part], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search_mix(parts)
