"""Naming an engine allows what it does by itself, and the report says so."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan
from shardwright.agent.search_api import search
from shardwright.agent.stated.request import intent_of
from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.engines.names import FRONT, JUDGED
from shardwright.tools.language.errors import RequestError
from shardwright.tools.language.said import Said
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.document import ServingBlock
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("engine", [engine.title for engine in JUDGED.values()])
@pytest.mark.parametrize(
    ("model", "brought"),
    [("Llama-3.1-70B", ("vocab_parallel",)), ("DeepSeek-V3", ("tp_in_expert", "vocab_parallel"))],
)
def test_a_named_engine_brings_the_relaxations_that_stand_for_it(
    engine: str, model: str, brought: tuple[str, ...]
) -> None:
    plain = intent_of(f"{model} on 16 H200")
    assert plain.relaxations == ()
    intent = intent_of(f"{model} on 16 H200 with {engine}")
    assert intent.relaxations == brought
    assumed = {fact.value: fact.reason for fact in intent.assumptions if fact.field == "relaxations"}
    assert set(assumed) == set(brought) and all("engine" in reason for reason in assumed.values())


def test_what_was_asked_for_is_not_assumed_as_well() -> None:
    intent = intent_of("Llama-3.1-70B on 8 H100 with vLLM, allow vocab parallel")
    assert intent.relaxations == ("vocab_parallel",)
    assert not [assumption for assumption in intent.assumptions if assumption.field == "relaxations"]


@pytest.mark.parametrize("engine", [*(engine.title for engine in JUDGED.values()), FRONT])
def test_the_engine_of_a_document_brings_the_same(engine: str) -> None:
    """70B over eight GPUs: 21.3 GB of weights on each with a whole vocabulary, 17.6 GB with a split one."""
    planned = plan("Llama-3.1-70B on 8 H100 TP8, 2k in, 256 out, no engine").plan
    assert planned is not None
    strict = planned.model_copy(update={"performance": None})
    served = strict.model_copy(update={"serving": ServingBlock(engine=engine)})
    assert (validate(strict).relaxations, validate(strict).brought) == ((), {})
    report = validate(served)
    assert report.valid and report.relaxations == ("vocab_parallel",)
    assert "engine" in report.brought["vocab_parallel"]
    strict_estimate, served_estimate = estimate(strict), estimate(served)
    weights = [each.memory.per_device[0].weights_bytes for each in (strict_estimate, served_estimate)]
    assert [round(each / 1e9, 1) for each in weights] == [21.3, 17.6]
    assert any(engine in note and "vocab_parallel" in note for note in served_estimate.notes)
    assert not any("in force" in note for note in strict_estimate.notes)


def test_experts_of_a_document_may_be_cut_where_its_engine_cuts_them() -> None:
    document = base_plan("relaxed-tp-in-expert")
    document["policy"]["relaxations"] = []
    assert not validate(document).valid
    document["serving"] = {"engine": "vllm"}
    assert "TP006" not in {violation.rule for violation in validate(document).violations}
    # vLLM cuts each expert over all ranks or none: the repaired plan states what the engine brings.
    mended = autofix(document).plan
    assert mended is not None and validate(mended).valid
    assert set(mended.policy.relaxations) == {"tp_in_expert", "vocab_parallel"}


def test_an_engine_that_is_not_known_brings_nothing() -> None:
    assert validate({**base_plan("dense-tp2"), "serving": {"engine": "homemade"}}).brought == {}


@pytest.mark.parametrize("stated", [{"engine": "vllm"}, {"serving": {"engine": "vllm", "max_batch": 64}}])
def test_the_engine_of_an_argument_brings_the_same(stated: dict[str, object]) -> None:
    answer = search(model="Llama-3.1-8B", hardware="1x2:h100-sxm", input_tokens=512, output_tokens=64, **stated)  # pyright: ignore[reportArgumentType]
    assert answer.request.policy.relaxations == ("vocab_parallel",)


@pytest.mark.parametrize(
    ("asked", "brought"),
    [
        ("Llama-3.1-8B on 2 H100, vLLM", {"vocab_parallel", "kv_sequence_decode"}),
        ("Llama-3.1-8B on 2 H100", {"vocab_parallel", "kv_sequence_decode"}),
        (
            "DeepSeek-V3 on 16 H200, SGLang",
            {"vocab_parallel", "kv_sequence_decode", "tp_in_expert", "attention_dp", "redundant_experts"},
        ),
    ],
)
def test_the_rules_of_an_engine_bring_all_that_it_can_do(asked: str, brought: set[str]) -> None:
    intent = intent_of(asked, flags=Said(rules="engine"))
    assert set(intent.relaxations) == brought
    assert {assumption.value for assumption in intent.assumptions if assumption.field == "relaxations"} == brought
    assert set(intent_of(asked, flags=Said(rules="strict")).relaxations) < brought


def test_a_plan_on_paper_has_no_rules_of_an_engine() -> None:
    with pytest.raises(RequestError, match="on paper"):
        intent_of("Llama-3.1-8B on 2 H100, no engine", flags=Said(rules="engine"))


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        # The vocabulary on each of two GPUs takes 0.25 ms of a step.
        ("Llama-3.1-70B on 2 H200, 2k in, 64 out, 1 user, TPOT under 20.1 ms", "--engine vllm"),
        ("Qwen3-235B-A22B on 8 H100, 4k in, 1k out, 64 concurrent, TPOT under 50 ms", "--engine vllm"),
        ("Qwen3-235B-A22B on 8 H100, 4k in, 1k out, 64 concurrent, TPOT under 40 ms", ""),
        # More GPUs than the request has, fewer than the strict rules need.
        ("Qwen3-235B-A22B on 4 H100, 4k in, 1k out, 64 concurrent, TPOT under 50 ms", "--engine vllm"),
    ],
)
def test_an_infeasible_answer_names_the_plan_that_the_engine_would_have(asked: str, options: str) -> None:
    refused = plan(asked).infeasible
    assert refused is not None and refused.with_engine is not None
    quoted = re.search(r"\((--[^)]*)\)", refused.with_engine)
    assert quoted is not None and quoted[1].startswith(options)
    there_is = refused.with_engine.startswith("there is a plan")
    on_more = re.sub(r"on \d+", f"on {refused.with_engine.split()[0]}", asked)
    words = quoted[1].split()
    stated: dict[str, Any] = {"relaxations": []}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name == "--relax":
            stated["relaxations"].append(value)
        else:
            stated[name.removeprefix("--")] = value
    planned = plan(asked if there_is else on_more, **stated).plan
    assert planned is not None and describe(planned.strategy) in refused.with_engine


@pytest.mark.parametrize(
    "asked",
    [
        "Qwen3-235B-A22B on H100s, 4k in, 1k out, 64 concurrent, TPOT under 50 ms",
        # No hardware stated, or kinds to choose from.
        "Qwen3-235B-A22B, 4k in, 1k out, 64 concurrent",
        "Qwen3-235B-A22B on H100 or H200, 4k in, 1k out, 64 concurrent, TPOT under 50 ms",
    ],
)
def test_hardware_that_was_left_open_says_first_what_would_do_with_the_engine_named(asked: str) -> None:
    strict, named = plan(asked), plan(asked, engine="vllm")
    assert strict.plan is not None and named.plan is not None and strict.report is not None
    assert named.plan.strategy.gpu_count < strict.plan.strategy.gpu_count
    first = strict.report.with_engine or ""
    part = named.plan.hardware.accelerator
    unit = "GPUs" if "H100s" in asked else f"× {part}"
    line = f"No engine was named: {named.plan.strategy.gpu_count} {unit} would do with vLLM named (--engine vllm)"
    assert first.startswith(line)
    head = " ".join(render_plan(strict, width=1000).split("\n\n")[0].split())
    assert first in head


@pytest.mark.parametrize(
    ("asked", "is_said"),
    [
        ("Qwen3-235B-A22B on 8 H100, 2k in / 256 out, 32 concurrent", True),
        # A gain of 2% is only reported among the reasons; on one GPU nothing is split.
        ("Qwen2.5-7B on H100, 2k in, 500 out, 32 users, TPOT under 8 ms", False),
        ("Llama-3.1-8B, 1k in, 128 out", False),
    ],
)
def test_what_an_engine_would_gain_on_the_same_gpus_is_said_first_where_it_is_much(asked: str, is_said: bool) -> None:
    result = plan(asked)
    assert result.report is not None
    head = render_plan(result, width=1000).split("\n\n")[0]
    assert (
        re.search(r"No engine was named: the best with vLLM named .* would be \d+% better", head) is not None
    ) == is_said
