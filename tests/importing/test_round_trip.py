"""An export imports as the plan that it was made from, by its content hash."""

from __future__ import annotations

from functools import cache

import pytest

import shardwright
from shardwright.tools.engines.names import engine_or_usual
from shardwright.tools.export.export import TARGETS
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import Plan, ServingBlock

from ..export.plans import CASES, ENGINES, EXPORTED, exported, plan_named

_FORMS = [(name, form) for name in CASES["plans"] for form in TARGETS if form not in ENGINES]


def _on_engine(name: str, target: str) -> Plan:
    """The plan of a row, with the target's engine named."""
    plan = plan_named(name)
    named = None if plan.serving is None else plan.serving.engine
    engine = target if target in ENGINES else engine_or_usual(named)
    if named == engine:
        return plan
    serving = (plan.serving or ServingBlock()).model_copy(update={"engine": engine, "engine_version": None})
    return plan.model_copy(update={"serving": serving})


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "target"), [*EXPORTED, *_FORMS])
def test_what_was_exported_is_imported_as_the_same_plan(name: str, target: str) -> None:
    result = exported(name, target)
    if result.text is None:
        assert target not in ENGINES and result.refused
        return
    back = shardwright.import_plan(result.text)
    assert content_hash(back.plan) == content_hash(_on_engine(name, target))
    assert not back.not_understood and not back.unplanned and not back.refused


@pytest.mark.one_in(6)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_apart", [False, True])
def test_memory_of_the_host_goes_there_and_back_with_its_link(engine: str, is_apart: bool) -> None:
    planned = shardwright.plan(
        model="llama-3.1-8b",
        hardware="1x2:h100-sxm",
        engine=engine,
        disaggregated=is_apart,
        input_tokens=4000,
        output_tokens=300,
        prefixes={"turns": 5},
        kv_offload={"bytes_per_gpu": 100_000_000_000, "host_bw_gb_s": 40.0},
    )
    assert planned.plan is not None and planned.plan.serving is not None and planned.plan.serving.kv_offload is not None
    text = shardwright.export(planned.plan, engine).text
    assert text is not None
    written = {
        "vllm": "--kv-offloading-size",
        "sglang": "--hicache-size 100",
        "trtllm": "host_cache_size: 100000000000",
    }
    # vLLM has only one connector, which transfers caches between phases there; the export says so.
    is_left_out = engine == "vllm" and is_apart
    assert (written[engine] in text) != is_left_out == ("memory of the host for the KV cache is left out" in text)
    back = shardwright.import_plan(text)
    assert content_hash(back.plan) == content_hash(planned.plan) and not back.unplanned and not back.not_understood


@cache
def _asked_with_lists() -> Plan:
    planned = shardwright.plan(
        model="Qwen/Qwen3-30B-A3B",
        hardware="1x4:h100-sxm",
        engine="vllm",
        input_tokens=1024,
        output_tokens=128,
        relaxations=["attention_dp", "tp_in_expert"],
        constraints=["tp <= 2", "reserved_gpus = 1"],
    )
    assert planned.plan is not None
    return planned.plan


@pytest.mark.parametrize("target", ["vllm", "slurm", "kubernetes"])
def test_what_a_plan_was_asked_for_comes_back_whatever_lists_it_holds(target: str) -> None:
    plan = _asked_with_lists()
    text = shardwright.export(plan, target).text
    assert text is not None
    assert content_hash(shardwright.import_plan(text).plan) == content_hash(plan)
