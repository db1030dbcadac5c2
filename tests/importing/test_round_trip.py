"""The law of `import`: what an export says is the plan that it was made from, by its content hash."""

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
    """The plan of a row, as one that names the engine of the target."""
    plan = plan_named(name)
    named = None if plan.serving is None else plan.serving.engine
    engine = target if target in ENGINES else engine_or_usual(named)
    if named == engine:
        return plan
    own = (plan.serving or ServingBlock()).model_copy(update={"engine": engine, "engine_version": None})
    return plan.model_copy(update={"serving": own})


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "target"), [*EXPORTED, *_FORMS])
def test_what_was_exported_is_imported_as_the_same_plan(name: str, target: str) -> None:
    found = exported(name, target)
    if found.text is None:
        assert target not in ENGINES and found.refused
        return
    back = shardwright.import_plan(found.text)
    assert content_hash(back.plan) == content_hash(_on_engine(name, target))
    assert not back.not_understood and not back.unplanned and not back.refused


@pytest.mark.one_in(6)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_apart", [False, True])
def test_memory_of_the_host_goes_there_and_back_with_its_link(engine: str, is_apart: bool) -> None:
    made = shardwright.plan(
        model="llama-3.1-8b",
        hardware="1x2:h100-sxm",
        engine=engine,
        disaggregated=is_apart,
        input_tokens=4000,
        output_tokens=300,
        prefixes={"turns": 5},
        kv_offload={"bytes_per_gpu": 100_000_000_000, "host_bw_gb_s": 40.0},
    )
    assert made.plan is not None and made.plan.serving is not None and made.plan.serving.kv_offload is not None
    text = shardwright.export(made.plan, engine).text
    assert text is not None
    written = {
        "vllm": "--kv-offloading-size",
        "sglang": "--hicache-size 100",
        "trtllm": "host_cache_size: 100000000000",
    }
    # One connector hands caches over: there vLLM has no other, and the export says so.
    is_left_out = engine == "vllm" and is_apart
    assert (written[engine] in text) != is_left_out == ("memory of the host for the KV cache is left out" in text)
    back = shardwright.import_plan(text)
    assert content_hash(back.plan) == content_hash(made.plan) and not back.unplanned and not back.not_understood


@cache
def _asked_with_lists() -> Plan:
    made = shardwright.plan(
        model="Qwen/Qwen3-30B-A3B",
        hardware="1x4:h100-sxm",
        engine="vllm",
        input_tokens=1024,
        output_tokens=128,
        relaxations=["attention_dp", "tp_in_expert"],
        constraints=["tp <= 2", "reserved_gpus = 1"],
    )
    assert made.plan is not None
    return made.plan


@pytest.mark.parametrize("target", ["vllm", "slurm", "kubernetes"])
def test_what_a_plan_was_asked_for_comes_back_whatever_lists_it_holds(target: str) -> None:
    made = _asked_with_lists()
    text = shardwright.export(made, target).text
    assert text is not None
    assert content_hash(shardwright.import_plan(text).plan) == content_hash(made)
