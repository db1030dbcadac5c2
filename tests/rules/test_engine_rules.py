"""The rules of serving engines: EN001 to EN013."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from shardwright.tools.engines.names import ENGINES as KNOWN
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit, Example, Rule, Violation
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.reading import named_engine
from shardwright.tools.rules.registry import all_rules, find_rule
from shardwright.tools.validate import validate

from ..examples import examples
from .corruptions import corruptions, damaged_plans, fired

ENGINES = tuple(JUDGED)


def findings(rule: str, base: str, *edits: Edit) -> list[Violation]:
    return list(find_rule(rule).run(PlanView(apply(Example(base, edits)))))


def serving(engine: str) -> Edit:
    return Edit("set_top", field="/serving", value={"engine": engine})


@pytest.mark.parametrize("name", base_names())
def test_a_plan_that_names_no_engine_has_no_finding(name: str) -> None:
    assert fired(base_plan(name), "EN") == []


@examples(40)
@given(plan=damaged_plans())
def test_no_rule_fails_on_a_damaged_plan_whatever_its_engine(plan: dict[str, Any]) -> None:
    for engine in (*ENGINES, 3, None):
        fired({**plan, "serving": {"engine": engine}}, "EN")


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        ("vllm", "vllm"),
        ("vLLM 0.33.0", "vllm"),
        ("SG-Lang", "sglang"),
        ("trtllm", "trtllm"),
        ("TensorRT-LLM", "trtllm"),
        ("tensorrt_llm", "trtllm"),
        ("dynamo (vllm)", "vllm"),
        ("dynamo", None),
        ("vllm or sglang", None),
        ("", None),
    ],
)
def test_an_engine_is_known_however_it_is_spelled(words: str, engine: str | None) -> None:
    engine_read = named_engine(PlanView({"serving": {"engine": words}}))
    assert (engine_read and engine_read.name) == engine


@pytest.mark.parametrize(
    ("engine", "severity"), [("vllm", "error"), ("sglang", "error"), ("trtllm", "warning"), ("own", "warning")]
)
def test_a_finding_is_an_error_where_the_named_engine_has_the_rule(engine: str, severity: str) -> None:
    bad = find_rule("EN002").bad
    violations = findings("EN002", bad.base, *bad.edits, serving(engine))
    assert {violation.severity for violation in violations} == {severity}


def test_a_warning_leaves_the_plan_valid_and_the_engine_s_error_does_not() -> None:
    bad = find_rule("EN002").bad
    assert validate(apply(bad)).valid
    assert not validate(apply(Example(bad.base, (*bad.edits, serving("vllm"))))).valid


def test_the_fp8_degrees_that_would_pass_leave_whole_blocks() -> None:
    (prefill, decode) = findings("EN002", "dense-tp4", *find_rule("EN002").bad.edits)
    assert prefill.expected == decode.expected == [1, 2, 5, 10]
    assert all(1280 // degree % 128 == 0 for degree in prefill.expected)


@pytest.mark.parametrize(
    ("engine", "layers", "stages", "cut"),
    [
        ("vllm", 61, 4, (15, 15, 16, 15)),
        ("sglang", 61, 4, (15, 15, 15, 16)),
        ("trtllm", 61, 4, (16, 15, 15, 15)),
        ("vllm", 61, 2, (31, 30)),
        ("vllm", 62, 4, (15, 16, 16, 15)),
        ("vllm", 63, 4, (16, 16, 16, 15)),
        ("sglang", 80, 8, (10,) * 8),
    ],
)
def test_the_three_engines_put_the_remainder_of_layers_in_three_places(
    engine: Any, layers: int, stages: int, cut: tuple[int, ...]
) -> None:
    assert KNOWN[engine].default_cut(layers, stages) == cut


def test_the_override_of_a_stage_cut_is_written_out() -> None:
    (prefill, decode) = findings("EN004", "dense-pp3", serving("sglang"))
    assert 'SGLANG_PP_LAYER_PARTITION="3,3,2"' in prefill.remedy
    assert prefill.value == decode.value == [3, 3, 2]
    assert prefill.expected == [2, 3, 3]


def test_copies_of_kv_heads_are_counted_against_what_a_device_may_use() -> None:
    bad = find_rule("EN001").bad
    (violation,) = findings("EN001", bad.base, *bad.edits)
    assert violation.value["tp"] == 4
    assert violation.value["kv_heads"] == violation.expected == 1
    assert violation.value["copies_bytes"] == violation.value["kv_cache_bytes"] * 3 // 4


def test_the_query_heads_of_each_kv_head_divide_by_the_parts_of_the_sequence_in_vllm() -> None:
    config = (
        Edit("set_top", field="/model/config/num_attention_heads", value=6),
        Edit("set_top", field="/model/config/num_key_value_heads", value=2),
    )
    (violation,) = findings("EN007", "relaxed-kv-sp2", serving("vllm"), *config)
    assert "3 query heads" in violation.message


@pytest.mark.parametrize("engine", ["llama.cpp", "lmdeploy", "vllm or sglang", "vLLM 0.9", "dynamo", ""])
def test_a_report_says_where_no_rule_on_engines_judges_the_named_one(engine: str) -> None:
    remarks = validate(apply(Example("dense-tp2", (serving(engine),)))).remarks
    assert [repr(engine) in remark for remark in remarks] == (
        [True] if engine in ("llama.cpp", "lmdeploy", "vllm or sglang") else []
    )


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.id.startswith("EN")], ids=lambda rule: rule.id)
def test_a_warning_that_a_named_engine_makes_an_error_says_so(rule: Rule) -> None:
    found = {
        violation.severity
        for row in corruptions(rule.id)
        for engine in ENGINES
        for violation in rule.run(PlanView({**apply(row.example), "serving": {"engine": engine}}))
    }
    is_raised = rule.severity == "warning" and "error" in found
    assert is_raised == ("An error in a plan that names" in rule.requirement)
