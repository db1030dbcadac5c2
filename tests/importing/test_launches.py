"""Launch commands and manifests in the forms that people write give the plan that runs, or why it is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.tools.errors import InputError
from shardwright.tools.language.brief import read_brief
from shardwright.tools.language.request import read_request
from shardwright.tools.language.said import StatedStrategy
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.reader import read_document
from shardwright.tools.rules.engine.split_scale_blocks import RULE as SPLIT_BLOCKS

_CASES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "launches.json").read_text(encoding="utf-8")
)
_PUBLIC: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "public_launches.json").read_text(encoding="utf-8")
)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", _CASES["read"])
def test_a_launch_is_read_as_what_it_runs(name: str) -> None:
    case = _CASES["read"][name]
    imported = shardwright.import_plan(case["text"], hardware=case.get("hardware", "1x8:h100-sxm"))
    plan = imported.plan
    assert describe(plan.strategy, has_split_ffn=False) == case["strategy"]
    assert plan.strategy.gpu_count == case["gpus"]
    assert imported.engine_version == case.get("version")
    assert [*imported.not_understood] == case.get("not_understood", [])
    assert sorted(imported.unplanned) == case.get("unplanned", [])
    for block, fields in (("serving", case.get("serving", {})), ("workload", case.get("workload", {}))):
        assert getattr(plan, block).model_dump(include=set(fields)) == fields
    assert plan.precision.kv_cache == case.get("kv_cache", "bf16")
    assert imported.valid and imported.estimate is not None


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", _CASES["told"])
def test_what_no_plan_says_is_told_and_nothing_else(name: str) -> None:
    case: dict[str, Any] = _CASES["told"][name]
    stated: Any = {"model": case["model"]} if "model" in case else {}
    hardware = case.get("hardware", "1x8:h100-sxm")
    imported = shardwright.import_plan(case["text"], hardware=hardware, files=case.get("files"), **stated)
    for field in ("refused", "remarks", "not_understood"):
        lines, parts = getattr(imported, field), case.get(field, [])
        assert len(lines) == len(parts) and all(part in line for part, line in zip(parts, lines, strict=True)), lines
    assert imported.exit_status == (1 if "refused" in case else 0)
    shown = {
        "strategy": describe(imported.plan.strategy, has_split_ffn=False),
        "accelerator": imported.plan.hardware.accelerator,
        "weights": imported.plan.precision.weights,
        "tp_ffn": imported.plan.strategy.prefill.tp_ffn,
    }
    assert {name: shown[name] for name in shown if name in case} == {name: case[name] for name in shown if name in case}


@pytest.mark.parametrize("name", _CASES["refused"])
def test_what_is_not_known_is_named(name: str) -> None:
    text, reason = _CASES["refused"][name]
    with pytest.raises(InputError, match=reason.replace("$", r"\$")):
        shardwright.import_plan(text, hardware="1x8:h100-sxm")


def test_the_gpus_have_to_be_said() -> None:
    with pytest.raises(InputError, match="--hardware"):
        shardwright.import_plan("vllm serve Qwen/Qwen3-32B -tp 2")


def test_the_gpus_that_commands_name_are_those_of_the_plan() -> None:
    text = "\n".join(
        f"CUDA_VISIBLE_DEVICES={gpus} vllm serve Qwen/Qwen3-32B -tp 2 --port 80{place}"
        for place, gpus in enumerate(("6,7", "2,3"))
    )
    plan = shardwright.import_plan(text, hardware="1x8:h100-sxm").plan
    replicas = layout_from_view(read_document(plan).view).replicas
    assert [replica.phases[0].devices for replica in replicas] == [("n0.g6", "n0.g7"), ("n0.g2", "n0.g3")]


def test_what_breaks_a_rule_is_shown_with_its_findings() -> None:
    imported = shardwright.import_plan("vllm serve Qwen/Qwen3-32B -tp 3", hardware="1x8:h100-sxm")
    assert not imported.valid and "TP005" in {finding.rule for finding in imported.findings}
    assert imported.exit_status == 1


def test_the_flag_that_cut_experts_are_told_to_be_mended_by_mends_them() -> None:
    command, flag = "vllm serve Qwen/Qwen3-235B-A22B-FP8 -tp 8", "--enable-expert-parallel"
    cut = shardwright.import_plan(command, hardware="1x8:h100-sxm")
    assert {finding.rule for finding in cut.findings} == {"EN002"} and flag in SPLIT_BLOCKS.remedy.partition(",")[0]
    assert shardwright.import_plan(f"{command} {flag}", hardware="1x8:h100-sxm").valid


def test_a_share_of_memory_that_the_engine_would_compute_is_told_as_such() -> None:
    command = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"
    assumptions = shardwright.import_plan(command, hardware="1x1:rtx-4090").assumptions
    reason = next(entry.reason for entry in assumptions if entry.field == "memory_utilization")
    assert "without --mem-fraction-static SGLang computes one of its own" in reason


def test_arguments_win_over_the_text() -> None:
    text = "vllm serve Qwen/Qwen3-32B -tp 4\nvllm bench serve --random-input-len 9 --random-output-len 9"
    plan = shardwright.import_plan(text, hardware="1x8:h100-sxm", model="Qwen/Qwen3-14B", input_tokens=500).plan
    assert plan.model.name == "Qwen/Qwen3-14B"
    assert (plan.workload.input_tokens, plan.workload.output_tokens) == (500, 9)


@pytest.mark.parametrize("name", _CASES["in_requests"])
def test_a_command_in_a_request_says_what_it_starts_and_no_more(name: str) -> None:
    case = _CASES["in_requests"][name]
    request = read_request(case["text"])
    assert request.model_dump(include=set(case["said"])) == case["said"]
    strategy = request.strategy or StatedStrategy()
    for phase, degrees in (("prefill", case["degrees"]), ("decode", case.get("decode", case["degrees"]))):
        stated = getattr(strategy, phase).model_dump(exclude_none=True)
        # Every degree is stated: a command leaves those that it does not name at one.
        assert {name: degree for name, degree in stated.items() if degree > 1 or name == "ep"} == degrees
    assert strategy.dp == case.get("servers")
    assert request.unread == ()
    assert request.readings and " read as " in request.readings[0]


@pytest.mark.parametrize("name", _CASES["in_requests"])
def test_a_command_in_a_brief_says_what_it_says_in_a_request(name: str) -> None:
    text = _CASES["in_requests"][name]["text"]
    fields = {"strategy", "engine", "max_batch", "prefill_chunk_tokens", "overlap", "disaggregated", "unread"}
    assert read_brief([("brief.md", text)]).model_dump(include=fields) == read_request(text).model_dump(include=fields)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("command", "nodes"), _CASES["planned"])
def test_a_command_is_planned_as_what_is_imported_of_it(command: str, nodes: int) -> None:
    imported = shardwright.import_plan(
        command, hardware=f"{nodes}x8:h100-sxm", input_tokens=2048, output_tokens=256, concurrency=8
    )
    planned = shardwright.plan(
        f"We run `{command}` on {nodes} nodes of 8 H100, 2048 tokens in, 256 out, 8 at once, lowest latency: is it "
        "good? Keep this layout."
    )
    assert planned.plan is not None and planned.valid
    # Only an import keeps flags that have no field in plans.
    raw = imported.plan.model_dump(mode="json")
    raw["serving"].pop("flags", None)
    assert content_hash(planned.plan) == content_hash(raw)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("row", _PUBLIC, ids=lambda row: row["source"][:60])
def test_a_published_deployment_is_imported_and_estimated(row: dict[str, Any]) -> None:
    """Commands of public recipes, manifests and issues, in normal form, each with its source."""
    stated: Any = {"model": row["model"]} if "model" in row else {}
    imported = shardwright.import_plan(row["text"], hardware="16x8:h200-sxm", **stated)
    assert describe(imported.plan.strategy, has_split_ffn=False) == row["strategy"]
    assert imported.plan.strategy.gpu_count == row["gpus"]
    assert sorted(imported.not_understood) == row["not_understood"]
    assert sorted(imported.unplanned) == row["unplanned"]
    assert imported.estimate is not None


def test_requests_longer_than_the_servers_take_are_told_first() -> None:
    imported = shardwright.import_plan("vllm serve Qwen/Qwen3-32B -tp 4 --max-model-len 512", hardware="1x8:h100-sxm")
    assert imported.remarks == (
        "requests of 1,024 + 256 tokens: the engine refuses those longer than --max-model-len 512",
    )
    assert imported.exit_status == 0  # nobody stated the lengths


@pytest.mark.parametrize("row", _CASES["too_long"], ids=lambda row: row["name"])
def test_a_stated_load_of_which_no_request_is_taken_is_refused_with_the_length_that_it_needs(
    row: dict[str, Any],
) -> None:
    hardware = row.get("hardware", "1x8:h100-sxm")
    imported = shardwright.import_plan(row["text"], hardware=hardware, workload=row["workload"])
    assert imported.refused == tuple(row.get("refused", ()))
    assert imported.exit_status == (1 if imported.refused else 0)
    assert imported.remarks == tuple(row.get("remarks", ()))
    assert imported.estimate is not None


def test_what_a_command_in_a_request_says_beside_the_split_is_not_acted_on() -> None:
    request = read_request("vllm serve Qwen/Qwen3-32B -tp 4 --tensor-paralel-size 4 --enforce-eager on 8 H100")
    assert [words.split(" of the ")[0] for words in request.unread] == [
        "--tensor-paralel-size (did you mean --tensor-parallel-size?)",
        "execution without CUDA graphs",
    ]
