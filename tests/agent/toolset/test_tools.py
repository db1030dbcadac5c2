"""What each tool does, and how it refuses."""

from __future__ import annotations

import shlex
from typing import Any, get_args

import pytest

from shardwright.agent.loop.feedback import Level
from shardwright.agent.loop.judge import judge_handle
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.tool import Bench, Tool
from shardwright.tools.export.export import export
from shardwright.tools.validate import validate

from ..loop.questions import OPEN, SMALL, STATED
from .benches import FAULTY, GOOD, ILLEGAL, bench, body, refused, still_bench, use

every_tool = pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
TP2 = {"dp": 1, "prefill": {"tp": 2}, "decode": None}


@every_tool
def test_a_field_that_a_tool_does_not_have_is_refused(tool: Tool[Any]) -> None:
    answer = use(still_bench(), tool.name, force=True)
    assert answer.trouble == "try_again"
    assert "force" in body(answer)["message"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("submit_dag", {"handle": GOOD}),
        ("search_strategies", {}),
        ("inspect_dag", {"handle": GOOD, "what": "figures"}),
        ("inspect_dag", {"handle": GOOD, "what": "comparison", "other": FAULTY}),
        ("inspect_dag", {"handle": GOOD, "what": "findings"}),
        ("inspect_dag", {"handle": GOOD, "what": "commands"}),
        ("patch_dag", {"handle": GOOD, "edits": [{"op": "remove", "node": "r0"}]}),
    ],
)
def test_a_fault_of_ours_is_no_fault_of_the_call(tool: str, arguments: dict[str, Any]) -> None:
    broken: Any = object()
    answer = use(Bench(broken), tool, **arguments)
    assert answer.trouble == "bug"
    assert tool in body(answer)["message"]
    assert "object" not in answer.text


def rows_of(search: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a search, each as a dict by column."""
    return [dict(zip(search["columns"], row, strict=True)) for row in search["rows"]]


def test_a_search_ranks_for_the_request_of_the_run_with_handles_to_submit() -> None:
    at = bench()
    rows = rows_of(body(use(at, "search_strategies", count=3)))
    reference = at.desk.question.reference.estimate
    assert len(rows) == 3 and reference is not None
    assert rows[0]["feasible"] and rows[0]["plan"] == "TP2"
    assert rows[0]["ttft_ms"] == pytest.approx(reference.latency.ttft_ms, rel=1e-3)
    assert (rows[0]["against_reference"], rows[1]["against_reference"][0]) == ("+0.0%", "+")
    taken = use(at, "submit_dag", handle=rows[0]["handle"])
    assert taken.judgement is not None and taken.judgement.is_acceptable


def test_a_second_search_is_answered_from_the_first() -> None:
    at = bench()
    first = use(at, "search_strategies")
    (searched,) = at.desk.searches.values()
    assert use(at, "search_strategies").text == first.text
    assert list(at.desk.searches.values()) == [searched]


def test_a_search_looks_among_what_it_is_told_to_keep() -> None:
    rows = rows_of(body(use(bench(), "search_strategies", count=20, keep=["pp = 2"])))
    assert rows and all("PP2" in row["plan"] for row in rows)
    refused(use(bench(), "search_strategies", keep=["as before"]), "was not understood", "tp <= 4")


def test_what_no_strategy_keeps_is_infeasible_with_what_refused_it() -> None:
    answer = use(bench(), "search_strategies", keep=["tp = 3"])
    assert answer.trouble == "infeasible" and body(answer)["rejected"]


@pytest.mark.thorough
def test_phases_apart_are_searched_where_that_is_open_and_never_against_the_request() -> None:
    search = body(use(bench(OPEN), "search_strategies", apart=True, keep=["prefill replicas = 1"]))
    assert search["rows"] and all(row["plan"].startswith("1 prefill of ") for row in rows_of(search))
    together = bench("Serve Llama-3.1-8B on 4 H100, no disaggregation, 2k in / 256 out, lowest latency")
    refused(use(together, "search_strategies", apart=True), "together")


@pytest.mark.thorough
def test_a_search_of_a_large_open_load_looks_at_phases_apart_too() -> None:
    at = bench("Serve Llama-3.1-70B on 136 H100, 1k in / 256 out, best throughput, TTFT under 2 s")
    use(at, "search_strategies", keep=["tp = 4", "pp = 1"])
    assert {search.apart for search in at.desk.searches} == {None, True}


def test_what_would_be_gained_by_allowing_more_is_told_kept_and_not_to_be_submitted() -> None:
    at = bench("Serve Llama-3.1-70B on 4 H100, 2k in / 256 out, best throughput, 64 concurrent requests")
    search = body(use(at, "search_strategies", allow=["weights = fp8", "activations = fp8"]))
    row = rows_of(search)[0]
    assert search["would_need"] == ["weights = fp8", "activations = fp8"]
    assert row["handle"] is None and row["against_reference"].startswith("+")
    (gain,) = at.desk.would_need.values()
    assert "against" in str(gain) and str(gain).startswith("weights = fp8, activations = fp8: ")
    for line in ("weights = fp7", "relax = everything", "tpot_ms = soon", "please"):
        refused(use(at, "search_strategies", allow=[line]))


@pytest.mark.thorough
def test_an_open_load_is_searched_open() -> None:
    at = bench(OPEN)
    row = rows_of(body(use(at, "search_strategies", count=1)))[0]
    assert row["concurrency"] == at.desk.question.reference_plan.workload.concurrency


def test_a_strategy_that_is_only_tried_is_judged_kept_and_not_the_answer() -> None:
    at = bench()
    answer = use(at, "submit_dag", only_try=True, strategy=TP2)
    tried = body(answer)
    document = at.desk.get(tried["handle"])
    assert tried["would_be_accepted"] is True and answer.judgement is None
    assert (tried["nodes"], tried["edges"]) == (len(document["nodes"]), len(document["edges"]))
    assert validate(document).valid
    assert any(line.startswith("r0.decode.s0: decode layers") for line in tried["stages"])


def test_an_illegal_strategy_is_built_as_it_is_with_its_findings() -> None:
    tried = body(use(bench(), "submit_dag", only_try=True, strategy={"dp": 1, "prefill": {"tp": 3}}))
    assert tried["would_be_accepted"] is False
    assert "TP005" in tried["rules"]
    assert tried["findings"][0]["expected"] == [1, 2]


@pytest.mark.parametrize("degrees", [{"tp": 4096}, {"pp": 4096}, {"tp": 64, "pp": 64, "ep": 4096}])
def test_a_strategy_that_cannot_be_laid_out_is_refused(degrees: dict[str, int]) -> None:
    answer = body(use(bench(), "submit_dag", strategy={"dp": 1, "prefill": degrees, "decode": degrees}))
    assert not answer["accepted"] and "GPU" in answer["message"]


def test_a_stage_cut_and_settings_of_the_engine_are_open_to_a_proposal() -> None:
    at = bench("Serve Qwen3-8B on 2 H100, 1k in / 100 out, 16 concurrent requests, best throughput")
    cut = {"pp": 2, "stage_layers": [17, 19]}
    settings = {"prefill_chunk_tokens": 512, "max_batch": 16, "microbatches": 2, "overlap": None}
    tried = body(use(at, "submit_dag", only_try=True, strategy={"dp": 1, "prefill": cut}, settings=settings))
    document = at.desk.get(tried["handle"])
    assert document["strategy"]["decode"]["stage_layers"] == [17, 19]
    assert document["serving"] == {"prefill_chunk_tokens": 512, "max_batch": 16, "microbatches": 2}
    wrong = {"pp": 2, "stage_layers": [1, 2]}
    assert body(use(at, "submit_dag", only_try=True, strategy={"dp": 1, "prefill": wrong}))["rules"]


def test_requests_in_flight_may_be_chosen_only_where_they_are_open() -> None:
    replicas = {"dp": 4, "prefill": {"tp": 1}, "decode": {"tp": 1}}
    assert body(use(bench(OPEN), "submit_dag", only_try=True, strategy=replicas, concurrency=40))["concurrency"] == 40
    assert body(use(bench(), "submit_dag", only_try=True, strategy=TP2, concurrency=40))["concurrency"] == 1


def test_a_document_is_validated_by_its_handle() -> None:
    at = bench()
    assert body(use(at, "inspect_dag", what="findings", handle=GOOD))["valid"] is True
    judged = body(use(at, "inspect_dag", what="findings", handle=FAULTY))
    assert (judged["valid"], judged["rules"]) == (False, ["GP001"])
    assert judged["findings"][0]["expected"] == 2
    refused(use(at, "inspect_dag", what="findings", handle="d99"), "there are: reference, d1")


@pytest.mark.parametrize("level", get_args(Level))
def test_a_tool_tells_no_more_of_findings_than_the_level_allows(level: Level) -> None:
    at = bench(level=level)
    judged = body(use(at, "inspect_dag", what="findings", handle=ILLEGAL))
    assert ("valid" in judged) == (level != "none")
    assert ("findings" in judged) == (level in ("full", "patch"))
    assert ("rules" in judged) == (level in ("codes", "full", "patch"))
    tried = body(use(at, "submit_dag", only_try=True, handle=ILLEGAL))
    assert ("findings" in tried) == (level in ("full", "patch"))
    assert ("patch" in tried) == (level == "patch")


def test_a_local_fault_is_mended_under_a_new_handle() -> None:
    at = bench()
    judged = judge_handle(at.desk, FAULTY)
    assert judged.verdict == "repaired" and judged.standing is not None
    assert validate(at.desk.get(judged.standing.handle)).valid
    assert not validate(at.desk.get(FAULTY)).valid


def test_a_repair_is_offered_with_its_figures_its_distance_and_what_starts_it() -> None:
    tried = body(use(bench(), "submit_dag", only_try=True, handle=ILLEGAL))
    assert tried["repaired_figures"].keys() >= {"ttft_ms", "tpot_ms", "output_tokens_per_s", "gpus"}
    assert "against" in tried["repaired_against_reference"] and "vLLM" in tried["repaired_starts_on"]
    assert any(change.startswith("decode.tp 3") for change in tried["changed"])


def test_without_repairs_none_is_offered() -> None:
    assert "repaired_as" not in body(use(bench(repairs=False), "submit_dag", only_try=True, handle=ILLEGAL))


def test_what_cannot_be_repaired_says_so() -> None:
    at = bench()
    handle = at.desk.put(at.desk.question.pinned({"nodes": 7}))
    tried = body(use(at, "submit_dag", only_try=True, handle=handle))
    assert not tried["would_be_accepted"] and tried["rules"]


def test_an_estimate_has_times_rates_memory_limits_and_how_sure_it_is() -> None:
    at = bench()
    figures = body(use(at, "inspect_dag", what="figures", handle=GOOD))
    reference = at.desk.question.reference.estimate
    assert reference is not None
    assert figures["latency"]["tpot_ms"] == pytest.approx(reference.latency.tpot_ms, rel=1e-3)
    assert figures["fullest_device"]["total_bytes"] <= figures["fullest_device"]["usable_bytes"]
    assert figures["limits"] == "none asked for"
    assert figures["calibration"]["profile"] and figures["ranges"]["ttft_ms"][0] < figures["latency"]["ttft_ms"]
    refused(use(at, "inspect_dag", what="figures", handle="nothing"), "no document")


def test_limits_of_the_request_are_told_with_whether_they_hold() -> None:
    at = bench(f"{SMALL}, TTFT under 2 s, TPOT under 60 ms")
    limits = body(use(at, "inspect_dag", what="figures", handle=GOOD))["limits"]
    assert [(limit["name"], limit["holds"]) for limit in limits] == [("TTFT", True), ("TPOT", True)]


def test_what_is_no_plan_is_not_estimated() -> None:
    at = bench()
    at.desk.put({"nodes": [], "edges": []})
    refused(use(at, "inspect_dag", what="figures", handle="d3"), "not a plan document")


def test_two_documents_are_compared_with_what_differs_and_which_is_better() -> None:
    at = bench(STATED)
    first = body(use(at, "submit_dag", only_try=True, strategy={"dp": 1, "prefill": {"tp": 1}, "decode": {"tp": 1}}))[
        "handle"
    ]
    second = body(use(at, "submit_dag", only_try=True, strategy=TP2))["handle"]
    compared = body(use(at, "inspect_dag", what="comparison", handle=first, other=second))
    assert compared["better"] == second
    assert (compared["A"]["handle"], compared["B"]["plan"]) == (first, "TP2")
    assert ["decode: TP", 1, 2] in compared["differs"]
    assert {row[0] for row in compared["figures"]} >= {"TTFT", "TPOT"}


def test_an_invalid_document_is_compared_and_said_to_be_invalid() -> None:
    compared = body(use(bench(), "inspect_dag", what="comparison", handle=ILLEGAL, other=GOOD))
    assert compared["A"]["valid"] is False
    assert compared["better"] == GOOD


def test_a_document_is_compared_with_the_built_in_plan() -> None:
    at = bench(OPEN)
    handle = body(use(at, "submit_dag", only_try=True, strategy={"dp": 1, "prefill": {"tp": 1}}))["handle"]
    compared = body(use(at, "inspect_dag", what="comparison", handle=handle, other="reference"))
    assert compared["better"] == "reference"


def test_the_commands_of_a_document_are_those_of_its_export() -> None:
    at = bench()
    exported = body(use(at, "inspect_dag", what="commands", handle=GOOD, other="sglang"))
    (launch,) = export(at.desk.get(GOOD), "sglang").launches
    assert [shlex.split(command)[1:] for command in exported["commands"]] == [
        [*(f"{name}={value}" for name, value in launch.environment.items()), *launch.arguments]
    ]


def test_what_an_engine_cannot_run_is_told_with_the_reason() -> None:
    answer = use(bench(), "inspect_dag", what="commands", handle=ILLEGAL, other="vllm")
    assert answer.trouble == "infeasible" and body(answer)["refused"]


def test_a_strategy_a_document_and_a_handle_are_accepted_where_they_are_valid() -> None:
    at = bench()
    written = {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}
    for arguments in ({"strategy": TP2}, {"document": written}, {"handle": GOOD}):
        answer = use(at, "submit_dag", **arguments)
        assert body(answer)["accepted"] is True
        assert answer.judgement is not None and answer.judgement.is_acceptable


def test_exactly_one_thing_is_submitted() -> None:
    refused(use(bench(), "submit_dag"), "exactly one", "none")
    refused(use(bench(), "submit_dag", handle=GOOD, strategy=TP2), "handle, strategy")
    refused(use(bench(), "submit_dag", handle="d77"), "no document")


def test_a_faulty_submission_is_repaired_where_every_decision_is_kept() -> None:
    answer = use(bench(), "submit_dag", handle=FAULTY)
    assert body(answer)["accepted"] is True
    assert body(answer)["repaired"]


def test_a_replanned_submission_can_be_taken_by_its_handle() -> None:
    at = bench()
    first = body(use(at, "submit_dag", handle=ILLEGAL))
    assert first["accepted"] is False
    assert body(use(at, "submit_dag", handle=first["repaired_as"]))["accepted"] is True


def test_a_submission_that_cannot_be_read_says_why() -> None:
    answer = use(bench(), "submit_dag", document={"hello": "world"})
    assert body(answer)["accepted"] is False
    assert "no strategy" in body(answer)["message"]
