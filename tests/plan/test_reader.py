"""The reader gives a clear answer for any hostile input."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.errors import InputError
from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.plan.reader import read_document
from shardwright.tools.plan.schema import MAX_FAULTS, plan_schema
from shardwright.tools.rules.examples import base_plan

from .test_canonical import JSON
from .tiny import DENSE, tiny_plan

PLAN = tiny_plan(DENSE, PhaseStrategy(pp=2, tp=2, tp_ffn=2)).model_dump(mode="json")
NEXT = f"/nodes/{len(PLAN['nodes'])}"


def _with(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(PLAN)), **changes}


def test_a_plan_survives_being_written_and_read(tmp_path: Path) -> None:
    plan = tiny_plan(DENSE, PhaseStrategy(tp=2, tp_ffn=2))
    path = tmp_path / "plan.json"
    path.write_text(plan.model_dump_json())
    assert read_document(path).plan == plan
    assert read_document(path.read_text()).plan == plan
    assert read_document(plan).plan == plan
    assert "null" not in plan.model_dump_json().replace('"parent":null', "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_what_is_no_sound_json_object_is_one_fault(text: str, message: str) -> None:
    faults = read_document(text).faults
    assert any(message in fault.message for fault in faults)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (_with(surprise=1), ""),
        (_with(version="2"), "/version"),
        (_with(hardware={"accelerator": "h100-sxm", "nodes": "1", "gpus_per_node": 8}), "/hardware/nodes"),
        (_with(workload={"input_tokens": True, "output_tokens": 1}), "/workload/input_tokens"),
        (_with(nodes=[*PLAN["nodes"], {"id": "x", "type": "Shard", "parent": "request"}]), f"{NEXT}/type"),
        (_with(nodes=[*PLAN["nodes"], 7]), NEXT),
        (_with(edges=[{"source": "a", "target": "b", "type": "magic"}]), "/edges/0/type"),
        (_with(edges=[{"source": "a", "target": "b", "type": "data", "weight": 1}]), "/edges/0"),
        (_with(nodes="none"), "/nodes"),
    ],
)  # fmt: skip
def test_a_refusal_points_at_the_failing_element(document: dict[str, Any], path: str) -> None:
    read = read_document(document)
    assert read.plan is None
    assert [fault.path for fault in read.faults] == [path]


@pytest.mark.parametrize(
    ("constraint", "place", "word"),
    [
        ({"kind": "power", "value": 3}, "/kind", "'power'"),
        ({"kind": ["degree"], "value": 3}, "/kind", "degree"),
        ({"value": 3}, "", "'kind' is missing"),
        ({"kind": "degree", "value": {"name": "zz", "relation": "<=", "degree": 1}}, "/value/name", "'zz'"),
        ({"kind": "degree", "value": {"name": "tp", "relation": "forbidden", "degree": 2}}, "/value", "'degree'"),
        ({"kind": "replicas", "value": "two"}, "/value", "'two'"),
    ],
)
def test_of_what_may_be_of_several_kinds_a_refusal_names_what_is_wrong_in_its_own(
    constraint: dict[str, Any], place: str, word: str
) -> None:
    policy = {"constraints": [{**constraint, "words": "as they said"}]}
    [fault] = read_document(_with(policy=policy)).faults
    assert fault.path == f"/policy/constraints/0{place}"
    assert word in fault.message


def test_a_refusal_is_bounded() -> None:
    read = read_document(_with(nodes=[{"id": str(i), "type": "Nothing"} for i in range(5000)]))
    assert len(read.faults) == MAX_FAULTS


@pytest.mark.parametrize("name", ["no/such/file.json", "\0", "."])
def test_a_file_that_cannot_be_opened_is_one_line(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_document(name)
    assert "\n" not in str(caught.value)


@given(JSON)
def test_any_json_object_is_read_without_an_exception(value: Any) -> None:
    read = read_document({"nodes": value, "edges": value, "strategy": value, "model": value})
    assert read.plan is None
    assert read.faults
    assert read.view.nodes is not None


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    assert read_document("{" + text).plan is None


def test_the_schema_closes_every_block_but_the_config() -> None:
    schema = plan_schema()
    for name, definition in schema["$defs"].items():
        if definition.get("type") == "object" and "properties" in definition:
            assert definition["additionalProperties"] is False, name


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (("workload", "concurrency"), 4.5), (("strategy", "decode", "tp"), 1.5), (("hardware", "nodes"), 1.5),
        (("nodes", 3, "index"), 0.5), (("nodes", 3, "layers", 1), 7.5),
    ],
    ids=str,
)  # fmt: skip
def test_a_whole_number_is_an_integer_however_it_is_written_and_another_is_none(
    place: tuple[str | int, ...], other: float
) -> None:
    document = json.loads(json.dumps(base_plan("dense-1")))
    *way, last = place
    holder = reduce(lambda value, step: value[step], way, document)
    known = read_document(json.dumps(document))
    holder[last] = float(holder[last])
    assert jsonschema.Draft202012Validator(plan_schema()).is_valid(document)
    read = read_document(document)
    assert not read.faults and read.plan == known.plan and read.raw == known.raw
    holder[last] = other
    assert [fault.path for fault in read_document(document).faults] == ["".join(f"/{step}" for step in place)]
