"""The rule of memory: ME001."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit, Example, Violation
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import find_rule

from ..examples import examples
from .corruptions import damaged_plans, fired

TERMS = ("weights_bytes", "kv_cache_bytes", "activation_bytes", "communication_bytes")


def findings(base: str, *edits: Edit) -> list[Violation]:
    return list(find_rule("ME001").run(PlanView(apply(Example(base, edits)))))


@pytest.mark.parametrize("name", base_names())
def test_a_plan_that_fits_has_no_finding(name: str) -> None:
    assert fired(base_plan(name), "ME") == []


@examples(60)
@given(plan=damaged_plans())
def test_a_damaged_document_never_breaks_the_rule(plan: dict[str, Any]) -> None:
    fired(plan, "ME")


def test_the_finding_names_devices_terms_shortfall_and_where_the_usable_figure_comes_from() -> None:
    crowd = Edit("set_top", field="/workload/concurrency", value=1_000_000)
    [finding] = findings("dense-tp2", crowd)
    value = finding.value
    assert value["devices"] == ["n0.g0", "n0.g1"]
    assert sum(value[term] for term in TERMS) == value["total_bytes"]
    assert value["total_bytes"] - finding.expected == value["shortfall_bytes"] > 0
    assert finding.nodes == ("r0.prefill.s0", "r0.decode.s0")
    for words in ("n0.g0, n0.g1", "weights", "KV cache", "activations", "communication buffers", "short", "90% of"):
        assert words in finding.message


def test_devices_with_other_figures_have_a_finding_of_their_own() -> None:
    crowd = Edit("set_top", field="/workload/concurrency", value=1_000_000)
    stages = findings("dense-pp2-tp2", crowd)
    assert [finding.value["devices"] for finding in stages] == [["n0.g0", "n0.g1"], ["n0.g2", "n0.g3"]]


def test_less_utilization_leaves_less_to_use() -> None:
    crowd = Edit("set_top", field="/workload/concurrency", value=1_000_000)
    half = Edit("set_top", field="/policy/memory_utilization", value=0.45)
    [full], [halved] = findings("dense-1", crowd), findings("dense-1", crowd, half)
    assert halved.expected == pytest.approx(full.expected / 2, abs=1)
    assert halved.value["total_bytes"] == full.value["total_bytes"]


@pytest.mark.parametrize(
    ("field", "value", "path", "word"),
    [
        ("/hardware/accelerator", "abacus-9000", "/hardware/accelerator", "abacus-9000"),
        ("/model/config", {"model_type": "oracle"}, "/model/config", "oracle"),
        ("/model/config/hidden_size", -1, "/model/config", "hidden_size"),
    ],
)
def test_what_is_not_known_is_named_and_never_taken_for_enough(field: str, value: Any, path: str, word: str) -> None:
    [finding] = findings("dense-tp2", Edit("set_top", field=field, value=value))
    assert finding.path == path
    assert word in finding.message


def test_a_part_that_another_rule_names_is_left_to_it() -> None:
    for field, value in (("/workload", {}), ("/precision/weights", "fp3"), ("/nodes", [])):
        assert findings("dense-tp2", Edit("set_top", field=field, value=value)) == []


def test_a_request_longer_than_the_model_is_reported_with_both_figures_and_no_plan_is_sought() -> None:
    document = apply(Example("dense-tp2", (Edit("set_top", field="/workload/input_tokens", value=200_000),)))
    [finding] = find_rule("ME001").run(PlanView(document))
    assert (finding.path, finding.fix, finding.value, finding.expected) == (
        "/workload/input_tokens", "report", 200_064, 65_536,
    )  # fmt: skip
    assert "200,000 input + 64 output" in finding.message and "134,528" in finding.remedy
    repaired = autofix(document)
    assert not repaired.valid and not repaired.fixes
    assert [violation.rule for violation in repaired.remaining] == ["ME001"]
