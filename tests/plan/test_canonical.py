"""The content hash depends on meaning alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import PhaseStrategy

from .tiny import MLA, tiny_plan

# Hash of the plan below, from before a workload could limit the whole answer.
HASH = "201803a6ed8b1c129805b0fa8bb6838838fcc07e950723d40e22c8c6be2073eb"
PLAN = tiny_plan(MLA, PhaseStrategy(pp=2, tp=2, ep=2, tp_ffn=2)).model_dump(mode="json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def _changed(**_: Any) -> dict[str, Any]:
    return copy.deepcopy(PLAN)


def test_reasoning_construction_and_performance_do_not_count() -> None:
    other = _changed()
    other["reasoning"] = []
    other["construction"] = []
    other["performance"] = {"latency": {"ttft_ms": 1.0}}
    assert content_hash(other) == content_hash(PLAN)


def test_stating_a_default_does_not_count() -> None:
    other = _changed()
    for node in other["nodes"]:
        if node["type"] == "LayerBlockNode":
            node["period"] = 1
        if node["type"] in ("AttentionNode", "FFNNode", "MoENode"):
            node["offset"] = 0
    other["strategy"]["prefill"]["sp"] = 1
    assert content_hash(other) == content_hash(PLAN)


def test_a_plan_without_a_limit_on_the_whole_answer_keeps_its_hash() -> None:
    other = _changed()
    other["workload"] |= {"end_to_end_ms_max": None, "end_to_end_statistic": "mean"}
    assert content_hash(PLAN) == content_hash(other) == HASH
    assert not {"end_to_end_ms_max", "end_to_end_statistic"} & PLAN["workload"].keys()


def test_experts_one_by_one_or_as_ranges_are_the_same() -> None:
    other = _changed()
    for node in other["nodes"]:
        if node["type"] == "ExpertNode":
            first, last = node["experts"][0]
            node["experts"] = list(reversed(range(first, last + 1)))
    assert content_hash(other) == content_hash(PLAN)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["workload"].update(input_tokens=17),
        lambda d: d["workload"].update(end_to_end_ms_max=9000.0),
        lambda d: d["workload"].update(end_to_end_statistic="p95"),
        lambda d: d["strategy"].update(dp=2),
        lambda d: d["policy"].update(memory_utilization=0.8),
        lambda d: d["model"]["config"].update(hidden_size=1),
        lambda d: d["nodes"].pop(),
        lambda d: d["edges"].pop(),
        lambda d: d["edges"][0].update(type="pipeline"),
        lambda d: d["edges"].append(dict(d["edges"][0])),
        lambda d: next(n for n in d["nodes"] if n["type"] == "ShardNode").update(devices=["n7.g7"]),
        lambda d: next(n for n in d["nodes"] if n["type"] == "ShardNode").update(parent="request"),
    ],
)
def test_whatever_changes_the_meaning_changes_the_hash(change: Any) -> None:
    other = _changed()
    change(other)
    assert content_hash(other) != content_hash(PLAN)


def test_swapping_two_edges_targets_between_replicas_changes_the_hash() -> None:
    plan = tiny_plan(MLA, PhaseStrategy(tp=2, ep=2, tp_ffn=2), dp=2).model_dump(mode="json")
    other = copy.deepcopy(plan)
    feeds = [e for e in other["edges"] if e.get("carries") == "kv_cache" and e["source"].endswith(".kv")]
    feeds[0]["target"], feeds[-1]["target"] = feeds[-1]["target"], feeds[0]["target"]
    assert content_hash(other) != content_hash(plan)


@given(JSON)
def test_any_json_value_has_a_hash_that_does_not_depend_on_key_order(value: Any) -> None:
    def turned(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: turned(inner[key]) for key in reversed(inner)}
        return [turned(part) for part in inner] if isinstance(inner, list) else inner

    assert content_hash(turned(value)) == content_hash(value)
