"""A document is patched by its handle, all or nothing, into a new one that still answers the question."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...examples import examples
from ..loop.questions import node
from .benches import FAULTY, GOOD, bench, body, refused, use

ATTENTION = "r0.prefill.s0.b0.attn"
REDUCE = f"{ATTENTION}.ar"


def test_operations_make_a_new_document_and_leave_the_old_one_alone() -> None:
    at = bench()
    before = copy.deepcopy(at.desk.get(FAULTY))
    operations = [
        {"op": "test", "path": "/strategy/gpu_count", "value": 3, "from": None},
        {"op": "replace", "path": "/strategy/gpu_count", "value": 2, "from": None},
    ]
    patched = body(use(at, "patch_dag", handle=FAULTY, operations=operations, edits=None))
    assert patched["valid"] is True
    assert at.desk.get(patched["handle"])["strategy"]["gpu_count"] == 2
    assert at.desk.get(FAULTY) == before


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        ({"op": "test", "path": "/strategy/dp", "value": 9}, "the test failed"),
        ({"op": "replace", "path": "/strategy/zz", "value": 9}, "zz"),
        ({"op": "remove", "path": "/nodes/9999"}, "remove /nodes/9999"),
        ({"op": "add", "path": "/strategy/dp/deeper", "value": 1}, "add /strategy/dp/deeper"),
        ({"op": "replace", "path": "", "value": {}}, "whole document"),
        ({"op": "remove", "path": ""}, "whole document"),
        ({"op": "replace", "path": "/strategy/dp"}, "'value' is missing"),
        ({"op": "move", "path": "/x"}, "'from' is missing"),
        ({"op": "copy", "path": "/x", "from": "/nowhere"}, "nowhere"),
        ({"op": "add", "path": "no pointer", "value": 1}, "pointer"),
        ({"op": "add", "path": "/" + "a" * 5000, "value": 1}, "too long"),
        ({"op": "test", "path": "/nodes/" + "9" * 900, "value": 1}, "operation 1"),
        ({"op": "move", "path": "/nodes/0/x", "from": "/nodes"}, "operation 1"),
    ],
    ids=range(13),
)
def test_a_patch_that_fails_says_which_operation_and_why_and_changes_nothing(
    operation: dict[str, Any], says: str
) -> None:
    at = bench()
    first = {"op": "replace", "path": "/strategy/gpu_count", "value": 7}
    before, count = copy.deepcopy(at.desk.get(GOOD)), len(at.desk.documents)
    refused(use(at, "patch_dag", handle=GOOD, operations=[first, operation]), "operation 1", says, "nothing was")
    assert at.desk.get(GOOD) == before
    assert len(at.desk.documents) == count


@pytest.mark.timeout(60)
def test_copies_that_double_end_before_memory_does() -> None:
    operations = [{"op": "copy", "from": "/nodes", "path": "/nodes/-"}] * 60
    refused(use(bench(), "patch_dag", handle=GOOD, operations=operations), "copies are too large")


def test_a_result_that_is_nested_deeply_is_refused() -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    refused(use(bench(), "patch_dag", handle=GOOD, operations=[{"op": "add", "path": "/x", "value": deep}]), "deeply")
    edit = {"op": "replace", "node": REDUCE, "field": "devices", "value": deep}
    refused(use(bench(), "patch_dag", handle=GOOD, edits=[edit]), "deeply")


def test_what_the_request_decides_is_put_back_and_said() -> None:
    at = bench()
    operations = [{"op": "replace", "path": "/workload/input_tokens", "value": 1}]
    patched = body(use(at, "patch_dag", handle=GOOD, operations=operations))
    assert patched["handle"] == GOOD
    assert patched["put_right"][0].startswith("workload.input_tokens")
    assert "changes nothing" in patched["message"]


def test_a_node_is_removed_with_what_hangs_below_it_and_their_edges() -> None:
    at = bench()
    patched = body(use(at, "patch_dag", handle=GOOD, edits=[{"op": "remove", "node": ATTENTION}]))
    document = at.desk.get(patched["handle"])
    assert not [listed["id"] for listed in document["nodes"] if listed["id"].startswith(ATTENTION)]
    assert not [edge for edge in document["edges"] if ATTENTION in edge["source"] + edge["target"]]
    assert patched["valid"] is False


def test_fields_nodes_and_edges_are_edited_by_id_all_at_once() -> None:
    at = bench()
    reduce = copy.deepcopy(node(at.desk.get(GOOD), REDUCE))
    broken = body(use(at, "patch_dag", handle=GOOD, edits=[{"op": "remove", "node": REDUCE}]))["handle"]
    edges = [edge for edge in at.desk.get(GOOD)["edges"] if REDUCE in (edge["source"], edge["target"])]
    edits = [
        {"op": "add", "node": REDUCE, "value": {name: value for name, value in reduce.items() if name != "id"}},
        *(
            {"op": "add", "source": edge["source"], "target": edge["target"], "value": {"type": edge["type"]}}
            for edge in edges
        ),
    ]
    mended = body(use(at, "patch_dag", handle=broken, edits=edits))
    assert mended["valid"] is True
    wrong = {"op": "replace", "node": REDUCE, "field": "devices", "value": ["n0.g0"]}
    worse = body(use(at, "patch_dag", handle=mended["handle"], edits=[wrong]))
    assert worse["valid"] is False
    assert node(at.desk.get(worse["handle"]), REDUCE)["devices"] == ["n0.g0"]


def test_an_edge_is_changed_and_removed_by_its_ends() -> None:
    at = bench()
    edge = next(edge for edge in at.desk.get(GOOD)["edges"] if edge["target"] == REDUCE)
    ends = {"source": edge["source"], "target": edge["target"]}
    typed = body(use(at, "patch_dag", handle=GOOD, edits=[{"op": "replace", **ends, "field": "type", "value": "data"}]))
    assert typed["rules"] == ["ST007"]
    gone = body(use(at, "patch_dag", handle=GOOD, edits=[{"op": "remove", **ends}]))
    assert gone["edges"] == len(at.desk.get(GOOD)["edges"]) - 1


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"op": "remove", "node": "nobody"}, "no node 'nobody'"),
        ({"op": "add", "node": REDUCE, "value": {}}, "already"),
        ({"op": "add", "node": "new"}, "must be an object"),
        ({"op": "replace", "node": REDUCE, "field": "zz", "value": 1}, "its fields are"),
        ({"op": "replace", "node": REDUCE, "field": "devices"}, "'value' is missing"),
        ({"op": "remove", "node": REDUCE, "field": "zz"}, "no field 'zz'"),
        ({"op": "remove"}, "neither a node nor an edge"),
        ({"op": "remove", "source": REDUCE}, "neither a node nor an edge"),
        ({"op": "remove", "source": REDUCE, "target": "nobody"}, "no edge"),
        ({"op": "remove", "node": REDUCE, "source": "a", "target": "b"}, "give one of them"),
        ({"op": "replace", "node": f"{ATTENTION}.tp0", "field": "rank", "value": {}}, "the same place"),
    ],
    ids=range(11),
)
def test_an_edit_that_cannot_be_made_says_which_and_why(edit: dict[str, Any], says: str) -> None:
    at = bench()
    first = {"op": "replace", "node": f"{ATTENTION}.tp0", "field": "rank", "value": {"tp": 1}}
    before = copy.deepcopy(at.desk.get(GOOD))
    refused(use(at, "patch_dag", handle=GOOD, edits=[first, edit]), "edit 1", says, "nothing was changed")
    assert at.desk.get(GOOD) == before


DOCUMENT = cache(lambda: bench().desk.get(GOOD))
VALUES = (
    st.none() | st.integers(-1, 9) | st.text(max_size=4) | st.lists(st.sampled_from(["n0.g0", "n9.g9"]), max_size=2)
)
EDITS = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace"]),
            "node": st.sampled_from([listed["id"] for listed in DOCUMENT()["nodes"]]),
            "field": st.none() | st.sampled_from(["devices", "rank", "layers", "parent", "id", "type", "new"]),
            "value": VALUES | st.just({"type": "ShardNode", "parent": ATTENTION, "rank": {}, "devices": ["n0.g0"]}),
        }
    )
)
PLACES = st.deferred(
    lambda: st.sampled_from(
        ["/nodes/-", "/edges/-", "/strategy/dp", "/strategy/prefill/tp", "/model/name", "/nodes", "/new", "/nodes/3/id"]
        + [f"/{name}/{at}" for name in ("nodes", "edges") for at in range(len(DOCUMENT()[name]))]
    )
)
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": PLACES,
        "from": PLACES,
        "value": VALUES,
    }
)


@given(st.lists(EDITS, min_size=1, max_size=2) | st.none(), st.lists(OPERATIONS, min_size=1, max_size=3))
@examples(30)
def test_whatever_is_patched_the_result_is_of_what_was_asked_for(
    edits: list[dict[str, Any]] | None, operations: list[dict[str, Any]]
) -> None:
    at = bench()
    before = copy.deepcopy(at.desk.get(GOOD))
    changes = {"operations": operations} if edits is None else {"edits": edits}
    answer = use(at, "patch_dag", handle=GOOD, **changes)
    assert answer.trouble in (None, "try_again")
    if answer.trouble is None:
        assert at.desk.question.answers(at.desk.get(body(answer)["handle"]))
    assert at.desk.get(GOOD) == before
    assert use(at, "submit_dag", handle=body(answer).get("handle", GOOD)).trouble is None


def test_a_document_without_lists_takes_operations_only() -> None:
    at = bench()
    handle = at.desk.put(at.desk.question.pinned({"nodes": 7}))
    refused(use(at, "patch_dag", handle=handle, edits=[{"op": "remove", "node": "x"}]), "operations")
    answer = use(at, "patch_dag", handle=handle, operations=[{"op": "replace", "path": "/nodes", "value": []}])
    assert body(answer)["valid"] is False


def test_exactly_one_kind_of_change_is_given() -> None:
    refused(use(bench(), "patch_dag", handle=GOOD), "exactly one")
    refused(use(bench(), "patch_dag", handle=GOOD, operations=[]), "operations")
    refused(use(bench(), "patch_dag", handle="d9", edits=[{"op": "remove", "node": "x"}]), "no document")


@pytest.mark.timeout(60)
def test_a_patch_that_repeats_a_node_beyond_all_bounds_is_refused_in_time() -> None:
    value = {
        "id": "x{i}",
        "type": "LinearNode",
        "parent": ATTENTION,
        "rank": {},
        "devices": ["n0.g0"],
        "repeat": 60_000,
    }
    operations = [{"op": "add", "path": "/nodes/-", "value": value}]
    refused(use(bench(), "patch_dag", handle=GOOD, operations=operations), "nodes", "at most")


def test_what_a_patch_writes_in_the_compact_form_is_written_out() -> None:
    at = bench()
    value = {
        "id": "extra{i}",
        "type": "LinearNode",
        "parent": ATTENTION,
        "rank": {},
        "devices": ["n0.g{i}"],
        "repeat": 2,
    }
    answer = use(at, "patch_dag", handle=GOOD, operations=[{"op": "add", "path": "/nodes/-", "value": value}])
    document = at.desk.get(body(answer)["handle"])
    assert {"extra0", "extra1"} <= {listed["id"] for listed in document["nodes"]}
