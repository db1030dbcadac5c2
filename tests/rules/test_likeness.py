"""Skipping repeated parts changes no finding, neither in sound plans nor where one copy differs."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.engines.names import JUDGED
from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.plan.likeness import Likenesses
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Violation
from shardwright.tools.rules.examples import MLA, MOE, apply, base_plan
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.validate import find_violations

from ..examples import examples
from ..plan.tiny import tiny_plan
from .corruptions import Corruption, corruptions, renamed_and_shuffled, unrolled


def _repetitive() -> dict[str, dict[str, Any]]:
    """Plans with many equal parts, by name: replicas, stages, single layers, disaggregated phases."""
    rng = random.Random(0)
    plans = {
        "replicas": tiny_plan(MOE, PhaseStrategy(tp=2, ep=2), dp=3).model_dump(mode="json"),
        "stages": tiny_plan(MLA, PhaseStrategy(pp=2, tp=2, tp_ffn=2, ep=2), dp=2).model_dump(mode="json"),
        "sequence shards": tiny_plan(MOE, PhaseStrategy(sp=2, tp=2, ep=4), dp=2).model_dump(mode="json"),
        "apart": tiny_plan(
            MOE,
            PhaseStrategy(tp=2, ep=2, replicas=2),
            PhaseStrategy(tp=2, ep=2, replicas=2),
            dp=4,
        ).model_dump(mode="json"),
    }
    plans |= {f"{name}, unrolled": unrolled(copy.deepcopy(plan), rng) for name, plan in plans.items()}
    for base in ("dense-tp4", "relaxed-attention-dp2-ep4", "relaxed-tp-in-expert", "relaxed-kv-sp2", "dense-dp2-pp2"):
        plans[f"{base}, unrolled"] = unrolled(base_plan(base), rng)
    return plans


PLANS = _repetitive()
_TYPES = sorted({node["type"] for plan in PLANS.values() for node in plan["nodes"]})
_NEW: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(_TYPES),
    "devices": st.lists(st.builds("n0.g{}".format, st.integers(0, 8)), max_size=3),
    "rank": st.dictionaries(st.sampled_from(["tp", "sp", "dp", "kv_sp", "cp"]), st.integers(-1, 4), max_size=2),
    "experts": st.lists(st.integers(0, 16) | st.tuples(st.integers(0, 8), st.integers(0, 16)).map(list), max_size=3),
    "layers": st.tuples(st.integers(0, 8), st.integers(0, 9)).map(list),
    "role": st.sampled_from(["dispatch", "combine", "sequence_in", "sequence_out"]),
    "phase": st.sampled_from(["prefill", "decode"]),
    "index": st.integers(0, 3),
    "offset": st.integers(0, 2),
    "period": st.integers(0, 3),
    "kind": st.sampled_from(["full", "linear", "mla"]),
}
_HEADER: tuple[tuple[str, str, st.SearchStrategy[Any]], ...] = (
    ("strategy", "gpu_count", st.integers(1, 64)),
    ("workload", "input_tokens", st.sampled_from([16, 2048, 60000])),
    ("workload", "concurrency", st.sampled_from([1, 100, 100_000])),
    ("serving", "engine", st.sampled_from([*JUDGED])),
    ("hardware", "nodes", st.integers(1, 8)),
    (
        "policy",
        "relaxations",
        st.lists(st.sampled_from(["tp_in_expert", "attention_dp", "vocab_parallel"]), max_size=2),
    ),
)


def _change_node(draw: st.DrawFn, document: dict[str, Any]) -> None:
    nodes = document["nodes"]
    node = draw(st.sampled_from(nodes))
    action = draw(st.sampled_from(["set", "set", "set", "drop", "double", "hang"]))
    if action == "set":
        field = draw(st.sampled_from([name for name in _NEW if name in node] or ["type"]))
        node[field] = draw(_NEW[field])
    elif action == "drop":
        nodes.remove(node)
    elif action == "double":
        nodes.append({**node, "id": f"{node['id']}/again"})
    else:
        node["parent"] = draw(st.sampled_from(nodes))["id"]


def _change_edge(draw: st.DrawFn, document: dict[str, Any]) -> None:
    edges = document["edges"]
    edge = draw(st.sampled_from(edges))
    action = draw(st.sampled_from(["turn", "drop", "double", "type", "carries", "lead", "add"]))
    if action == "turn":
        edge["source"], edge["target"] = edge["target"], edge["source"]
    elif action == "drop":
        edges.remove(edge)
    elif action == "double":
        edges.append(dict(edge))
    elif action == "type":
        edge["type"] = draw(st.sampled_from(["data", "pipeline", "synchronization"]))
    elif action == "carries":
        edge["carries"] = draw(st.sampled_from(["activations", "kv_cache", "tokens", "routing"]))
    else:
        other = draw(st.sampled_from(document["nodes"]))["id"]
        edges.append({**edge, "target": other}) if action == "add" else edge.update(target=other)


@st.composite
def nearly_repetitive_plans(draw: st.DrawFn) -> dict[str, Any]:
    """A repetitive plan with a few changes."""
    document: dict[str, Any] = json.loads(json.dumps(PLANS[draw(st.sampled_from(sorted(PLANS)))]))
    for _ in range(draw(st.integers(0, 3))):
        part = draw(st.sampled_from(["node", "node", "edge", "header"]))
        if part == "node":
            _change_node(draw, document)
        elif part == "edge":
            _change_edge(draw, document)
        else:
            block, field, values = draw(st.sampled_from(_HEADER))
            document.setdefault(block, {})[field] = draw(values)
    if draw(st.booleans()):
        seen: set[str] = {node["id"] for node in document["nodes"]}
        if len(seen) == len(document["nodes"]) and all(
            {edge["source"], edge["target"]} <= seen for edge in document["edges"]
        ):
            document = renamed_and_shuffled(document, random.Random(draw(st.integers(0, 1 << 32))))
    return document


class _LookedAtWhole(PlanView):
    """A view in which nothing counts as repeated."""

    _likenesses = Likenesses()


def _findings(view: PlanView) -> list[Violation]:
    return find_violations(view, all_rules())


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_repeats_itself_is_valid_and_looked_at_in_part(name: str) -> None:
    view = PlanView(PLANS[name])
    assert not [finding for finding in find_violations(view, all_rules()) if finding.severity == "error"]
    assert len(view.distinct.nodes) < len(view.nodes)
    assert len(view.distinct.edges) < len(view.edges)


@examples(50)
@given(nearly_repetitive_plans())
def test_a_fault_in_one_of_many_copies_is_found_as_if_all_were_looked_at(document: dict[str, Any]) -> None:
    assert _findings(PlanView(document)) == _findings(_LookedAtWhole(document))


def _spoiled(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Variants of the plan, each with one fault in the last node or the last edge of a kind."""
    nodes = {
        json.dumps({**node, "id": "", "parent": "", "devices": ""}): place for place, node in enumerate(plan["nodes"])
    }
    for place in nodes.values():
        node = plan["nodes"][place]
        siblings = [other for other in plan["nodes"] if other["parent"] == node["parent"] and other is not node]
        for field in ("devices", "rank", "experts", "layers", "role", "type"):
            others = [other[field] for other in siblings if field in other and other[field] != node.get(field)]
            if field in node and others:
                yield {
                    **plan,
                    "nodes": [*plan["nodes"][:place], {**node, field: others[0]}, *plan["nodes"][place + 1 :]],
                }
        yield {**plan, "nodes": [*plan["nodes"][:place], *plan["nodes"][place + 1 :]]}
    types = {node["id"]: node["type"] for node in plan["nodes"]}
    edges = {(types[edge["source"]], types[edge["target"]]): place for place, edge in enumerate(plan["edges"])}
    for place in edges.values():
        edge, before, after = plan["edges"][place], plan["edges"][:place], plan["edges"][place + 1 :]
        for new in ([], [edge, edge], [{**edge, "source": edge["target"], "target": edge["source"]}],
                    [{**edge, "type": "pipeline"}], [{**edge, "carries": "tokens"}]):  # fmt: skip
            yield {**plan, "edges": [*before, *new, *after]}


# A plan written out layer by layer takes long to check: only every third of its faults.
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "step"), [("replicas", 1), ("apart", 1), ("sequence shards", 1), ("stages, unrolled", 3)]
)
def test_a_fault_in_the_last_of_many_copies_is_found_as_if_all_were_looked_at(name: str, step: int) -> None:
    for document in islice(_spoiled(PLANS[name]), 0, None, step):
        assert _findings(PlanView(document)) == _findings(_LookedAtWhole(document))


def _some_of_each_rule() -> Iterator[Corruption]:
    """Every other row of each rule: which parts are skipped depends on the rule and the plan, not on the row."""
    seen: Counter[str] = Counter()
    for case in corruptions(""):
        if seen[case.rule] % 2 == 0:
            yield case
        seen[case.rule] += 1


@pytest.mark.thorough
@pytest.mark.parametrize("case", list(_some_of_each_rule()), ids=str)
def test_a_corruption_is_found_as_if_all_were_looked_at(case: Corruption) -> None:
    document = apply(case.example)
    assert _findings(PlanView(document)) == _findings(_LookedAtWhole(document))
