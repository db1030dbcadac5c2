"""The rules of performance accept figures that the tools compute, and one rule names each falsification of them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.performance.estimate import estimate
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import PhaseStrategy, Plan, Strategy
from shardwright.tools.plan.reader import read_document
from shardwright.tools.rules.evaluation import evaluation_of
from shardwright.tools.rules.examples import base_names, base_plan
from shardwright.tools.rules.performance.claims import near
from shardwright.tools.validate import validate, validate_read

from ..examples import examples
from .corruptions import damaged_plans

every_base = pytest.mark.parametrize("base", base_names())
TOTALS = ("ttft_ms", "tpot_ms", "prefill_ms", "decode_ms", "end_to_end_ms")


@cache
def _estimated(base: str) -> dict[str, Any]:
    return estimate(base_plan(base)).model_dump(mode="json", exclude_none=True)


def evaluated(base: str) -> dict[str, Any]:
    """The base plan with its estimate as its claim."""
    return {**base_plan(base), "performance": copy.deepcopy(_estimated(base))}


def rules_that_fire(document: dict[str, Any]) -> set[str]:
    """Rules that fire, except the one of idle devices (GP005)."""
    return {violation.rule for violation in validate(document).violations} - {"GP005"}


def changed(value: Any, change: Any) -> Any:
    """`value` with `change` applied to every float in it."""
    if isinstance(value, dict):
        return {key: changed(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [changed(inner, change) for inner in value]
    return change(value) if isinstance(value, float) else value


@pytest.mark.one_in(4)
@every_base
def test_what_estimate_prints_is_a_claim_without_a_finding(base: str) -> None:
    assert rules_that_fire(evaluated(base)) == set()


@pytest.mark.one_in(4)
@every_base
@pytest.mark.parametrize("decimals", [2, 3, 6])
def test_figures_may_be_rounded(base: str, decimals: int) -> None:
    document = evaluated(base)
    document["performance"] = changed(document["performance"], lambda value: round(value, decimals))
    assert rules_that_fire(document) == set()


@pytest.mark.one_in(4)
@every_base
@pytest.mark.parametrize("factor", [0.96, 1.04])
def test_figures_match_within_a_twentieth(base: str, factor: float) -> None:
    document = evaluated(base)
    document["performance"] = changed(document["performance"], lambda value: value * factor)
    assert rules_that_fire(document) == set()


@pytest.mark.one_in(4)
@every_base
def test_figures_of_other_magnitude_are_refused(base: str) -> None:
    document = evaluated(base)
    document["performance"] = changed(document["performance"], lambda value: value * 1.5)
    assert rules_that_fire(document) & {"PE002", "PE006", "PE007", "PE008", "PE009"}


@pytest.mark.one_in(4)
@every_base
def test_what_the_contract_does_not_name_may_be_left_out(base: str) -> None:
    document = evaluated(base)
    contract_blocks = ("latency", "throughput", "memory", "critical_path", "calibration")
    document["performance"] = {name: document["performance"][name] for name in contract_blocks}
    assert rules_that_fire(document) == set()


def test_a_tpot_of_arithmetic_alone_is_a_decode_without_its_memory_term() -> None:
    document = evaluated("dense-tp4")
    latency = document["performance"]["latency"]
    document["performance"] = {"latency": {"tpot_ms": latency["tpot_ms"] - latency["decode_step"]["memory_ms"]}}
    assert rules_that_fire(document) == {"PE005"}


@pytest.mark.parametrize("name", TOTALS)
@pytest.mark.parametrize("base", ["dense-tp4", "moe-ep4", "mla-tp2-ep2-pp2", "relaxed-kv-sp2"])
def test_each_latency_by_itself_is_held_against_the_graph(base: str, name: str) -> None:
    document = evaluated(base)
    document["performance"]["latency"][name] *= 0.7
    assert rules_that_fire(document) == {"PE006"}


@pytest.mark.parametrize("name", ["ttft_ms", "tpot_ms"])
def test_what_users_see_is_a_claim_of_its_own(name: str) -> None:
    document = evaluated("dense-tp4")
    document["performance"] = {"latency": {name: document["performance"]["latency"][name]}}
    assert rules_that_fire(document) == set()
    document["performance"]["latency"][name] *= 2
    assert rules_that_fire(document) == {"PE006"}


@pytest.mark.parametrize("base", ["dense-tp4", "moe-ep4", "dense-pp2-tp2"])
@pytest.mark.parametrize("term", ["communication_ms", "memory_ms"])
def test_a_term_left_out_of_decode_and_of_all_that_follows_is_one_fault(base: str, term: str) -> None:
    document = evaluated(base)
    latency = document["performance"]["latency"]
    lost = latency["decode_step"][term]
    latency["decode_step"][term] = 0.0
    # Decode of the whole run shrinks in proportion to its step.
    remaining_share = 1.0 - lost / sum([lost, *latency["decode_step"].values()])
    latency["tpot_ms"] *= remaining_share
    latency["end_to_end_ms"] -= latency["decode_ms"] * (1.0 - remaining_share)
    latency["decode_ms"] *= remaining_share
    assert rules_that_fire(document) == {"PE004" if term == "communication_ms" else "PE005"}


@pytest.mark.parametrize("base", ["dense-dp2-tp2", "moe-dp2-ep2"])
def test_a_latency_divided_by_the_replicas_throughout_is_one_fault(base: str) -> None:
    document = evaluated(base)
    latency = document["performance"]["latency"]
    for name in TOTALS:
        latency[name] /= 2
    assert rules_that_fire(document) == {"DP004"}


@pytest.mark.parametrize("base", ["dense-pp2-tp2", "mla-tp2-ep2-pp2", "hybrid-tp2-ep2-pp2"])
def test_a_latency_divided_by_a_product_of_degrees_is_named_as_such(base: str) -> None:
    document = evaluated(base)
    alone = estimate({**base_plan(base), **base_plan_on_one(base)})
    document["performance"]["latency"]["ttft_ms"] = alone.latency.ttft_ms / 4
    [violation] = [v for v in validate(document).violations if v.rule == "PE006"]
    assert "the time on one device" in violation.message and "pp 2" in violation.message and "tp 2" in violation.message


def base_plan_on_one(base: str) -> dict[str, Any]:
    """The graph and strategy of the same model on one device."""
    plan = Plan.model_validate(base_plan(base))
    strategy = Strategy(dp=1, gpu_count=1, prefill=PhaseStrategy(), decode=PhaseStrategy())
    request = BuildRequest(
        model=plan.model, hardware=plan.hardware, workload=plan.workload, precision=plan.precision, strategy=strategy
    )
    built = build_plan(request).model_dump(mode="json")
    return {name: built[name] for name in ("strategy", "nodes", "edges", "construction")}


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize(
    ("base", "kind", "rule"),
    [("dense-tp4", "communication", "PE004"), ("moe-ep4", ".moe.rout", "PE008"), ("moe-ep2", "communication", "PE004")],
)
def test_a_critical_path_without_some_of_its_steps(base: str, kind: str, rule: str, phase: str) -> None:
    document = evaluated(base)
    path = document["performance"]["critical_path"]
    path[phase] = [step for step in path[phase] if step["kind"] != kind and kind not in step["node"]]
    assert rules_that_fire(document) == {rule}


def test_an_excerpt_of_a_critical_path_leaves_nothing_out() -> None:
    document = evaluated("moe-ep4")
    path = document["performance"]["critical_path"]
    path["decode"] = sorted(path["decode"], key=lambda step: -step["ms"])[:1]
    assert rules_that_fire(document) == set()


def test_experts_at_the_mean_load_are_named() -> None:
    document = evaluated("moe-ep4")
    for step in document["performance"]["critical_path"]["decode"]:
        if step["node"].endswith(".expert"):
            step["ms"] /= 2
    assert rules_that_fire(document) == {"PE008"}


def test_a_critical_path_in_names_of_its_own_is_held_against_the_whole() -> None:
    document = evaluated("dense-tp2")
    path = document["performance"]["critical_path"]
    for number, step in enumerate(path["decode"]):
        step["node"] = f"my step {number}"
    assert rules_that_fire(document) == set()
    path["decode"][0]["ms"] += sum(step["ms"] for step in path["decode"])
    assert rules_that_fire(document) == {"PE006"}


@pytest.mark.one_in(4)
@every_base
def test_a_faulty_graph_makes_no_claim_look_wrong(base: str) -> None:
    """The claim was right for the sound graph; only a stage's layers are wrong."""
    document = evaluated(base)
    stage = next(node for node in document["nodes"] if node["type"] == "PipelineStageNode")
    stage["layers"] = [0, 0]
    fired = rules_that_fire(document)
    assert "PP004" in fired and not any(rule.startswith("PE") or rule == "PP008" for rule in fired)


def test_a_plan_without_claims_and_limits_is_not_estimated() -> None:
    for base in ("dense-tp4", "moe-dp2-ep2", "disaggregated-moe"):
        read = read_document(base_plan(base))
        validate_read(read)
        assert evaluation_of not in read.view.memo


@pytest.mark.parametrize(
    ("statistic", "field"), [("mean", "latency"), ("p50", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99")]
)
@pytest.mark.parametrize("name", ["ttft", "tpot", "end_to_end"])
def test_a_limit_is_held_against_the_statistic_that_it_is_stated_for(name: str, statistic: str, field: str) -> None:
    document = base_plan("dense-tp4")
    document["workload"][f"{name}_statistic"] = statistic
    figures = estimate(document)
    assert figures.latency.percentiles is not None
    figure = getattr(figures.latency, f"{name}_ms")
    if statistic != "mean":
        figure = getattr(getattr(figures.latency.percentiles, f"{name}_ms"), field)
    for factor, expected in ((1.01, set()), (0.99, {"PE010"})):
        document["workload"][f"{name}_ms_max"] = figure * factor
        assert rules_that_fire(document) == expected


def test_the_profile_behind_a_missed_limit_is_named() -> None:
    document = base_plan("dense-tp4")
    document["workload"]["tpot_ms_max"] = 0.001
    [violation] = validate(document).violations
    assert estimate(document).calibration.profile in violation.message
    assert violation.value == pytest.approx(estimate(document).latency.tpot_ms)


@examples(60)
@given(plan=damaged_plans(), claim=st.sampled_from(["dense-tp2", "moe-ep4", "dense-pp4", "disaggregated-moe"]))
def test_a_claim_in_a_damaged_document_breaks_no_rule(plan: dict[str, Any], claim: str) -> None:
    report = validate({**plan, "performance": copy.deepcopy(_estimated(claim))})
    assert not any("could not be checked: " in violation.message for violation in report.violations)


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged_claims(draw: st.DrawFn) -> dict[str, Any]:
    """A plan with an estimate, some values of which are replaced by junk."""
    document = evaluated(draw(st.sampled_from(["dense-tp2", "moe-dp2-ep2", "dense-pp4"])))
    for _ in range(draw(st.integers(1, 4))):
        place: Any = document["performance"]
        while True:
            keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or draw(st.integers(0, 3)) == 0:
                place[key] = draw(_JUNK)
                break
            place = place[key]
    return document


@examples(80)
@given(damaged_claims())
def test_a_damaged_claim_breaks_no_rule(document: dict[str, Any]) -> None:
    report = validate(document)
    assert not any("could not be checked: " in violation.message for violation in report.violations)
    assert {violation.rule[:2] for violation in report.violations} <= {"ST", "PE", "DP"}


@given(st.floats(0.0, 1e9), st.floats(-0.0499, 0.0499))
def test_what_is_within_a_twentieth_is_near(computed: float, share: float) -> None:
    assert near(computed * (1 + share), computed)


@given(st.floats(1.0, 1e9), st.floats(0.051, 10.0))
def test_what_is_farther_is_not_near(computed: float, share: float) -> None:
    assert not near(computed * (1 + share), computed)
