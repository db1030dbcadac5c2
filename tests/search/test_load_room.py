"""How much more load a plan takes: the reported load holds the limits, and the next step does not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.sensitivity import load_room
from shardwright.tools.search.simulated import candidate_at

from .requests import search_request

ROOMS: list[tuple[str, tuple[int, int, str], dict[str, Any]]] = [
    ("Llama-3.1-8B-Instruct", (1, 2, "h100-sxm"), {"request_rate": 20.0, "tpot_ms_max": 25.0, "objective": "latency"}),
    ("Qwen3-32B", (1, 4, "h100-sxm"), {"concurrency": 40, "tpot_ms_max": 25.0, "objective": "latency"}),
    ("Mixtral-8x7B-v0.1", (1, 8, "h100-sxm"), {"concurrency": 16, "ttft_ms_max": 500.0, "objective": "throughput"}),
]


def feasible_at(request: SearchRequest, strategy: Any, concurrency: int, times: float) -> bool:
    rate = request.workload.request_rate
    load = {"concurrency": round(concurrency * times), "request_rate": None if rate is None else rate * times}
    more = replace(request, workload=request.workload.model_copy(update=load))
    return candidate_at(more, base_setting(more), strategy, more.workload.concurrency).feasible


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "hardware", "load"), ROOMS, ids=[model for model, _, _ in ROOMS])
def test_the_most_load_holds_the_limits_and_half_as_much_again_does_not(
    model: str, hardware: tuple[int, int, str], load: dict[str, Any]
) -> None:
    request = search_request(model, hardware, input_tokens=1024, output_tokens=128, **load)
    best = search(request).best
    assert best is not None
    room = load_room(request, best)
    assert room is not None
    assert feasible_at(request, best.strategy, best.concurrency, room.times)
    if room.missed_at is None:
        assert room.times == 2.0 and not room.missed
    else:
        assert room.missed and not feasible_at(request, best.strategy, best.concurrency, room.times * 1.5)


def test_a_plan_at_its_limit_takes_no_more_load() -> None:
    request = search_request(
        "Qwen3-32B", (1, 4, "h100-sxm"), input_tokens=1024, output_tokens=128, concurrency=40, objective="latency"
    )
    best = search(request).best
    assert best is not None and best.tpot_ms is not None
    tight = request.workload.model_copy(update={"tpot_ms_max": best.tpot_ms * 1.001})
    room = load_room(replace(request, workload=tight), best)
    assert room is not None and room.most is None
    assert room.missed_at == "42 requests at once" and room.missed[0].startswith("TPOT ")


def test_without_a_limit_or_a_number_of_requests_there_is_no_room_to_tell_of() -> None:
    lengths: dict[str, Any] = {"input_tokens": 512, "output_tokens": 16, "objective": "throughput"}
    for more in ({"concurrency": 4}, {"tpot_ms_max": 50.0}):
        request = search_request("Llama-3.1-8B-Instruct", (1, 1, "h100-sxm"), **lengths, **more)
        best = search(request).best
        assert best is not None and load_room(request, best) is None
