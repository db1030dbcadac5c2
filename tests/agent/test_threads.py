"""Library calls in many threads at once, or inside a running event loop, answer as when made in sequence."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest

import shardwright
from shardwright.agent.evaluation.dataset import dataset_of_text
from shardwright.tools.autofix.result import certificate
from shardwright.tools.rules.examples import base_plan

THREADS = 8
LOAD = {"input_tokens": 512, "output_tokens": 32, "concurrency": 4}
SHORT = {"input_tokens": 512, "output_tokens": 32}
QUESTIONS = (
    "What is tensor parallelism?",
    "Why is PP003 broken?",
    "张量并行 or EP?",
    "How much memory has a KV cache?",
)


def _broken(name: str, node_type: str) -> dict[str, Any]:
    """A good plan without its first node of a type."""
    plan = base_plan(name)
    lost = next(node["id"] for node in plan["nodes"] if node["type"] == node_type)
    return {**plan, "nodes": [node for node in plan["nodes"] if node["id"] != lost]}


def _planned(request: str) -> dict[str, Any]:
    result = shardwright.plan(request).model_dump(mode="json")
    return {name: result[name] for name in ("plan", "valid", "estimate")} | {"citations": result["report"]["citations"]}


def _searched(config: dict[str, Any]) -> dict[str, Any]:
    answer = shardwright.search(model=config, hardware="1x2:h100-sxm", workload=LOAD).model_dump(mode="json")
    return {name: value for name, value in answer.items() if name != "seconds"}


def _verified(document: dict[str, Any]) -> Any:
    text = json.dumps(document)
    return shardwright.verify(json.loads(json.dumps(certificate(text, shardwright.autofix(text)))))


def _evaluated(request: str) -> Any:
    cases = dataset_of_text(json.dumps({"request": request, "strategy": "TP2"}), "one case")
    return [result.model_dump(mode="json") for result in shardwright.evaluate(cases, jobs=1).results]


CALLS: list[Callable[[], Any]] = [
    *(partial(shardwright.explain, question) for question in QUESTIONS),
    *(partial(shardwright.validate, base_plan(name)) for name in ("moe-ep2", "dense-tp2")),
    *(partial(shardwright.estimate, base_plan(name)) for name in ("moe-ep2", "dense-tp2")),
    *(partial(shardwright.autofix, _broken("moe-ep2", kind)) for kind in ("ShardNode", "ExpertNode", "PhaseNode")),
    partial(shardwright.compare, base_plan("dense-tp2"), "TP1"),
    partial(shardwright.export, base_plan("dense-tp2"), "vllm"),
    partial(shardwright.import_plan, "vllm serve Qwen/Qwen3-8B -tp 2", hardware="1x2:h100-sxm"),
    partial(
        shardwright.plan_mix, workloads=[{"name": "a", "weight": 1, **SHORT}], model="llama-3.2-1b", hardware="1x2:l4"
    ),
    partial(_evaluated, "Llama-3.2-1B on 2 L4, 512 in / 32 out"),
    partial(_verified, _broken("dense-tp2", "AllReduceNode")),
    partial(_searched, base_plan("moe-ep2")["model"]["config"]),
    partial(_planned, "Serve Llama-3.1-8B on 2 H100, 1k in / 64 out, lowest latency"),
    partial(shardwright.autofix, "Llama-3.1-8B, TP2, one node of 2 H100, 1024 in, 64 out, batch 4"),
]


def _text(call: Callable[[], Any]) -> str:
    result = call()
    return json.dumps(result.model_dump(mode="json") if hasattr(result, "model_dump") else result, sort_keys=True)


@pytest.fixture
def hasty_switches() -> Iterator[None]:
    """Make threads switch a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.thorough
@pytest.mark.usefixtures("hasty_switches")
def test_eight_threads_at_once_say_what_one_does() -> None:
    """The threads come first, so that all of them load lazy data at once."""
    start = Barrier(THREADS)

    def some(number: int) -> list[tuple[int, str]]:
        start.wait()
        turns = [(number * 2 + place) % len(CALLS) for place in range(len(CALLS) // 2)]
        return [(turn, _text(CALLS[turn])) for turn in turns]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = [answer for answers in pool.map(some, range(THREADS)) for answer in answers]
    serial = [_text(call) for call in CALLS]
    assert {turn for turn, _ in answers} == set(range(len(CALLS)))
    assert [turn for turn, text in answers if text != serial[turn]] == []


def test_calls_work_inside_an_event_loop_and_beside_it() -> None:
    serial = [_text(call) for call in CALLS[:6]]

    async def inside() -> tuple[list[str], list[str]]:
        beside = await asyncio.gather(*(asyncio.to_thread(_text, call) for call in CALLS[:6]))
        return [_text(call) for call in CALLS[:6]], list(beside)

    assert asyncio.run(inside()) == (serial, serial)
