"""Every other tool accepts a valid plan and finishes, or names the missing fact without which there are no times.

Header figures are at the limits of the schema, several at once, names are odd, parts are missing, and the graph is
damaged.
"""

from __future__ import annotations

import copy
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.compare import compare
from shardwright.tools.draw.svg import svg
from shardwright.tools.errors import InputError, MissingFieldError
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.performance.execution import expand_plan
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import PHASES, Plan
from shardwright.tools.plan.reader import read_document
from shardwright.tools.plan.schema import plan_schema
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit, Example, Finding, Rule, Violation
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.validate import validate, validate_read

from ..examples import examples
from .corruptions import damaged_plans

# Far above the time of any of these plans. CPU seconds: a busy machine changes no verdict.
LONGEST_CPU_S = 20
OWN_CARD: dict[str, Any] = {
    "id": "own card",
    "memory_bytes_reported": 80_000_000_000,
    "memory_bandwidth_gb_s": 2000,
    "dense_peak_tflops": {"bf16": 400},
    "intra_node_p2p_gb_s_unidirectional": 50,
    "typical_nic_gb_s_unidirectional_per_accelerator": 25,
}
NAMES = ("", " ", "\n", "\t ", "\u3000", "x" * 201, "H100 23GB", "A100 NVL", "nvidia", "H100", "no such part")


@contextmanager
def _bounded_time() -> Iterator[None]:
    """Raise in a block that takes more than `LONGEST_CPU_S`."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"it takes more than {LONGEST_CPU_S} s")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def use(document: dict[str, Any]) -> bool:
    """Use a plan with every tool if it is valid; returns whether it is."""
    with _bounded_time():
        read = read_document(copy.deepcopy(document))
        report = validate_read(read)
        assert not [violation.message for violation in report.violations if "could not be checked" in violation.message]
        if not report.valid or _lacks_a_fact(document):
            return False
        assert not read.view.unjudged
        json.dumps(estimate(document).model_dump(mode="json"), allow_nan=False)
        comparison = compare(base_plan("dense-1"), document)
        assert comparison.a.not_estimated is None and comparison.b.not_estimated is None
        repaired = autofix(document)
        assert repaired.valid and not repaired.fixes
        for phase in PHASES:
            assert expand_plan(document, phase, fold=True).nodes
        assert svg(document) and content_hash(Plan.model_validate(document)) == content_hash(document)
    return True


def _lacks_a_fact(document: dict[str, Any]) -> bool:
    """Whether the plan cannot be timed because a fact of its hardware is missing."""
    try:
        estimate(document)
    except MissingFieldError:
        return True
    return False


def _numbers(schema: Any, at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and schema of every number in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield at, schema
        for key, value in schema.items():
            yield from _numbers(value, f"{at}/{key}")
    elif isinstance(schema, list):
        for value in schema:
            yield from _numbers(value, at)


def test_every_number_of_the_format_has_bounds() -> None:
    numbers = list(_numbers(plan_schema(), ""))
    assert len(numbers) > 100
    assert [at for at, schema in numbers if not {"minimum", "maximum"} <= schema.keys()] == []


def _between(schema: dict[str, Any]) -> list[float]:
    """Minimum, maximum and geometric mean of a number's range."""
    least, most = schema["minimum"], schema["maximum"]
    middle = (max(least, 1e-6) * most) ** 0.5
    return [least, most, int(middle) if schema["type"] == "integer" else middle]


def _fields(block: str) -> Iterator[tuple[str, list[float]]]:
    for name, schema in plan_schema()["$defs"][block]["properties"].items():
        for _, number in _numbers(schema, ""):
            yield name, _between(number)


_PLACES = [
    (f"/{block}/{name}", values)
    for block, model in (
        ("workload", "WorkloadBlock"), ("serving", "ServingBlock"), ("policy", "PolicyBlock"),
        ("hardware", "HardwareBlock"),
    )
    for name, values in _fields(model)
    if not name.endswith("_range")
]  # fmt: skip
_CARD = [(name, values) for name, values in _fields("Accelerator") if name != "on_demand_usd_per_hour"]
_CONFIG = ("hidden_size", "vocab_size", "max_position_embeddings", "head_dim", "intermediate_size", "sliding_window")


@st.composite
def headers(draw: st.DrawFn) -> dict[str, Any]:
    """A base plan with other figures and names in its header, or with a field missing."""
    edits = [
        Edit("set_top", field=place, value=draw(st.sampled_from(values)))
        for place, values in draw(st.lists(st.sampled_from(_PLACES), max_size=3))
    ]
    if draw(st.integers(0, 2)) == 0:
        figures = {name: draw(st.sampled_from(values)) for name, values in draw(st.lists(st.sampled_from(_CARD)))}
        peaks = draw(st.sampled_from([{}, {"bf16": 1e-3}, {"bf16": 1e6}, {"fp32": 50.0}]))
        edits.append(Edit("set_top", field="/hardware/accelerator", value=_own_card(figures, peaks)))
    elif draw(st.integers(0, 3)) == 0:
        edits.append(Edit("set_top", field="/hardware/accelerator", value=draw(st.sampled_from(NAMES))))
    if draw(st.integers(0, 3)) == 0:
        place = f"/model/config/{draw(st.sampled_from(_CONFIG))}"
        edits.append(Edit("set_top", field=place, value=draw(st.sampled_from([1, 4096, 10**6, 10**9]))))
    document = base_plan(draw(st.sampled_from(base_names())))
    document["serving"] = {}
    for edit in edits:
        block, name = edit.field.removeprefix("/").rsplit("/", 1)
        place = document["model"]["config"] if block == "model/config" else document[block]
        place[name] = edit.value
    if draw(st.integers(0, 5)) == 0:
        block = document[draw(st.sampled_from(["hardware", "workload", "precision", "policy", "model"]))]
        block.pop(draw(st.sampled_from(sorted(block))))
    return document


def _own_card(figures: dict[str, float], peaks: dict[str, float]) -> dict[str, Any]:
    card = {**OWN_CARD, **figures, **({"dense_peak_tflops": peaks} if peaks else {})}
    return {name: value for name, value in card.items() if name != "measured_max_matmul_tflops" and value is not None}


@examples(40)
@given(headers())
def test_a_valid_header_is_judged_and_usable(document: dict[str, Any]) -> None:
    use(document)


@examples(30)
@given(damaged_plans())
def test_a_valid_graph_is_judged_and_usable(document: dict[str, Any]) -> None:
    use(document)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "H100"])
def test_a_plan_on_no_accelerator_is_not_valid(name: str) -> None:
    document = apply(Example("dense-1", (Edit("set_top", field="/hardware/accelerator", value=name),)))
    [finding] = [violation for violation in validate(document).violations if violation.severity == "error"]
    assert finding.rule in ("ST001", "ME001") and finding.path == "/hardware/accelerator"
    assert not autofix(document).valid


def _without(*fields: str) -> dict[str, Any]:
    return {name: value for name, value in OWN_CARD.items() if name not in fields}


@pytest.mark.parametrize(
    ("base", "edits", "rule", "path", "word"),
    [
        ("dense-tp2", {"/hardware/accelerator": _without("intra_node_p2p_gb_s_unidirectional"),
                       "/workload/ttft_ms_max": 60_000.0}, "PE010", "/hardware", "intra_node_bw_gb_s"),
        ("dense-1", {"/hardware/accelerator": _without("memory_bytes_reported")},
         "ME001", "/hardware/accelerator", "memory"),
        ("dense-1", {"/serving": {"prefill_chunk_tokens": 1}},
         "ST001", "/serving/prefill_chunk_tokens", "prefill_chunk_tokens 1"),
        ("dense-1", {"/workload/request_rate": 1e-35}, "ST001", "/workload/request_rate", "minimum"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_one_error_that_names_it(
    base: str, edits: dict[str, Any], rule: str, path: str, word: str
) -> None:
    document = apply(Example(base, tuple(Edit("set_top", field=place, value=value) for place, value in edits.items())))
    [finding] = [violation for violation in validate(document).violations if violation.severity == "error"]
    assert (finding.rule, finding.path) == (rule, path)
    assert word in finding.message


@pytest.mark.parametrize(
    ("base", "card", "word", "unjudged"),
    [
        ("dense-tp2", _without("intra_node_p2p_gb_s_unidirectional"), "intra_node_bw_gb_s", []),
        ("dense-1", {**OWN_CARD, "dense_peak_tflops": {}}, "dense_peak_tflops", []),
        ("dense-pp3-two-nodes", "l40s", "inter_node_bw_gb_s", ["PP008"]),
    ],
)
def test_a_fact_that_times_alone_need_is_no_fault_of_the_plan(
    base: str, card: Any, word: str, unjudged: list[str]
) -> None:
    document = apply(Example(base, (Edit("set_top", field="/hardware/accelerator", value=card),)))
    report = validate(document)
    assert report.valid and [violation.rule for violation in report.violations] == unjudged
    assert all(word in violation.message for violation in report.violations)
    with pytest.raises(MissingFieldError, match=word):
        estimate(document)


def _raising(severity: Any, *first: Finding) -> Rule:
    def check(view: PlanView) -> Iterator[Finding]:
        del view
        yield from first
        raise InputError("the moon is not known")

    return Rule(
        id="PE001", name="x", severity=severity, requirement="x", rationale="x", source="x", fix="none", remedy="x",
        check=check, good=Example("dense-1"), bad=Example("dense-1"),
    )  # fmt: skip


def test_a_rule_that_cannot_read_what_it_needs_keeps_its_findings_and_is_noted() -> None:
    view = PlanView(base_plan("dense-1"))
    violations: list[Violation] = list(_raising("error", Finding("found", "one")).run(view))
    assert [violation.message for violation in violations] == ["one"]
    assert {rule: str(why) for rule, why in view.unjudged.items()} == {"PE001": "the moon is not known"}


def test_an_error_that_explains_it_stands_alone() -> None:
    edits = (
        Edit("set_top", field="/workload/ttft_ms_max", value=60_000.0),
        Edit("set_top", field="/precision/weights", value="fp3"),
    )
    report = validate(apply(Example("dense-tp2", edits)))
    assert [error.path for error in report.violations if error.severity == "error"] == ["/precision/weights"]
    assert find_rule("PE010").severity == "error"
