"""A shard on another stage's device, or a missing one, gets one finding that names the shard and the fault."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.plan.view import NodeView, PlanView
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

from ..plan.tiny import DENSE, MLA, MOE, tiny_plan

Document = dict[str, Any]
# Model, degrees and replica count: first, middle and last stages, groups of one, two and four shards.
PIPELINES: dict[str, tuple[Document, PhaseStrategy, int]] = {
    "dense": (DENSE, PhaseStrategy(tp=4, tp_ffn=4, pp=3), 1),
    "dense, replicas": (DENSE, PhaseStrategy(tp=4, tp_ffn=4, pp=2), 2),
    "dense, sequence": (DENSE, PhaseStrategy(sp=2, tp=2, tp_ffn=4, pp=2), 1),
    "dense, unsplit": (DENSE, PhaseStrategy(pp=3), 1),
    "MoE": (MOE, PhaseStrategy(tp=2, ep=2, pp=3), 1),
    "MLA": (MLA, PhaseStrategy(tp=4, tp_ffn=4, ep=4, pp=2), 1),
    "MLA, narrow": (MLA, PhaseStrategy(tp=2, tp_ffn=2, ep=2, pp=3), 1),
    "dense, sequence alone": (DENSE, PhaseStrategy(sp=2, tp_ffn=2, pp=2), 1),
    "dense, heads exchanged": (DENSE, PhaseStrategy(sp=2, tp_ffn=2, pp=3, sp_kind="ulysses"), 1),
}
BROAD: dict[str, tuple[Document, PhaseStrategy, int]] = {
    "dense, one stage": (DENSE, PhaseStrategy(tp=4, tp_ffn=4), 1),
    "dense, eight wide": ({**DENSE, "num_key_value_heads": 8}, PhaseStrategy(tp=8, tp_ffn=8), 1),
    "dense, narrow": (DENSE, PhaseStrategy(tp=2, tp_ffn=2), 3),
    "dense, two replicas": (DENSE, PhaseStrategy(tp=4, tp_ffn=4), 2),
    "MoE, wide": (MOE, PhaseStrategy(tp=4, ep=4), 2),
    "MLA, replicas": (MLA, PhaseStrategy(tp=4, tp_ffn=4, ep=4, pp=2), 2),
}
BASES = ("hybrid-tp2-ep2-pp2", "disaggregated-pp2", "relaxed-attention-dp2-pp2-two-nodes")
# Kinds of nodes of the shard's operator that name the new device too, in place of the old one.
COMPANIONS = {
    "alone": frozenset[str](),
    "with its cache": frozenset({"KVCacheUpdateNode"}),
    "with its collectives": frozenset({"AllReduceNode", "AllGatherNode", "ReduceScatterNode", "AllToAllNode"}),
}
COMPANIONS["with both"] = frozenset[str]().union(*COMPANIONS.values())


def plan_of(name: str) -> Document:
    """The valid plan `name`."""
    if name not in {**PIPELINES, **BROAD}:
        return base_plan(name)
    config, strategy, dp = {**PIPELINES, **BROAD}[name]
    return tiny_plan(config, strategy, dp=dp).model_dump(mode="json")


def strayed(document: Document, companions: frozenset[str]) -> Iterator[tuple[NodeView, str, Document]]:
    """Shard, device and plan for the first and last shard of each operator, moved to each neighbouring stage."""
    for phase in PlanView(document).phases:
        for place, stage in enumerate(phase.stages):
            for other in {max(place - 1, 0), min(place + 1, len(phase.stages) - 1)} - {place}:
                device = max(phase.stages[other].devices)
                groups = [node.children_of_type("ShardNode") for node in stage.nodes]
                for shard in [group[end] for group in groups if group for end in {0, len(group) - 1}]:
                    changed = copy.deepcopy(document)
                    for node in changed["nodes"]:
                        follows = node["parent"] == shard.parent_id and node["type"] in companions
                        if node["id"] == shard.id or follows:
                            node["devices"] = [device if d in shard.devices else d for d in node["devices"]]
                    yield shard, device, changed


@pytest.mark.thorough
@pytest.mark.parametrize("companions", COMPANIONS.values(), ids=COMPANIONS)
@pytest.mark.parametrize("name", [*PIPELINES, *BASES])
def test_a_shard_on_a_device_of_another_stage_is_named_with_it(name: str, companions: frozenset[str]) -> None:
    for shard, device, document in strayed(plan_of(name), companions):
        violations = validate(document).violations
        (error,) = [violation for violation in violations if violation.severity == "error"]
        assert error.rule == ("TP004" if "tp" in shard.rank else "PP006"), error.message
        assert shard.id in error.nodes and f"'{shard.id}'" in error.message and device in error.message
        # A group that now spans nodes is slower (TP007).
        assert {violation.rule for violation in violations} <= {error.rule, "TP007"}


def tensor_groups(document: Document) -> dict[str, list[Document]]:
    """The shards of each operator that is split by TP alone, by operator id."""
    groups: dict[str, list[Document]] = {}
    for node in document["nodes"]:
        if node["type"] == "ShardNode":
            groups.setdefault(node["parent"], []).append(node)
    return {name: shards for name, shards in groups.items() if all({*shard["rank"]} == {"tp"} for shard in shards)}


def without(document: Document, gone: str) -> Document:
    """`document` without the node `gone` and its edges."""
    nodes = [node for node in document["nodes"] if node["id"] != gone]
    edges = [edge for edge in document["edges"] if gone not in (edge["source"], edge["target"])]
    return {**document, "nodes": nodes, "edges": edges}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "name", [*BROAD, "MoE", "moe-shared-tp4-ep4", "moe-shared-tp2-ep4", "hybrid-tp2-ep2-pp2", "disaggregated-moe"]
)
def test_a_shard_that_is_missing_is_named_by_its_rank(name: str) -> None:
    plan = plan_of(name)
    groups, before = tensor_groups(plan), {finding.rule for finding in validate(plan).violations}
    assert groups
    for operator, shards in groups.items():
        for shard in (shards[0], shards[len(shards) // 2], shards[-1]):
            (violation,) = [new for new in validate(without(plan, shard["id"])).violations if new.rule not in before]
            assert violation.rule == "TP002" and operator in violation.nodes, violation.message
            assert f"no shard has the rank {shard['rank']}" in violation.message
            assert violation.expected == [*range(len(shards))]


@pytest.mark.parametrize("name", ["dense-sp2", "dense-ulysses2-tp2", "dense, sequence alone", "dense, heads exchanged"])
def test_a_missing_sequence_shard_is_named_by_its_rank(name: str) -> None:
    plan = plan_of(name)
    shards = [node for node in plan["nodes"] if node["type"] == "ShardNode" and "sp" in node["rank"]]
    assert shards
    for shard in shards:
        (violation,) = [other for other in validate(without(plan, shard["id"])).violations if other.severity == "error"]
        assert violation.rule == ("TP002" if "tp" in shard["rank"] else "SP002"), violation.message
        assert f"no shard has the rank {shard['rank']}" in violation.message and shard["parent"] in violation.nodes


@pytest.mark.parametrize(
    "name", ["relaxed-attention-dp2-ep4", "relaxed-attention-dp4", "relaxed-attention-dp2-pp2-two-nodes"]
)
def test_a_missing_attention_group_is_named_by_its_rank(name: str) -> None:
    plan = plan_of(name)
    shards = [node for node in plan["nodes"] if node["type"] == "ShardNode" and "dp" in node["rank"]]
    assert shards
    for shard in shards:
        (violation,) = validate(without(plan, shard["id"])).violations
        assert violation.rule == "TP002" and f"no shard has the rank {shard['rank']}" in violation.message


@pytest.mark.parametrize("kind", ["emb", "head"])
def test_a_missing_part_of_the_vocabulary_is_one_fault(kind: str) -> None:
    plan = plan_of("relaxed-vocab-parallel")
    for place in (0, 1):
        (violation,) = validate(without(plan, f"r0.decode.s0.{kind}.tp{place}")).violations
        assert violation.rule == "TP002"


@pytest.mark.parametrize("name", ["dense, two replicas", "MoE, wide"])
def test_other_replicas_say_which_degree_was_meant(name: str) -> None:
    """The operator's cache writes and collectives omit the missing shard's device too."""
    plan = plan_of(name)
    for operator, shards in tensor_groups(plan).items():
        document = copy.deepcopy(without(plan, shards[-1]["id"]))
        for node in document["nodes"]:
            if node["parent"] == operator:
                node["devices"] = [device for device in node["devices"] if device not in shards[-1]["devices"]]
        rules = {violation.rule for violation in validate(document).violations}
        # The next operator runs on the omitted device (DE004).
        assert "TP002" in rules and rules <= {"TP002", "DE004"}


@pytest.mark.parametrize("degree", [2, 3, 5, 8])
@pytest.mark.parametrize("name", ["tp", "tp_ffn", "sp"])
def test_a_degree_that_nothing_else_shows_is_the_declaration_s_fault(name: str, degree: int) -> None:
    document = plan_of("dense, one stage")
    document["strategy"]["prefill"][name] = degree
    assert {violation.rule for violation in validate(document).violations} == {"CO002"}


@pytest.mark.parametrize("name", ["tp", "tp_ffn", "sp"])
def test_one_shard_is_whole_whatever_is_declared(name: str) -> None:
    document = plan_of("dense, unsplit")
    document["strategy"]["prefill"][name] = 2
    assert {violation.rule for violation in validate(document).violations} == {"CO002"}
