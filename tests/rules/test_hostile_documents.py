"""Any document gets a clear answer in bounded time and memory, and the work grows in proportion to the document."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from shardwright.tools.plan.compact import expand
from shardwright.tools.plan.plan_size import MAX_NODES
from shardwright.tools.plan.reader import MAX_HEADER_VALUES, MAX_MEMBERS
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import MAX_FINDINGS_OF_A_RULE, ValidationReport, validate

# Far above the seconds of any of these on a slow machine, far below those of one that is walked repeatedly.
pytestmark = pytest.mark.timeout(60)

BASE = "moe-ep2"
ATTENTION, MOE, STAGE = "r0.prefill.s0.b0.attn", "r0.prefill.s0.b0.moe", "r0.prefill.s0"


def _text(**members: str) -> str:
    """The text of a valid plan with more top-level members, whose values are JSON texts."""
    plan = json.dumps(base_plan(BASE))
    return "{" + "".join(f'"{key}": {value}, ' for key, value in members.items()) + plan[1:]


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _checked(document: Any) -> ValidationReport:
    report = validate(document)
    assert not any("could not be checked" in violation.message for violation in report.violations)
    report.model_dump_json()
    return report


DIGITS = "9" * 4000
ONE_ANSWER: dict[str, tuple[Callable[[], str], str]] = {
    "a list nested 10,000 deep": (lambda: _nested(10_000), "nested too deeply"),
    "a list nested 1,000,000 deep": (lambda: _nested(1_000_000), "nested too deeply"),
    "objects nested 10,000 deep": (lambda: '{"a":' * 10_000 + "1" + "}" * 10_000, "nested too deeply"),
    "10,000 deep in a plan": (lambda: _text(extra=_nested(10_000)), "nested too deeply"),
    "10,000 deep, never closed": (lambda: "[" * 10_000, "nested too deeply"),
    "a key twice": (lambda: _text(version='"1"'), "key 'version' stands twice"),
    "a key twice, the second time wrong": (lambda: _text(version="2"), "key 'version' stands twice"),
    "an integer of 5,000 digits": (lambda: _text(extra="9" * 5000), "300 digits"),
    "a count of 4,000 digits": (
        lambda: json.dumps(base_plan(BASE)).replace('"concurrency": ', f'"concurrency": {DIGITS}', 1),
        "300 digits",
    ),
    "not an object": (lambda: "[1, 2]", "not a JSON object"),
    "not JSON": (lambda: "{" + "x" * 1000, "not JSON"),
    "more members than any object": (
        lambda: _text(extra="{" + ",".join(f'"{i}":0' for i in range(MAX_MEMBERS + 1)) + "}"),
        "too large: an object of",
    ),
    "more values than any header": (
        lambda: _text(extra="[" + "0," * MAX_HEADER_VALUES + "0]"),
        "too large to be a plan",
    ),
    "more nodes than any plan": (
        lambda: '{"nodes": [' + "0," * MAX_NODES + "0]}",
        "too large to be a plan",
    ),
}


@pytest.mark.parametrize("name", ONE_ANSWER)
def test_a_document_that_is_no_plan_gets_one_clear_answer(name: str) -> None:
    document, answer = ONE_ANSWER[name]
    report = _checked(document())
    assert [violation.rule for violation in report.violations] == ["ST001"]
    assert answer in report.violations[0].message
    assert len(report.violations[0].message) <= 250


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_has_not_is_named(constant: str) -> None:
    plan = json.dumps(base_plan(BASE)).replace('"concurrency": 4', f'"concurrency": {constant}', 1)
    assert constant in plan
    assert any(f"{constant} is not JSON" in violation.message for violation in _checked(plan).violations)


@pytest.mark.parametrize("value", [_nested(900), _nested(65), DIGITS, "1e999", r'"\ud800"', r'{"\udfff": 1}'])
def test_what_json_cannot_carry_is_named_with_its_place(value: str) -> None:
    report = _checked(_text(extra=value))
    assert {violation.rule for violation in report.violations} == {"ST001"}
    assert any("there is no field 'extra' here" in violation.message for violation in report.violations)
    config = json.dumps(base_plan(BASE)).replace('"config": {', f'"config": {{"extra": {value},', 1)
    (finding,) = _checked(config).violations
    assert finding.rule == "ST001" and (finding.path.startswith("/model/config/extra") or "1e999" in finding.message)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("wrong", [None, True, -1, 1.5, 10**300, "x", [], {}, [[]], [None], [{}], {"": {}}, "\ud800"])
def test_a_wrong_type_anywhere_is_reported_and_nothing_crashes(wrong: Any) -> None:
    plan = base_plan(BASE)
    assert not _checked(dict.fromkeys(plan, wrong)).valid
    for key in plan:
        before = json.dumps({**plan, key: wrong})
        document = {**plan, key: wrong}
        _checked(document)
        assert json.dumps(document) == before
    for node_type in {node["type"] for node in plan["nodes"]}:
        nodes = [dict.fromkeys(n, wrong) | {"id": n["id"]} if n["type"] == node_type else n for n in plan["nodes"]]
        assert not _checked({**plan, "nodes": nodes}).valid


def _added(*nodes: dict[str, Any], edges: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    plan = base_plan(BASE)
    return {**plan, "nodes": [*plan["nodes"], *nodes], "edges": [*plan["edges"], *(edges or [])]}


def _chain(count: int, *types: str, **fields: Any) -> dict[str, Any]:
    """A plan with a chain of `count` nodes, each the parent of the next."""
    return _added(
        *(
            {"id": f"x{i}", "type": types[i % len(types)], "parent": f"x{i - 1}" if i else "r0", **fields}
            for i in range(count)
        )
    )


def _circle(count: int, *types: str, **fields: Any) -> dict[str, Any]:
    """A plan with nodes whose parents form a cycle."""
    return _added(
        *(
            {"id": f"x{i}", "type": types[i % len(types)], "parent": f"x{(i - 1) % count}", **fields}
            for i in range(count)
        )
    )


def _crowd(count: int, parent: str, *types: str, **fields: Any) -> dict[str, Any]:
    """A plan with `count` more children of one node."""
    return _added(*({"id": f"x{i}", "type": types[i % len(types)], "parent": parent, **fields} for i in range(count)))


def _joined(count: int, parent: str, node_type: str, **fields: Any) -> dict[str, Any]:
    """A plan with siblings joined in a ring."""
    nodes = [{"id": f"x{i}", "type": node_type, "parent": parent, **fields} for i in range(count)]
    edges = [{"source": f"x{i}", "target": f"x{(i + 1) % count}", "type": "data"} for i in range(count)]
    return _added(*nodes, edges=edges)


def _wide_operator(count: int) -> dict[str, Any]:
    """A plan with an attention operator that has a shard on each of `count` devices."""
    return _added(
        *(
            {"id": f"x{i}", "type": "ShardNode", "parent": ATTENTION, "rank": {"tp": i}, "devices": [f"n{i}.g0"]}
            for i in range(2, count)
        )
    )


def _caches(count: int) -> dict[str, Any]:
    """A plan with many attention operators that wait for a cache, and many writes of it."""
    operators = [
        {"id": f"x{i}", "type": "AttentionNode", "parent": "r0.decode.s0.b0", "offset": i} for i in range(count)
    ]
    updates = [{"id": f"y{i}", "type": "KVCacheUpdateNode", "parent": ATTENTION} for i in range(count)]
    return _added(*operators, *updates)


def _bare_replicas(count: int) -> dict[str, Any]:
    """A plan with replicas of one phase each, half of them prefill."""
    nodes: list[dict[str, Any]] = []
    for i in range(count):
        nodes.append({"id": f"x{i}", "type": "ReplicaNode", "parent": "request", "index": i + 1})
        nodes.append({"id": f"y{i}", "type": "PhaseNode", "parent": f"x{i}", "phase": ("prefill", "decode")[i % 2]})
        nodes.append({"id": f"z{i}", "type": "PipelineStageNode", "parent": f"y{i}", "index": 0, "layers": [0, 7]})
    return _added(*nodes)


def _nested_replicas(count: int) -> list[dict[str, Any]]:
    """Nested replicas, each copied once: the count of their descendants is quadratic."""
    nodes: list[dict[str, Any]] = []
    for i in range(count):
        nodes.append({"id": f"x{i}", "type": "ReplicaNode", "parent": f"x{i - 1}" if i else "r0", "index": 0})
        nodes.append({"id": f"l{i}", "type": "ReplicaNode", "parent": "request", "index": i, "like": f"x{i}"})
    return nodes


def _often(count: int) -> dict[str, Any]:
    """A plan with every edge many times."""
    plan = base_plan(BASE)
    return {**plan, "edges": [edge for edge in plan["edges"] for _ in range(count)]}


def _star(count: int, parent: str, node_type: str, *, outwards: bool, **fields: Any) -> dict[str, Any]:
    """A plan with siblings whose edges all lead from the first (`outwards`) or to it."""
    nodes = [{"id": f"x{i}", "type": node_type, "parent": parent, **fields} for i in range(count)]
    ends = [("x0", f"x{i}") if outwards else (f"x{i}", "x0") for i in range(1, count)]
    return _added(*nodes, edges=[{"source": source, "target": target, "type": "data"} for source, target in ends])


ONE_DEVICE = {"devices": ["n0.g0"]}
GROWING: dict[str, Callable[[int], dict[str, Any]]] = {
    "phases inside phases": lambda n: _chain(n, "PhaseNode", phase="decode"),
    "stages inside phases inside stages": lambda n: _chain(
        n, "PhaseNode", "PipelineStageNode", phase="decode", layers=[0, 7], **ONE_DEVICE
    ),
    "replicas inside replicas": lambda n: _chain(n, "ReplicaNode", index=0),
    "operators inside operators": lambda n: _chain(n, "LayerBlockNode", "AttentionNode", "MoENode", layers=[0, 7]),
    "a circle of phases and stages": lambda n: _circle(n, "PhaseNode", "PipelineStageNode", layers=[0, 7]),
    "a circle of operators": lambda n: _circle(n, "MoENode", "ExpertNode", "ShardNode", **ONE_DEVICE),
    "one operator on many devices": _wide_operator,
    "shards on one device": lambda n: _crowd(n, ATTENTION, "ShardNode", rank={"tp": 0}, **ONE_DEVICE),
    "experts on one device": lambda n: _crowd(n, MOE, "ExpertNode", experts=[[0, 99_999]], **ONE_DEVICE),
    "collectives of one operator": lambda n: _crowd(n, ATTENTION, "AllReduceNode", "AllGatherNode", **ONE_DEVICE),
    "exchanges of one operator": lambda n: _crowd(n, MOE, "AllToAllNode", role="dispatch", **ONE_DEVICE),
    "blocks over the same layers": lambda n: _crowd(n, STAGE, "LayerBlockNode", layers=[0, 10**9]),
    "operators of one block": lambda n: _crowd(n, "r0.prefill.s0.b0", "AttentionNode", "FFNNode", "MoENode"),
    "stages of one index": lambda n: _crowd(n, "r0.prefill", "PipelineStageNode", index=0, layers=[0, 7]),
    "phases of one replica": lambda n: _crowd(n, "r0", "PhaseNode", phase="decode"),
    "collectives in a circle": lambda n: _joined(n, ATTENTION, "AllReduceNode", **ONE_DEVICE),
    "stages in a circle": lambda n: _joined(n, "r0.decode", "PipelineStageNode", layers=[0, 0]),
    "edges many times": _often,
    "collectives that lead to one": lambda n: _star(n, ATTENTION, "AllReduceNode", outwards=False, **ONE_DEVICE),
    "one collective that leads to all": lambda n: _star(n, ATTENTION, "AllReduceNode", outwards=True, **ONE_DEVICE),
    "shards that lead to one": lambda n: _star(n, ATTENTION, "ShardNode", outwards=False, **ONE_DEVICE),
    "one shard that leads to all": lambda n: _star(n, ATTENTION, "ShardNode", outwards=True, **ONE_DEVICE),
    "stages that lead to one": lambda n: _star(n, "r0.decode", "PipelineStageNode", outwards=False, layers=[0, 0]),
    "one expert that leads to all": lambda n: _star(n, MOE, "ExpertNode", outwards=True, **ONE_DEVICE),
    "experts that lead to one": lambda n: _star(n, MOE, "ExpertNode", outwards=False, **ONE_DEVICE),
    "caches": _caches,
    "bare replicas": _bare_replicas,
}


def _calls(document: dict[str, Any]) -> int:
    """Function calls of a validation: a measure of time without noise."""
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        validate(document)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("name", GROWING)
def test_work_grows_as_the_document_does(name: str) -> None:
    make = GROWING[name]
    _checked(make(10))
    small = 100
    # Explaining what the schema refuses costs a bounded part, large for a small document: the growth is compared.
    at_one, at_two, at_four = (_calls(make(small * factor)) for factor in (1, 2, 4))
    assert at_four - at_two < 3 * (at_two - at_one) + 20_000


def test_findings_of_one_rule_are_listed_up_to_a_bound() -> None:
    nodes = [{"id": f"x{i}", "type": "LinearNode", "parent": "r0", **ONE_DEVICE} for i in range(12_000)]
    violations = [violation for violation in _checked(_added(*nodes)).violations if violation.rule == "ST003"]
    assert len(violations) == MAX_FINDINGS_OF_A_RULE + 1
    assert any("there are more findings" in violation.message for violation in violations)


REPEATED = {"id": "x{i}", "type": "AllReduceNode", "parent": ATTENTION}
COPY = {"id": "copy", "type": "ReplicaNode", "parent": "request", "index": 1, "like": "r0"}
BOMBS: dict[str, list[dict[str, Any]]] = {
    "a node many times": [{**REPEATED, "repeat": 10**9}],
    "many nodes many times": [{**REPEATED, "repeat": 100_000} for _ in range(1000)],
    "a wide node often": [{**REPEATED, "repeat": 100_000, "devices": ["n0.g0"] * 1000}],
    "a long id often": [{**REPEATED, "id": "x" * 100_000 + "{i}", "repeat": 100_000}],
    "a replica of a long name": [{**COPY, "id": "x" * 50_000_000}],
    "nested replicas, each copied": _nested_replicas(20_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_small_and_stands_for_much_is_not_written_out(name: str) -> None:
    document, faults = expand(_added(*BOMBS[name]))
    assert len(document["nodes"]) <= MAX_NODES
    assert any("makes the document too large" in fault.message for fault in faults)


# 50 MB each, in a process limited to 1.5 GiB: a document is refused before it is copied in memory many times.
LARGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))
from shardwright.tools.validate import validate
size = 50_000_000
texts = (
    lambda: '{"nodes": [' + "0," * (size // 2) + "0]}",
    lambda: "{" + '"k":1,' * (size // 6) + '"k":1}',
    lambda: '{"name": "' + "x" * size + '"}',
    lambda: "[" * size,
    lambda: "{" + " " * size + "x",
)
for make in texts:
    report = validate(make())
    first = report.violations[0]
    assert first.rule == "ST001" and len(first.message) < 250, first
    print(len(report.violations), first.message[:60])
"""


# Two replicas whose operators name 100,000 experts each with a short range.
WIDE_EXPERTS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate
plan = base_plan("moe-ep2")
nodes = [
    {"id": "r1", "type": "ReplicaNode", "parent": "request", "index": 1},
    {"id": "r1.p", "type": "PhaseNode", "parent": "r1", "phase": "prefill"},
    {"id": "r1.s", "type": "PipelineStageNode", "parent": "r1.p", "index": 0, "layers": [0, 7]},
]
for i in range(400):
    nodes.append({"id": f"b{i}", "type": "LayerBlockNode", "parent": "r1.s", "layers": [i, i]})
    nodes.append({"id": f"m{i}", "type": "MoENode", "parent": f"b{i}"})
    wide = {"experts": [[0, 99999]], "devices": ["n0.g5"]}
    nodes.append({"id": f"e{i}", "type": "ExpertNode", "parent": f"m{i}", **wide})
report = validate({**plan, "nodes": [*plan["nodes"], *nodes]})
assert not any("could not be checked" in violation.message for violation in report.violations)
print(report.errors)
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_ranges_of_experts_are_not_held_written_out() -> None:
    process = subprocess.run(
        [sys.executable, "-c", WIDE_EXPERTS], capture_output=True, text=True, check=False, timeout=300
    )
    assert process.returncode == 0, process.stderr[-500:]
    assert int(process.stdout) > 0


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_documents_of_50_megabytes_are_answered_in_bounded_memory() -> None:
    process = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 0, process.stderr[-500:]
    assert len(process.stdout.splitlines()) == 5
