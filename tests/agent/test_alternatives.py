"""Of several statements on one subject the valid one is read: not one withdrawn, corrected, or only considered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.tools.language.brief import read_brief
from shardwright.tools.language.errors import RequestError
from shardwright.tools.language.request import read_request

CASES = Path(__file__).parents[1] / "cases"
KINDS: list[dict[str, Any]] = json.loads((CASES / "kinds_of_requests.json").read_text(encoding="utf-8"))
BRIEFS: list[dict[str, Any]] = json.loads((CASES / "kinds_of_briefs.json").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = json.loads((CASES / "alternatives.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"][:40])
def test_the_statement_that_counts_is_read(row: dict[str, Any]) -> None:
    said = read_request(row["text"])
    stated = json.loads(said.model_dump_json(exclude_defaults=True))
    assert {name: stated.get(name) for name in row["said"]} == row["said"]
    assert not stated.keys() & set(row.get("absent", ()))
    read = [[constraint["kind"], constraint["value"]] for constraint in stated.get("constraints", ())]
    assert read == row["constraints"]
    if "tp" in row:
        assert said.strategy is not None and said.strategy.decode.tp == row["tp"]


@pytest.mark.one_in(10)
@pytest.mark.parametrize("row", KINDS, ids=lambda row: row["text"][-40:])
def test_a_kind_of_statement_is_read_whatever_its_nouns(row: dict[str, Any]) -> None:
    if "refused" in row:
        with pytest.raises(RequestError, match=row["refused"]):
            read_request(row["text"])
        return
    said = read_request(row["text"])
    stated = json.loads(said.model_dump_json(exclude_defaults=True))
    expected = row.get("said", {})
    assert {name: stated.get(name) for name in expected} == expected
    assert not stated.keys() & set(row.get("absent", ()))
    assert [[constraint["kind"], constraint["value"]] for constraint in stated.get("constraints", ())] == row.get(
        "constraints", []
    )
    assert row.get("unread", "") in " ".join(said.unread)
    assert row.get("reading", "") in " ".join((*said.readings, *said.assumed.values()))
    assert len(said.unread) <= row.get("unread_count", len(said.unread)), said.unread
    assert said.strategy is None or said.strategy.decode.tp == row.get("tp")


@pytest.mark.parametrize("row", BRIEFS, ids=lambda row: row["text"][:30])
def test_a_kind_of_brief_is_read_whatever_its_nouns(row: dict[str, Any]) -> None:
    said = read_brief([(row.get("file", "brief.md"), row["text"])])
    stated = json.loads(said.model_dump_json(exclude_defaults=True))
    assert {name: stated.get(name) for name in row["said"]} == row["said"]
    assert not stated.keys() & set(row.get("absent", ()))
    bounds = stated.get("constraints", ())
    values = [(bound["kind"], bound["value"]) for bound in bounds]
    read = [[value["name"], value["relation"]] if isinstance(value, dict) else [kind, value] for kind, value in values]
    assert read == row.get("constraints", [])
    assert {bound.get("phase") for bound in bounds} <= {row.get("phase")}
    assert row.get("readings", "") in " ".join(said.readings)
    assert row.get("unread", "") in " ".join(said.unread)
    assert len(said.unread) <= row.get("unread_count", len(said.unread)), said.unread
    assert said.strategy is None or said.strategy.decode.tp == row.get("tp")


@pytest.mark.parametrize(
    "text",
    [
        "Llama-3.1-70B on 8 H100 and 8 A100",
        "Llama-3.1-70B and Qwen3-32B on 8 H100",
        "Qwen3-8B on 2 L4, 8 users, 9 users",
    ],
)
def test_what_nothing_settles_is_asked_back(text: str) -> None:
    with pytest.raises(RequestError):
        read_request(text)


def test_the_best_of_the_named_kinds_is_planned_and_the_others_are_said() -> None:
    result = plan("Qwen3-8B on 2 H100 or 2 L4, lowest latency, 1k in, 128 out, 4 users")
    assert result.plan is not None and result.report is not None
    assert result.plan.hardware.accelerator == "h100-sxm"
    assert any("l4" in fact.reason for fact in result.report.assumptions if fact.field == "hardware.accelerator")


@pytest.mark.thorough
def test_a_budget_bounds_the_nodes_that_are_used() -> None:
    result = plan(
        "Llama-3.1-8B on 4 nodes of 8 H100 at $2.50 per GPU hour, 8k in / 64 out, best throughput, "
        "at most $40 an hour in all"
    )
    assert result.plan is not None and result.plan.strategy.gpu_count <= 16
