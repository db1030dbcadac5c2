"""The rules of expert parallelism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.plan.placement import StageDegrees
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit, Example
from shardwright.tools.rules.examples import apply, base_plan
from shardwright.tools.rules.expert_groups import beyond, copies, gaps, runs_of
from shardwright.tools.rules.judge import DegreeJudge
from shardwright.tools.rules.legality import Conditions
from shardwright.tools.validate import validate

from .corruptions import fired

MOE = "r0.prefill.s0.b0.moe"
RANGES = st.lists(st.tuples(st.integers(-5, 30), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


@given(RANGES, st.integers(1, 40))
def test_runs_of_experts_say_what_counting_them_one_by_one_says(ranges: list[tuple[int, int]], total: int) -> None:
    counts = Counter(expert for first, last in ranges for expert in range(first, last + 1))
    runs = runs_of(ranges)
    assert {expert: run.times for run in runs for expert in range(run.first, run.last + 1)} == dict(counts)
    missing = [expert for run in gaps(runs, total) for expert in range(run.first, run.last + 1)]
    assert missing == [expert for expert in range(total) if expert not in counts]
    unknown = [expert for run in beyond(runs, total) for expert in range(run.first, run.last + 1)]
    assert unknown == sorted(expert for expert in counts if not 0 <= expert < total)


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=4))
def test_copies_are_counted_by_groups_not_by_entries(groups: list[list[int]]) -> None:
    nodes: list[dict[str, Any]] = [{"id": "moe", "type": "MoENode", "parent": None}]
    nodes += [{"id": f"e{i}", "type": "ExpertNode", "parent": "moe", "experts": ids} for i, ids in enumerate(groups)]
    times = {sum(expert in ids for ids in groups) for ids in groups for expert in ids}
    expected = times.pop() if len(times) == 1 else 0
    assert copies(PlanView({"nodes": nodes, "edges": []}).by_id["moe"]) == expected


@given(st.lists(st.one_of(st.integers(0, 50), st.tuples(st.integers(0, 50), st.integers(0, 50)).map(list)), max_size=6))
def test_ranges_of_a_group_name_the_same_experts_as_its_ids(experts: list[Any]) -> None:
    node = PlanView({"nodes": [{"id": "e", "type": "ExpertNode", "experts": experts}], "edges": []}).by_id["e"]
    ranges = node.expert_ranges
    unrolled = None if ranges is None else tuple(e for first, last in ranges for e in range(first, last + 1))
    assert node.experts == unrolled


def test_copies_are_allowed_where_the_relaxation_is_named() -> None:
    double = Edit("set", f"{MOE}.e1", "experts", [[3, 7]])
    relaxed = Edit("set_top", field="/policy/relaxations", value=["redundant_experts"])
    assert fired(apply(Example("moe-ep4", (double,))), "EP005") != []
    assert fired(apply(Example("moe-ep4", (double, relaxed))), "EP") == []


def test_the_relaxation_does_not_allow_a_missing_expert_nor_a_mere_replication() -> None:
    relaxed = Edit("set_top", field="/policy/relaxations", value=["redundant_experts"])
    missing = Edit("set", f"{MOE}.e1", "experts", [[4, 6]])
    assert fired(apply(Example("moe-ep4", (relaxed, missing))), "EP005") != []
    replicated = tuple(Edit("set", f"{MOE}.e{group}", "experts", [[0, 15]]) for group in range(4))
    assert fired(apply(Example("moe-ep4", (relaxed, *replicated))), "EP008") != []


def test_every_expert_twice_is_allowed_where_the_groups_still_differ() -> None:
    relaxed = Edit("set_top", field="/policy/relaxations", value=["redundant_experts"])
    twice = tuple(Edit("set", f"{MOE}.e{g}", "experts", [[8 * (g % 2), 8 * (g % 2) + 7]]) for g in range(4))
    assert fired(apply(Example("moe-ep4", (relaxed, *twice))), "EP") == []


def test_one_expert_group_of_several_devices_needs_no_exchange() -> None:
    from shardwright.tools.plan.document import PhaseStrategy

    from ..plan.tiny import MOE as CONFIG
    from ..plan.tiny import tiny_plan

    plan = tiny_plan(CONFIG, PhaseStrategy(tp=4, ep=1, tp_expert=4), relaxations=("tp_in_expert",))
    document = plan.model_dump(mode="json", exclude_none=True)
    assert not any(node.get("role") == "dispatch" for node in document["nodes"])
    for family in ("TP", "EP"):
        assert fired(document, family) == []


def test_one_device_may_show_its_exchanges_or_leave_them_out() -> None:
    exchanges = tuple(
        Edit("add_node", value={
            "id": role, "type": "AllToAllNode", "parent": MOE, "role": role, "devices": ["n0.g0"]
        })
        for role in ("dispatch", "combine")
    )  # fmt: skip
    edges = [(f"{MOE}.router", "dispatch"), ("dispatch", f"{MOE}.e0"), (f"{MOE}.e0", "combine")]
    edits = (
        *exchanges,
        *(Edit("add_edge", value={"source": s, "target": t, "type": "synchronization"}) for s, t in edges),
        Edit("remove_edge", value={"source": f"{MOE}.router", "target": f"{MOE}.e0"}),
    )
    assert fired(base_plan("moe-1"), "EP") == []
    assert fired(apply(Example("moe-1", edits)), "EP") == []


def test_ranges_beyond_all_reason_are_reported_in_reasonable_time() -> None:
    edits = tuple(Edit("set", f"{MOE}.e{group}", "experts", [[0, 10**15]] * 500) for group in range(4))
    document = apply(Example("moe-ep4", edits))
    assert fired(document, "EP") != []
    assert fired(document, "ME001") != []


@pytest.mark.thorough
def test_a_long_row_of_experts_is_looked_at_in_reasonable_time() -> None:
    size = 20_000
    nodes: list[dict[str, Any]] = [{"id": "moe", "type": "MoENode", "parent": None}]
    nodes += [{"id": f"e{i}", "type": "ExpertNode", "parent": "moe", "experts": [i]} for i in range(size)]
    nodes.append({"id": "c", "type": "AllToAllNode", "parent": "moe", "role": "combine"})
    edges = [{"source": f"e{i}", "target": f"e{i + 1}", "type": "data"} for i in range(size - 1)]
    document = {"nodes": nodes, "edges": [*edges, {"source": f"e{size - 1}", "target": "c", "type": "synchronization"}]}
    assert len(fired(document, "EP006")) == size - 1
    fired(document, "EP002")


@pytest.mark.parametrize("relaxations", [(), ("redundant_experts",)])
def test_more_groups_than_experts_are_judged_alike_over_a_graph_and_by_degrees(relaxations: tuple[str, ...]) -> None:
    document = base_plan("relaxed-redundant-experts")
    document["policy"]["relaxations"] = list(relaxations)
    document["model"]["config"]["num_experts"] = 2
    for node in document["nodes"]:
        if node["type"] == "ExpertNode":
            node["experts"] = [int(node["id"][-1]) % 2]
    architecture = PlanView(document).architecture
    assert architecture is not None
    degrees = StageDegrees()._replace(ep=4, devices=4)
    judge = DegreeJudge(Conditions(architecture, relaxations=frozenset(relaxations)))
    by_degrees = {rule.id for rule, _ in judge.faults(degrees) if rule.id.startswith("EP")}
    assert validate(document).valid == (not by_degrees) == bool(relaxations)
