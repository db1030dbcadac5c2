"""The compact form means the same as the full form, and its arithmetic is as limited as stated."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.compact import expand
from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.plan.plan_size import MAX_COPIED_NODES, MAX_NODES, Room
from shardwright.tools.plan.reader import read_document

from .tiny import DENSE, MOE, tiny_plan


def _written_compactly() -> tuple[dict[str, Any], dict[str, Any]]:
    """A plan of two replicas in full, and the same with shards, experts and the second replica written once."""
    full = tiny_plan(MOE, PhaseStrategy(tp=4, ep=4), PhaseStrategy(tp=4, ep=4), dp=2).model_dump(mode="json")
    compact = {**full, "nodes": [], "edges": []}
    for node in full["nodes"]:
        if node["id"].startswith("r1."):
            continue
        if node["id"] == "r1":
            compact["nodes"].append({**node, "like": "r0", "device_offset": 4})
        elif node["type"] == "ShardNode":
            if node["rank"]["tp"] == 0:
                shard = {**node, "id": node["id"][:-1] + "{i}", "rank": {"tp": "{i}"}, "devices": ["n0.g{i}"]}
                compact["nodes"].append({**shard, "repeat": 4})
        elif node["type"] == "ExpertNode":
            if node["id"].endswith("e0"):
                group = {"experts": [["{i*4}", "{i*4+3}"]], "devices": ["n0.g{i}"], "repeat": 4}
                compact["nodes"].append({**node, "id": node["id"][:-1] + "{i}", **group})
        else:
            compact["nodes"].append(node)
    for edge in full["edges"]:
        if "r1." in edge["source"]:
            continue
        ends = {end: edge[end] for end in ("source", "target")}
        numbered = {end: name for end, name in ends.items() if re.search(r"\.(tp|e)\d$", name)}
        if not numbered:
            compact["edges"].append(edge)
        elif all(name.endswith("0") for name in numbered.values()):
            compact["edges"].append({**edge, **{end: name[:-1] + "{i}" for end, name in numbered.items()}, "repeat": 4})
    return full, compact


def test_the_compact_form_reads_as_the_full_form() -> None:
    full, compact = _written_compactly()
    assert len(compact["nodes"]) < len(full["nodes"]) / 2
    read = read_document(compact)
    assert read.faults == ()
    assert content_hash(read.raw) == content_hash(full) == content_hash(compact)


def test_descendants_of_a_like_replica_are_named_after_it() -> None:
    _, compact = _written_compactly()
    read = read_document(compact)
    assert read.raw is not None
    names = {node["id"] for node in read.raw["nodes"]}
    assert "r1/r0.decode.s0.b0.attn.tp3" in names
    node = next(n for n in read.raw["nodes"] if n["id"] == "r1/r0.decode.s0.b0.attn.tp3")
    assert node["devices"] == ["n0.g7"]


def test_devices_of_a_like_replica_carry_over_into_the_next_node() -> None:
    document = {
        "hardware": {"gpus_per_node": 8},
        "nodes": [
            {"id": "a", "type": "ReplicaNode", "parent": "q", "index": 0},
            {"id": "e", "type": "EmbeddingNode", "parent": "a", "devices": ["n0.g6", "n0.g7"]},
            {"id": "b", "type": "ReplicaNode", "parent": "q", "index": 1, "like": "a", "device_offset": 9},
        ],
        "edges": [],
    }
    raw, faults = expand(document)
    assert faults == ()
    assert raw["nodes"][-1] == {"id": "b/e", "type": "EmbeddingNode", "parent": "b", "devices": ["n1.g7", "n2.g0"]}


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("x{i}", ["x0", "x1", "x2"]),
        ("x{i*8}", ["x0", "x8", "x16"]),
        ("x{i+1}", ["x1", "x2", "x3"]),
        ("x{i*8+7}", ["x7", "x15", "x23"]),
        ("x{i*2+1}-{i}", ["x1-0", "x3-1", "x5-2"]),
    ],
)
def test_the_arithmetic_of_templates(template: str, values: list[str]) -> None:
    raw, faults = expand({"nodes": [{"id": template, "repeat": 3}], "edges": []})
    assert faults == ()
    assert [node["id"] for node in raw["nodes"]] == values


@pytest.mark.parametrize("template", ["{j}", "{i**2}", "{i/2}", "{__import__('os')}", "{i*i}", "{}", "{i-1}", "{8*i}"])
def test_any_other_arithmetic_is_a_fault_and_nothing_is_evaluated(template: str) -> None:
    raw, faults = expand({"nodes": [{"id": template, "repeat": 3}], "edges": []})
    assert [fault.path for fault in faults] == ["/nodes/0"]
    assert raw["nodes"] == [{"id": template}]


@pytest.mark.parametrize("count", [0, -1, 1.5, "3", True, None, MAX_NODES + 1, 10**30])
def test_a_repeat_that_is_no_sane_count_is_a_fault(count: object) -> None:
    _, faults = expand({"nodes": [{"id": "x{i}", "repeat": count}], "edges": []})
    assert [fault.path for fault in faults] == ["/nodes/0/repeat"]


def test_a_brace_is_literal_where_nothing_repeats() -> None:
    document = {"nodes": [{"id": "{i}"}], "edges": [{"source": "{i}", "target": "{i}"}]}
    raw, faults = expand(document)
    assert raw == document
    assert faults == ()


def test_an_edge_that_names_a_repeated_node_stands_for_one_edge_a_copy() -> None:
    document = {"nodes": [{"id": "s{i}", "repeat": 2}, {"id": "t"}], "edges": [{"source": "s{i}", "target": "t"}]}
    raw, _ = expand(document)
    assert raw["edges"] == [{"source": "s0", "target": "t"}, {"source": "s1", "target": "t"}]


@pytest.mark.parametrize(
    "replica",
    [
        {"id": "b", "type": "ReplicaNode", "like": "nobody"},
        {"id": "b", "type": "PhaseNode", "like": "a"},
        {"id": "b", "type": "ReplicaNode", "like": "b"},
        {"id": "b", "type": "ReplicaNode", "like": "a", "device_offset": "8"},
    ],
)
def test_a_like_that_copies_nothing_sound_is_a_fault(replica: dict[str, Any]) -> None:
    nodes = [{"id": "a", "type": "ReplicaNode"}, {"id": "p", "type": "PhaseNode", "parent": "a"}, replica]
    _, faults = expand({"hardware": {"gpus_per_node": 8}, "nodes": nodes, "edges": []})
    assert len(faults) == 1
    assert faults[0].path.startswith("/nodes/2")


def test_expansion_leaves_its_input_as_it_was() -> None:
    _, compact = _written_compactly()
    before = repr(compact)
    expand(compact)
    assert repr(compact) == before


def test_a_plan_without_templates_is_not_touched() -> None:
    plan = tiny_plan(DENSE, PhaseStrategy(tp=2, tp_ffn=2)).model_dump(mode="json")
    assert expand(plan)[0] == plan


@pytest.mark.parametrize(("gpus", "most"), [(8, 20_000), (8_000, MAX_COPIED_NODES)])
def test_copies_are_bounded_by_the_stated_hardware_and_layers(gpus: int, most: int) -> None:
    plan = tiny_plan(DENSE, PhaseStrategy(tp=2, tp_ffn=2), nodes=gpus // 8).model_dump(mode="json")
    wide = {**plan["nodes"][-1], "id": "x{i}", "repeat": 10**6}
    raw, faults = expand({**plan, "nodes": [*plan["nodes"], wide]})
    assert [fault.message for fault in faults] == ["repeat makes the document too large"]
    assert len(raw["nodes"]) == len(plan["nodes"]) + 1
    room = Room(plan)
    assert 10_000 < room.nodes <= most


def test_copies_of_replicas_are_written_out_all_or_none() -> None:
    plan = tiny_plan(DENSE, PhaseStrategy(tp=2, tp_ffn=2)).model_dump(mode="json")
    replica = next(node for node in plan["nodes"] if node["type"] == "ReplicaNode")
    copies = [
        {"type": "ReplicaNode", "id": f"L{index}", "parent": replica["parent"], "index": index, "like": replica["id"]}
        for index in range(1, 5_001)
    ]
    raw, faults = expand({**plan, "nodes": [*plan["nodes"], *copies]})
    assert {fault.message for fault in faults} == {"like makes the document too large"}
    assert len(faults) == len(copies)
    assert len(raw["nodes"]) == len(plan["nodes"]) + len(copies)
    few, none = expand({**plan, "nodes": [*plan["nodes"], *copies[:10]]})
    assert not none
    assert len(few["nodes"]) == 10 * (len(plan["nodes"]) - 1) + len(plan["nodes"])
