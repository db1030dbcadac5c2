"""`shardwright.search`: its arguments, and that its answer is true."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.planning.reasons import considered
from shardwright.agent.search_api import search
from shardwright.tools.catalog.models import find_model
from shardwright.tools.errors import InputError
from shardwright.tools.plan.describe import family
from shardwright.tools.plan.document import HardwareBlock, PrecisionBlock, WorkloadBlock
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.search.candidate import Candidate, SearchResult

pytestmark = pytest.mark.thorough

MODEL = "llama-3.1-8b"
HARDWARE = "1x4:h100-sxm"
LOAD = {"input_tokens": 2048, "output_tokens": 256}
# A figure with its unit; the number of a rule is no figure.
FIGURE = re.compile(r"(?<![A-Z\d])\d[\d,.]* (ms|GB|tokens/s|%)")
CONTRACT = {
    "strategy", "ttft_ms", "tpot_ms", "output_tokens_per_s_per_gpu", "memory_per_gpu_bytes", "feasible", "why_not",
}  # fmt: skip


def printed(**arguments: Any) -> dict[str, Any]:
    """The JSON of a search without the time that it took."""
    data = search(**arguments).model_dump(mode="json")
    assert data.pop("seconds") > 0
    return data


def test_the_public_name_is_this_function_and_the_json_has_the_keys_of_the_contract() -> None:
    assert shardwright.search is search
    answer = search(model=MODEL, hardware=HARDWARE, workload=LOAD)
    data = json.loads(answer.model_dump_json())
    assert set(data) >= {"candidates", "pareto", "evaluated", "seconds"}
    for candidate in data["candidates"]:
        assert set(candidate) >= CONTRACT
    assert data["evaluated"] >= len({json.dumps(candidate["strategy"]) for candidate in data["candidates"]})
    too_large = search(model="llama-3.1-70b", hardware="1x1:h100-sxm", workload=LOAD).model_dump(mode="json")
    assert too_large["candidates"][0]["ttft_ms"] is None
    assert too_large["candidates"][0]["why_not"][0].startswith("ME001")


def test_a_model_may_be_a_name_a_path_or_a_config(tmp_path: Path) -> None:
    config = dict(find_model(MODEL).config)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    wanted = printed(model=MODEL, hardware=HARDWARE, workload=LOAD)["candidates"]
    for model in (str(path), path, config):
        assert printed(model=model, hardware=HARDWARE, workload=LOAD)["candidates"] == wanted


def test_hardware_workload_and_precision_may_be_words_blocks_or_fields() -> None:
    block = HardwareBlock(accelerator="h100-sxm", nodes=1, gpus_per_node=4)
    three = PrecisionBlock(weights="fp8", kv_cache="fp8", activations="fp8")
    load = WorkloadBlock(input_tokens=2048, output_tokens=256, concurrency=8, objective="throughput")
    wanted = printed(model=MODEL, hardware=block, workload=load, precision=three)
    fields = {**LOAD, "concurrency": 8}
    assert wanted["request"]["workload"]["objective"] == "throughput"
    assert wanted == printed(
        model=MODEL,
        hardware=block.model_dump(),
        workload=fields,
        objective="throughput",
        precision={"weights": "fp8", "kv_cache": "fp8", "activations": "fp8"},
    )
    assert wanted == printed(
        model=MODEL, hardware=HARDWARE, precision=three, **fields, objective="throughput", relaxations=()
    )


def test_a_card_of_one_s_own_is_searched() -> None:
    from shardwright.tools.catalog.hardware import find_accelerator

    card = find_accelerator("h100-sxm").model_dump() | {"id": "my-card"}
    hardware = {"accelerator": card, "nodes": 1, "gpus_per_node": 4}
    answer = search(model=MODEL, hardware=hardware, workload=LOAD)
    assert answer.best is not None
    assert answer.request.hardware is not None
    assert not isinstance(answer.request.hardware.accelerator, str)


def test_words_and_arguments_together_are_one_request_and_arguments_win() -> None:
    answer = search("Llama-3.1-8B on 4 H100, 2k in / 256 out", input_tokens=1024)
    assert answer.request.workload.input_tokens == 1024
    assert answer.request.workload.output_tokens == 256
    assert any("1024 replaces 2048" in reading for reading in answer.readings)


def test_the_best_and_the_assumptions_are_those_of_plan() -> None:
    text = "Llama-3.1-8B on 4 H100, best throughput, TPOT under 15 ms"
    planned, answer = shardwright.plan(text), search(text)
    assert planned.plan is not None and planned.report is not None and answer.best is not None
    assert answer.best.strategy == planned.plan.strategy
    assert answer.best.concurrency == planned.plan.workload.concurrency
    fields = {assumption.field for assumption in planned.report.assumptions}
    assert {assumption.field for assumption in answer.assumptions} == fields


def test_hardware_that_is_left_open_is_the_fewest_that_do() -> None:
    answer = search(model="llama-3.1-70b", hardware="h100-sxm", workload=LOAD)
    assert answer.best is not None and answer.request.hardware is not None
    assert answer.request.hardware.gpus_per_node == 2
    assert "hardware" in {assumption.field for assumption in answer.assumptions}


def test_candidates_come_best_first_and_no_limit_is_exceeded_by_one_that_is_called_feasible() -> None:
    answer = search(model=MODEL, hardware=HARDWARE, workload=LOAD, tpot_ms_max=5.0, objective="latency", concurrency=4)
    feasible = [row for row in answer.candidates if row.feasible]
    assert 0 < len(feasible) < len(answer.candidates)
    assert all(row.tpot_ms is not None and row.tpot_ms <= 5.0 and not row.why_not for row in feasible)
    assert all(row.why_not for row in answer.candidates if not row.feasible)
    assert answer.candidates[: len(feasible)] == tuple(feasible)


def test_the_front_is_of_candidates_that_hold_and_none_of_it_is_beaten_in_both() -> None:
    answer = search(model=MODEL, hardware=HARDWARE, workload=LOAD, objective="throughput")
    front = [answer.candidates[place] for place in answer.pareto]
    assert len(front) > 3
    assert all(candidate.feasible for candidate in front)
    for slower, quicker in pairwise(front):
        assert figures(slower)[0] < figures(quicker)[0]
        assert figures(slower)[1] > figures(quicker)[1]


def figures(candidate: Candidate) -> tuple[float, float]:
    """Speed for a user, and rate per GPU."""
    return 1e3 / (candidate.tpot_ms or 1e9), candidate.output_tokens_per_s_per_gpu or 0.0


def test_each_other_family_lost_by_a_number_and_a_rule_that_there_is() -> None:
    answer = search(model="llama-3.1-70b", hardware="1x8:h100-sxm", workload=LOAD, tpot_ms_max=25.0)
    assert answer.best is not None
    names = [other_family.family for other_family in answer.families]
    assert len(names) == len(set(names))
    # It has every candidate's family but the winner's, and families that cannot even hold the weights.
    listed = {family(candidate.strategy) for candidate in answer.candidates}
    assert {*names, family(answer.best.strategy)} >= listed | {"one device"}
    rules = {rule.id for rule in all_rules()}
    for lost in answer.families:
        assert FIGURE.search(lost.reason), lost.reason
        assert lost.rule is None or lost.rule in rules
    by_family = {other_family.family: other_family for other_family in answer.families}
    assert by_family["PP"].rule == "PE010"
    assert "exceeds 25 ms" in by_family["PP"].reason
    assert by_family["one device"].rule == "ME001"
    assert "GB" in by_family["one device"].reason
    assert by_family["DP × TP"].rule is None
    assert "against" in by_family["DP × TP"].reason


def test_the_runner_ups_of_a_plan_say_the_number_and_the_rule_too() -> None:
    planned = shardwright.plan("Llama-3.1-70B on 4 H100, 2k in / 256 out, TPOT under 18 ms")
    assert planned.report is not None
    assert len(planned.report.alternatives) > 2
    for other in planned.report.alternatives:
        if other.rule is None:
            assert "against" in other.reason or "the same within" in other.reason
        else:
            assert other.rule in other.reason
        assert FIGURE.search(other.reason), other.reason
    assert "PE010" in {other.rule for other in planned.report.alternatives}


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        ({"model": MODEL, "input_tokens": 1024}, {"SP": "SP004", "EP": "EP001", "KV-SP": "SP003"}),
        ({"model": MODEL, "input_tokens": 16384, "relaxations": ["kv_sequence_decode"]}, {"EP": "EP001"}),
        (
            {"model": "qwen3-30b-a3b", "input_tokens": 16384},
            {"attention DP": "DP001", "TP in experts": "TP006", "KV-SP": "SP003"},
        ),
        (
            {"model": "qwen3-30b-a3b", "input_tokens": 16384, "relaxations": ["attention_dp", "tp_in_expert"]},
            {"KV-SP": "SP003"},
        ),
    ],
)
def test_kinds_that_the_space_has_not_are_named_with_the_rule(arguments: dict[str, Any], kinds: dict[str, str]) -> None:
    answer = search(**arguments, hardware=HARDWARE)
    excluded = {kind.family: kind.rule for kind in answer.excluded}
    assert {name: rule for name, rule in excluded.items() if rule not in (None, "TP005")} == kinds
    # What is reported as missing really is.
    degrees_listed = " ".join({family(candidate.strategy) for candidate in answer.candidates}).split(" × ")
    assert not set(kinds) & set(degrees_listed)


def test_tp_degrees_that_divide_no_heads_are_named() -> None:
    answer = search(model=MODEL, hardware=HARDWARE, workload=LOAD)
    uneven = next(kind for kind in answer.excluded if kind.rule == "TP005")
    assert uneven.family == "TP 3"
    assert "32 query and 8 KV heads" in uneven.reason
    assert all(3 not in (row.strategy.decode.tp, row.strategy.prefill.tp) for row in answer.candidates)


def test_top_keeps_the_first_and_the_front_with_their_places() -> None:
    whole = search(model=MODEL, hardware=HARDWARE, workload=LOAD, objective="throughput")
    cut = search(model=MODEL, hardware=HARDWARE, workload=LOAD, objective="throughput", top=3)
    assert cut.candidates[:3] == whole.candidates[:3]
    assert len(cut.candidates) < len(whole.candidates)
    assert cut.listed == len(whole.candidates)
    front = [whole.candidates[place] for place in whole.pareto]
    assert [cut.candidates[place] for place in cut.pareto] == front


def test_degrees_that_the_words_state_are_ranked() -> None:
    answer = search("Llama-3.1-8B on 4 H100 with TP2, 2k in / 256 out")
    assert answer.stated is not None and answer.stated.place is not None
    assert answer.candidates[answer.stated.place].strategy.decode.tp == 2


def test_a_limit_that_nothing_holds_is_named_with_the_closest_and_what_would_do() -> None:
    answer = search(model="llama-3.1-70b", hardware="1x8:h100-sxm", workload=LOAD, tpot_ms_max=2.0)
    assert not answer.feasible and answer.exit_status == 1 and answer.best is None
    assert answer.infeasible is not None
    assert answer.infeasible.rule == "PE010"
    assert answer.infeasible.needs.accelerator == "h100-sxm"
    assert answer.pareto == ()
    least = min(candidate.tpot_ms for candidate in answer.candidates if candidate.tpot_ms is not None)
    assert answer.candidates[0].tpot_ms == least
    assert not any(candidate.feasible for candidate in answer.candidates)


def test_of_several_limits_each_has_the_best_that_the_others_leave() -> None:
    limits = {"tpot_ms_max": 25.0, "min_tokens_per_second": 50_000.0}
    answer = search(model=MODEL, hardware="1x2:h100-sxm", workload={**LOAD, **limits})
    assert not answer.feasible
    reach = {within.limit: within.best for within in answer.within_reach}
    assert set(reach) == set(limits)
    # The best rate keeps the limit on TPOT, and equals that of a search for throughput under this limit alone.
    alone = search(model=MODEL, hardware="1x2:h100-sxm", workload=LOAD, tpot_ms_max=25.0, objective="throughput").best
    rate = reach["min_tokens_per_second"]
    assert rate is not None and alone is not None
    assert rate.tpot_ms is not None and rate.tpot_ms <= 25.0
    assert rate.output_tokens_per_s == pytest.approx(alone.output_tokens_per_s, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "nothing was asked"),
        ({"hardware": HARDWARE}, "no model is named"),
        ({"model": "llama-99"}, "llama-99"),
        ({"model": {}}, "config"),
        ({"model": MODEL, "hardware": "4xh100.yaml"}, "4xh100"),
        ({"model": MODEL, "hardware": "1x4:h1000"}, "h1000"),
        ({"model": MODEL, "hardware": {"accelerator": "h100-sxm", "nodes": 0, "gpus_per_node": 8}}, "nodes"),
        ({"model": MODEL, "hardware": {"accelerator": "h100-sxm"}}, "nodes"),
        ({"model": MODEL, "workload": {"input": 5}}, "input_tokens"),
        ({"model": MODEL, "workload": {"input_tokens": -5}}, "input_tokens"),
        ({"model": MODEL, "workload": {"tpot_ms_max": float("nan")}}, "tpot_ms_max"),
        ({"model": MODEL, "concurrency": 0}, "concurrency"),
        ({"model": MODEL, "objective": "beauty"}, "objective"),
        ({"model": MODEL, "precision": "fp7"}, "weights"),
        ({"model": MODEL, "precision": {"weight": "fp8"}}, "weights"),
        ({"model": MODEL, "relaxations": ["gravity"]}, "relaxations"),
        ({"model": MODEL, "engine": "steam"}, "steam"),
        ({"model": MODEL, "memory_utilization": 1.5}, "memory_utilization"),
        ({"model": MODEL, "serving": {"engin": "vllm"}}, "engin"),
        ({"model": MODEL, "hardware": HARDWARE, "top": 0}, "top"),
        ({"model": MODEL, "hardware": HARDWARE, "input_tokens": 10_000_000}, "131072"),
        ({"request": "what a nice day"}, "model"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_line(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        search(**arguments)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_argument_that_there_is_not_is_a_type_error_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean 'input_tokens'"):
        search(model=MODEL, input_token=5)  # type: ignore[call-arg] # the misspelling is the test


def test_every_legal_strategy_is_accounted_for() -> None:
    counted = {"evaluated": 200, "timed": 22, "rejected": {"ME001": 90}, "pruned": {"dominated": 14}, "candidates": ()}
    counts = "Of 214 legal strategies 124 fit into memory; 22 were simulated, 14 are no better than another"
    sentence = considered(SearchResult.model_validate(counted))
    assert sentence.startswith(counts) and "The other 88 were not: a quick estimate without queues" in sentence
    assert "The other" not in considered(SearchResult.model_validate(counted | {"timed": 110}))


def test_a_limit_on_a_percentile_is_answered_with_the_percentile() -> None:
    result = shardwright.plan("Llama-3.1-8B on 2 H100, 16 users, p95 TTFT under 1 s, 2k in 256 out")
    assert result.report is not None and "TTFT p95 3" in result.report.explanation
    assert "all users start at once" in result.report.limits[1]
    refused = shardwright.plan("Llama-3.1-8B on 2 H100, 16 users, p95 TTFT under 10 ms, 2k in 256 out").infeasible
    assert refused is not None and refused.closest is not None and refused.closest.limited_ms["TTFT p95"] > 300


def test_an_argument_that_wins_over_the_workload_s_field_is_told() -> None:
    answer = search(model=MODEL, hardware=HARDWARE, workload=LOAD | {"ttft_ms_max": 900.0}, ttft_ms=800, concurrency=3)
    assert "ttft_ms 800 wins over workload.ttft_ms_max 900.0" in answer.readings
    same: dict[str, Any] = {**LOAD}
    assert search(model=MODEL, hardware=HARDWARE, workload=LOAD, **same).readings == ()


@pytest.mark.parametrize("name", ["ttft", "tpot", "end_to_end"])
def test_a_statistic_without_a_limit_is_not_acted_on(name: str) -> None:
    stated: dict[str, Any] = {f"{name}_statistic": "p99"}
    [told] = search(model=MODEL, hardware=HARDWARE, **stated).not_acted_on
    assert f"{name}_statistic" in told and "no limit on" in told
    limited = stated | {f"{name}_ms": 1e6}
    assert not search(model=MODEL, hardware=HARDWARE, **limited).not_acted_on
