"""What each tool is for, and how it says no."""

from __future__ import annotations

import shlex
from typing import Any, get_args

import pytest

from shardwright.agent.loop.feedback import Level
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.tool import Bench, Tool
from shardwright.tools.export.export import export
from shardwright.tools.validate import validate

from ..loop.questions import OPEN, SMALL, STATED
from .benches import FAULTY, GOOD, ILLEGAL, asked, bench, refused, still_bench, told

every_tool = pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
TP2 = {"dp": 1, "prefill": {"tp": 2}, "decode": None}


@every_tool
def test_a_field_that_a_tool_does_not_have_is_refused(tool: Tool[Any]) -> None:
    answer = asked(still_bench(), tool.name, force=True)
    assert answer.trouble == "try_again"
    assert "force" in told(answer)["message"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("submit_dag", {"handle": GOOD}),
        ("build_dag", {"strategy": TP2}),
        ("search_strategies", {}),
        ("estimate_dag", {"handle": GOOD}),
        ("compare_dags", {"first": GOOD, "second": FAULTY}),
        ("validate_dag", {"handle": GOOD}),
        ("patch_dag", {"handle": GOOD, "edits": [{"op": "remove", "node": "r0"}]}),
        ("fix_dag", {"handle": GOOD}),
        ("export_dag", {"handle": GOOD}),
    ],
)
def test_a_fault_of_ours_is_no_fault_of_the_call(tool: str, arguments: dict[str, Any]) -> None:
    broken: Any = object()
    answer = asked(Bench(broken), tool, **arguments)
    assert answer.trouble == "bug"
    assert tool in told(answer)["message"]
    assert "object" not in answer.text


def test_a_search_ranks_for_the_request_of_the_run() -> None:
    at = bench()
    found = told(asked(at, "search_strategies", count=3))
    reference = at.desk.question.reference.estimate
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert len(rows) == 3
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert rows[0]["feasible"] and rows[0]["plan"] == "TP2"
    assert reference is not None
    assert rows[0]["ttft_ms"] == pytest.approx(reference.latency.ttft_ms, rel=1e-3)


def test_a_second_search_is_answered_from_the_first() -> None:
    at = bench()
    first = asked(at, "search_strategies")
    (kept,) = at.desk.searches.values()
    assert asked(at, "search_strategies").text == first.text
    assert at.desk.searches[None] is kept


def test_a_search_keeps_the_degrees_that_it_is_told_to() -> None:
    found = told(
        asked(bench(), "search_strategies", count=20, keep={"dp": 1, "prefill": {"pp": 2}, "decode": {"pp": 2}})
    )
    assert found["rows"]
    assert all("PP2" in row[1] for row in found["rows"])
    assert found["matching"] < found["listed"]


def test_degrees_that_no_candidate_has_are_infeasible() -> None:
    answer = asked(bench(), "search_strategies", keep={"dp": None, "prefill": {"tp": 3}, "decode": {"tp": 3}})
    assert answer.trouble == "infeasible"
    assert "build_dag" in told(answer)["message"]


def test_degrees_of_disaggregation_search_for_phases_apart() -> None:
    found = told(asked(bench(OPEN), "search_strategies", keep={"prefill": {"replicas": 2}, "decode": {"replicas": 2}}))
    assert all(row[1].startswith("2 prefill of ") for row in found["rows"])


def test_an_open_load_is_searched_open() -> None:
    at = bench(OPEN)
    found = told(asked(at, "search_strategies", count=1))
    wanted = at.desk.question.reference_plan
    assert found["rows"][0][found["columns"].index("concurrency")] == wanted.workload.concurrency


def test_a_strategy_is_built_kept_and_not_accepted() -> None:
    at = bench()
    answer = asked(at, "build_dag", strategy=TP2)
    found = told(answer)
    document = at.desk.get(found["handle"])
    assert found["valid"] is True
    assert answer.judgement is None and not at.desk.standing
    assert (found["nodes"], found["edges"]) == (len(document["nodes"]), len(document["edges"]))
    assert validate(document).valid
    assert any(line.startswith("r0.decode.s0: decode layers") for line in found["stages"])


def test_an_illegal_strategy_is_built_as_it_is_with_its_findings() -> None:
    found = told(asked(bench(), "build_dag", strategy={"dp": 1, "prefill": {"tp": 3}, "decode": {"tp": 3}}))
    assert found["valid"] is False
    assert "TP005" in found["rules"]
    assert found["findings"][0]["remedy"]


@pytest.mark.parametrize("degrees", [{"tp": 4096}, {"pp": 4096}, {"tp": 64, "pp": 64, "ep": 4096}])
def test_a_strategy_that_cannot_be_laid_out_is_refused(degrees: dict[str, int]) -> None:
    refused(asked(bench(), "build_dag", strategy={"dp": 1, "prefill": degrees, "decode": degrees}), "GPU")


def test_requests_in_flight_may_be_chosen_only_where_they_are_open() -> None:
    one = {"dp": 4, "prefill": {"tp": 1}, "decode": {"tp": 1}}
    assert told(asked(bench(OPEN), "build_dag", strategy=one, concurrency=40))["concurrency"] == 40
    assert told(asked(bench(), "build_dag", strategy=TP2, concurrency=40))["concurrency"] == 1


def test_a_document_is_validated_by_its_handle() -> None:
    at = bench()
    assert told(asked(at, "validate_dag", handle=GOOD))["valid"] is True
    found = told(asked(at, "validate_dag", handle=FAULTY))
    assert (found["valid"], found["rules"]) == (False, ["GP001"])
    assert found["findings"][0]["expected"] == 2
    refused(asked(at, "validate_dag", handle="d99"), "there are: reference, d1")


@pytest.mark.parametrize("level", get_args(Level))
def test_a_tool_tells_no_more_of_findings_than_the_level_allows(level: Level) -> None:
    at = bench(level=level)
    for tool in ("validate_dag", "fix_dag"):
        found = told(asked(at, tool, handle=ILLEGAL))
        assert ("valid" in found) == (level != "none")
        assert ("findings" in found or "repaired" in found) == (level in ("full", "patch"))
        assert ("patch" in found) == (level == "patch" and tool == "fix_dag")
    assert ("rules" in told(asked(at, "validate_dag", handle=ILLEGAL))) == (level in ("codes", "full", "patch"))


def test_a_local_fault_is_fixed_under_a_new_handle() -> None:
    at = bench()
    answer = asked(at, "fix_dag", handle=FAULTY)
    found = told(answer)
    assert found["valid"] is True
    assert found["patch"] == [{"rule": "GP001", "op": "replace", "path": "/strategy/gpu_count", "value": 2}]
    assert validate(at.desk.get(found["handle"])).valid
    assert not validate(at.desk.get(FAULTY)).valid
    assert answer.judgement is None and not at.desk.standing


def test_an_illegal_strategy_is_fixed_into_the_nearest_and_its_changes_are_named() -> None:
    found = told(asked(bench(), "fix_dag", handle=ILLEGAL))
    assert found["valid"] is True
    assert "decode tp 3 -> 2" in found["strategy_changes"]


def test_what_is_valid_already_keeps_its_handle() -> None:
    found = told(asked(bench(), "fix_dag", handle=GOOD))
    assert (found["handle"], found["valid"]) == (GOOD, True)


def test_without_repairs_nothing_is_fixed() -> None:
    assert asked(bench(repairs=False), "fix_dag", handle=FAULTY).trouble == "infeasible"


def test_what_cannot_be_repaired_is_infeasible() -> None:
    at = bench()
    at.desk.put(at.desk.question.pinned({"nodes": 7}))
    answer = asked(at, "fix_dag", handle="d3")
    assert answer.trouble in (None, "infeasible")
    assert ("handle" in told(answer)) == ("valid" in told(answer))


def test_an_estimate_has_times_rates_memory_limits_and_how_sure_it_is() -> None:
    at = bench()
    found = told(asked(at, "estimate_dag", handle=GOOD))
    reference = at.desk.question.reference.estimate
    assert reference is not None
    assert found["latency"]["tpot_ms"] == pytest.approx(reference.latency.tpot_ms, rel=1e-3)
    assert found["fullest_device"]["total_bytes"] <= found["fullest_device"]["usable_bytes"]
    assert found["limits"] == "none asked for"
    assert found["calibration"]["profile"] and found["ranges"]["ttft_ms"][0] < found["latency"]["ttft_ms"]
    refused(asked(at, "estimate_dag", handle="nothing"), "no document")


def test_limits_of_the_request_are_told_with_whether_they_hold() -> None:
    at = bench(f"{SMALL}, TTFT under 2 s, TPOT under 60 ms")
    limits = told(asked(at, "estimate_dag", handle=GOOD))["limits"]
    assert [(one["name"], one["holds"]) for one in limits] == [("TTFT", True), ("TPOT", True)]


def test_what_is_no_plan_is_not_estimated() -> None:
    at = bench()
    at.desk.put({"nodes": [], "edges": []})
    refused(asked(at, "estimate_dag", handle="d3"), "not a plan document")


def test_two_documents_are_compared_with_what_differs_and_which_is_better() -> None:
    at = bench(STATED)
    one = told(asked(at, "build_dag", strategy={"dp": 1, "prefill": {"tp": 1}, "decode": {"tp": 1}}))["handle"]
    two = told(asked(at, "build_dag", strategy=TP2))["handle"]
    found = told(asked(at, "compare_dags", first=one, second=two))
    assert found["better"] == two
    assert (found["A"]["handle"], found["B"]["plan"]) == (one, "TP2")
    assert ["decode: TP", 1, 2] in found["differs"]
    assert {row[0] for row in found["figures"]} >= {"TTFT", "TPOT"}


def test_an_invalid_document_is_compared_and_said_to_be_invalid() -> None:
    found = told(asked(bench(), "compare_dags", first=ILLEGAL, second=GOOD))
    assert found["A"]["valid"] is False
    assert found["better"] == GOOD


def test_a_document_is_compared_with_the_built_in_plan() -> None:
    at = bench(OPEN)
    handle = told(asked(at, "build_dag", strategy={"dp": 1, "prefill": {"tp": 1}}))["handle"]
    found = told(asked(at, "compare_dags", first=handle, second="reference"))
    assert found["better"] == "reference"


def test_the_commands_of_a_document_are_those_of_its_export() -> None:
    at = bench()
    found = told(asked(at, "export_dag", handle=GOOD, engine="sglang"))
    (launch,) = export(at.desk.get(GOOD), "sglang").launches
    assert [shlex.split(one)[1:] for one in found["commands"]] == [
        [*(f"{name}={value}" for name, value in launch.environment.items()), *launch.arguments]
    ]


def test_what_an_engine_cannot_run_is_told_with_the_reason() -> None:
    answer = asked(bench(), "export_dag", handle=ILLEGAL, engine="vllm")
    assert answer.trouble == "infeasible" and told(answer)["refused"]


def test_a_strategy_a_document_and_a_handle_are_accepted_where_they_are_valid() -> None:
    at = bench()
    written = {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}
    for arguments in ({"strategy": TP2}, {"document": written}, {"handle": GOOD}):
        answer = asked(at, "submit_dag", **arguments)
        assert told(answer)["accepted"] is True
        assert answer.judgement is not None and answer.judgement.is_acceptable


def test_exactly_one_thing_is_submitted() -> None:
    refused(asked(bench(), "submit_dag"), "exactly one", "none")
    refused(asked(bench(), "submit_dag", handle=GOOD, strategy=TP2), "handle, strategy")
    refused(asked(bench(), "submit_dag", handle="d77"), "no document")


def test_a_faulty_submission_is_repaired_where_every_decision_is_kept() -> None:
    answer = asked(bench(), "submit_dag", handle=FAULTY)
    assert told(answer)["accepted"] is True
    assert told(answer)["repaired"]


def test_a_replanned_submission_can_be_taken_by_its_handle() -> None:
    at = bench()
    first = told(asked(at, "submit_dag", handle=ILLEGAL))
    assert first["accepted"] is False
    assert told(asked(at, "submit_dag", handle=first["repaired_as"]))["accepted"] is True


def test_a_submission_that_cannot_be_read_says_why() -> None:
    answer = asked(bench(), "submit_dag", document={"hello": "world"})
    assert told(answer)["accepted"] is False
    assert "no strategy" in told(answer)["message"]
