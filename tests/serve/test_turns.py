"""Turns without words: fields of the request are set, and plan documents are opened."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from shardwright.tools.plan.latency_limits import LATENCY_LIMITS, LimitedLatency

REQUEST = "Serve Llama-3.1-8B on 2 H100, 1k in / 128 out, TTFT p95 under 900 ms, lowest latency"


@pytest.fixture
def name(client: httpx2.Client) -> str:
    return client.post("/api/v1/sessions", json={}).json()["id"]


def _turn(client: httpx2.Client, name: str, text: str, **more: Any) -> dict[str, Any]:
    return client.post(f"/api/v1/sessions/{name}/turns", json={"text": text, **more}).json()


@pytest.mark.thorough
def test_a_field_that_is_set_holds_and_is_shown_also_where_it_leads_to_no_plan(
    client: httpx2.Client, name: str
) -> None:
    _turn(client, name, REQUEST)
    refused = _turn(client, name, "TTFT at most: 0.5", fields={"ttft_ms": 0.5})
    assert refused["kind"] == "plan" and refused["current"]["plan"] is None
    load = refused["asked"]["workload"]
    assert (load["ttft_ms_max"], load["ttft_statistic"], load["input_tokens"]) == (0.5, "p95", 1024)
    later = _turn(client, name, "now 4 GPUs")
    assert later["asked"]["workload"]["ttft_ms_max"] == 0.5 and later["asked"]["hardware"]["gpus_per_node"] == 4
    taken_back = _turn(client, name, "TTFT at most: not stated", fields={"ttft_ms": None})
    plan = taken_back["current"]["plan"]
    assert plan["workload"].get("ttft_ms_max") is None and plan["hardware"]["gpus_per_node"] == 4


@pytest.mark.parametrize("limit", LATENCY_LIMITS, ids=lambda limit: limit.figure)
def test_every_limit_on_a_latency_is_left_open_where_its_field_is_emptied(
    client: httpx2.Client, name: str, limit: LimitedLatency
) -> None:
    _turn(client, name, f"Llama-3.1-8B on 2 H100, 1k in / 128 out, {limit.name} p95 under 9000 ms")
    load = _turn(client, name, "emptied", fields={limit.figure: None})["asked"]["workload"]
    assert limit.field not in load and load.get(limit.statistic, "mean") == "mean"


@pytest.mark.thorough
def test_a_set_field_takes_the_place_of_all_that_words_said_of_it(client: httpx2.Client, name: str) -> None:
    request = _turn(client, name, REQUEST)["asked"]
    hardware = {**request["hardware"], "nodes": 2, "gpus_per_node": 1}
    moved = _turn(client, name, "Nodes: 2", fields={"hardware": hardware, "precision": {"weights": "fp8"}})
    assert (moved["asked"]["hardware"]["nodes"], moved["asked"]["hardware"]["gpus_per_node"]) == (2, 1)
    assert moved["asked"]["precision"]["weights"] == "fp8" and moved["asked"]["precision"]["kv_cache"] == "bf16"
    planned = _turn(client, name, "Plan this one", fields={"strategy": moved["current"]["plan"]["strategy"]})
    assert planned["current"]["plan"] is not None


def test_an_opened_plan_is_what_the_talk_goes_on_from(client: httpx2.Client, name: str, plan: dict[str, Any]) -> None:
    opened = _turn(client, name, "plan.json: a plan", plan=plan)
    assert opened["kind"] == "plan" and opened["valid"] and opened["current"]["plan"] == plan
    later = _turn(client, name, "fp8 weights")
    assert later["current"]["plan"]["strategy"] == plan["strategy"]
    assert later["changes"][0].startswith("number formats: ")
    whole = client.get(f"/api/v1/sessions/{name}").json()
    assert [turn["is_given"] for turn in whole["said"]] == [True, False]


def test_a_request_after_a_broken_plan_is_planned_even_where_it_asks_for_the_same(
    client: httpx2.Client, name: str, plan: dict[str, Any]
) -> None:
    broken = {**plan, "strategy": {**plan["strategy"], "gpu_count": 16}}
    opened = _turn(client, name, "broken.json: a plan", plan=broken)
    assert not opened["valid"] and "GP001" in opened["text"]
    planned = _turn(client, name, "lowest latency")
    assert planned["kind"] == "plan" and planned["current"]["valid"]


@pytest.mark.parametrize("content", ["{", {"format": "shardwright/plan", "nodes": 3}, {}, []])
def test_what_is_no_plan_document_is_refused_and_is_no_turn(content: Any, client: httpx2.Client, name: str) -> None:
    answer = client.post(f"/api/v1/sessions/{name}/turns", json={"text": "odd.json", "plan": content})
    assert answer.status_code == 400 and "\n" not in answer.json()["error"]["message"]
    assert client.get(f"/api/v1/sessions/{name}").json()["said"] == []


def test_a_brief_begins_anew_and_a_turn_can_be_done_again(client: httpx2.Client, name: str) -> None:
    _turn(client, name, REQUEST)
    brief = {"brief.md": "- Model: Llama-3.1-8B\n- Hardware: 2 x H100\n- Input: 512 tokens\n- Output: 64 tokens\n"}
    begun = _turn(client, name, "brief.md: a brief", fields={"brief": brief})
    load = begun["asked"]["workload"]
    assert (load["input_tokens"], load.get("ttft_ms_max")) == (512, None)
    again = _turn(client, name, "/again")
    assert again["asked"] == begun["asked"]
