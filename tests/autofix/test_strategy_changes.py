"""A repair reports each decision of the strategy that it changed, and the fixes that it was not asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.report.fix import render_fix
from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.autofix.result import strategy_changes
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_names, base_plan, edited

HEADLINE = "The strategy block differs from what was read"
UNDONE = "Undone: "
# Base plan, field of the strategy, what it is set to, and the line that reports its return to the graph's value.
RESTATED = [
    ("dense-tp2", "decode/tp", 4, "decode tp 4 -> 2"),
    ("dense-tp4", "prefill/tp_ffn", 2, "prefill tp_ffn 2 -> 4"),
    ("dense-dp2-tp2", "dp", 1, "dp 1 -> 2"),
    ("dense-pp2-tp2", "decode/stage_layers", [3, 5], "decode stage_layers [3, 5] -> not stated"),
    ("dense-sp2-tp2", "prefill/sp_kind", "ulysses", "prefill sp_kind ulysses -> all_gather"),
    ("disaggregated-tp2", "prefill/replicas", 2, "prefill replicas 2 -> 1"),
    ("dense-tp2", "gpu_count", 4, "gpu_count 4 -> 2"),
]
# Base plan, and fields of its strategy block that an author overwrites by hand.
CARRIED: list[tuple[str, dict[str, Any]]] = [
    ("dense-tp2", {"decode/tp": 4, "decode/tp_ffn": 4}),
    ("dense-tp4", {"prefill/tp": 2, "prefill/tp_ffn": 2, "decode/tp": 2, "decode/tp_ffn": 2}),
    ("dense-dp2-tp2", {"dp": 1}),
    ("dense-tp2", {"dp": 2}),
    ("dense-tp2", {"decode/pp": 2}),
    ("dense-pp2-tp2", {"decode/stage_layers": [3, 5]}),
    ("disaggregated-tp2", {"dp": 3, "prefill/replicas": 2}),
    ("disaggregated-tp2", {"decode/tp": 4, "decode/tp_ffn": 4}),
]
DENSE = ("dense-1", "dense-tp2", "dense-pp2-tp2", "dense-dp2-tp2")


# Base plan, FFN degree of a sound graph that is built for it, and the one that is declared instead.
FFN_RESTATED = [("dense-tp4", 1, 4), ("dense-tp4", 1, 2), ("dense-tp4", 2, 4), ("dense-sp2-tp2", 1, 4)]


def _restated(name: str, field: str, value: Any) -> dict[str, Any]:
    return edited(base_plan(name), [Edit("set_top", field=f"/strategy/{field}", value=value)])


@pytest.mark.parametrize(("name", "field", "value", "line"), RESTATED)
def test_a_declaration_that_gives_way_to_the_graph_is_headlined(name: str, field: str, value: Any, line: str) -> None:
    result = autofix(_restated(name, field, value))
    text = render_fix(result, title="draft", width=100)
    assert result.valid and result.replanned is None
    assert result.strategy_changes == (line,)
    assert text.index(line) < text.index("Fixes")
    is_counted = field == "gpu_count"
    assert (HEADLINE in text) == is_counted
    assert (UNDONE + line in text.split("\n\n")[0] and "--keep-strategy" in text) != is_counted


@pytest.mark.parametrize(("name", "graph_degree", "declared"), FFN_RESTATED)
def test_a_sound_graph_bears_out_no_other_degree(name: str, graph_degree: int, declared: int) -> None:
    document = autofix(_restated(name, "prefill/tp_ffn", graph_degree), keep_strategy=True).document
    assert document is not None
    block = {**document["strategy"], "prefill": {**document["strategy"]["prefill"], "tp_ffn": declared}}
    result = autofix({**document, "strategy": block})
    assert result.strategy_changes == (f"prefill tp_ffn {declared} -> {graph_degree}",)
    assert result.valid and result.document == document


@pytest.mark.parametrize("name", ["disaggregated-tp2", "dense-tp4", "dense-sp2-tp2"])
def test_a_sound_graph_wins_where_phases_are_declared_for_one_another(name: str) -> None:
    document = autofix(_restated(name, "decode/tp_ffn", 1), keep_strategy=True).document
    assert document is not None
    strategy = document["strategy"]
    swapped = {**document, "strategy": {**strategy, "prefill": strategy["decode"], "decode": strategy["prefill"]}}
    result = autofix(swapped)
    assert result.valid and result.document == document


@pytest.mark.parametrize(("name", "edits"), CARRIED)
def test_a_declaration_is_carried_into_the_graph_where_the_strategy_is_kept(name: str, edits: dict[str, Any]) -> None:
    document = base_plan(name)
    for path, value in edits.items():
        document = edited(document, [Edit("set_top", field=f"/strategy/{path}", value=value)])
    for graph in (document["nodes"], []):
        result = autofix({**document, "nodes": graph, "edges": document["edges"] if graph else []}, keep_strategy=True)
        assert result.valid and result.document is not None and result.replanned is None
        assert {**result.document["strategy"], "gpu_count": 0} == {**document["strategy"], "gpu_count": 0}
        assert result.undone == () and UNDONE not in render_fix(result, title="draft", width=100)


@given(tp=st.sampled_from([1, 2, 4]), pp=st.integers(1, 3), dp=st.integers(1, 3), base=st.sampled_from(sorted(DENSE)))
def test_a_sound_plan_becomes_whatever_legal_degrees_are_declared(tp: int, pp: int, dp: int, base: str) -> None:
    document = base_plan(base)
    document["hardware"].update(nodes=5, gpus_per_node=8)
    degrees = {"pp": pp, "tp": tp, "tp_ffn": tp}
    document["strategy"] = {"dp": dp, "gpu_count": 1, "prefill": degrees, "decode": degrees}
    result = autofix(document, keep_strategy=True)
    assert result.valid and result.plan is not None
    strategy = result.plan.strategy
    assert (strategy.dp, strategy.gpu_count) == (dp, dp * pp * tp)
    assert all((phase.pp, phase.tp, phase.tp_ffn) == (pp, tp, tp) for phase in (strategy.prefill, strategy.decode))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", base_names())
def test_a_strategy_that_is_kept_is_not_spoken_of(name: str) -> None:
    document = base_plan(name)
    del document["edges"][-1]
    result = autofix(document)
    assert result.valid and result.strategy_changes == () and HEADLINE not in render_fix(result, title="x", width=80)


def test_another_form_of_the_same_is_no_change() -> None:
    after = base_plan("dense-pp2-tp2")
    before = base_plan("dense-pp2-tp2")
    before["strategy"]["prefill"].update(tp=" 2", stage_layers=[4, 4])
    del before["strategy"]["gpu_count"], before["strategy"]["prefill"]["sp"]
    assert not list(strategy_changes(before, after))


def test_what_was_not_stated_is_said_to_be_so() -> None:
    after = base_plan("dense-dp2-tp2")
    assert "prefill tp not stated -> 2" in strategy_changes({}, after)
    assert "dp not stated -> 2" in strategy_changes({"strategy": [1]}, after)
    assert not list(strategy_changes(base_plan("dense-1"), None))


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=6
)


@given(value=_ANY, name=st.sampled_from(["tp", "stage_layers", "sp_kind", "replicas", "kv_sp"]))
def test_any_value_is_compared_and_shown_in_short(value: Any, name: str) -> None:
    changes = strategy_changes({"strategy": {"prefill": {name: value}}}, base_plan("dense-1"))
    assert all(len(line) < 500 for line in changes)


def test_values_of_great_depth_and_length_are_shown_in_short() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    for value in (deep, 10**5000, "9" * 10_000, [1] * 100_000):
        changes = strategy_changes({"strategy": {"prefill": {"tp": value}}}, base_plan("dense-1"))
        assert all(len(line) < 500 for line in changes)


def _two_faults() -> dict[str, Any]:
    document = _restated("dense-tp2", "decode/tp", 4)
    del document["edges"][3]
    return document


def test_fixes_that_safe_only_leaves_out_are_counted_and_the_way_to_them_said() -> None:
    result = autofix(_two_faults(), safe_only=True)
    text = render_fix(result, title="draft", width=100)
    errors = sum(finding.severity == "error" for finding in result.remaining)
    assert result.withheld is not None
    assert (result.withheld.findings, result.withheld.by) == (errors, ("safe_only",))
    assert f"{errors} finding has fixes that were not asked for: run without --safe-only" in text
    assert autofix(result.document or {}).valid


def test_fixes_that_naming_a_rule_leaves_out_are_counted() -> None:
    result = autofix(_two_faults(), rules=["CO002"])
    assert result.withheld is not None
    assert result.withheld.by == ("rules",) and result.withheld.findings >= 1
    assert "run without --rule" in render_fix(result, title="draft", width=100)


def test_nothing_is_said_to_be_withheld_where_nothing_is() -> None:
    one_fault = base_plan("dense-tp2")
    del one_fault["edges"][3]
    assert autofix(one_fault, safe_only=True).withheld is None
    assert autofix(_two_faults()).withheld is None
    unreadable = autofix('{"nodes": 1}', safe_only=True)
    assert not unreadable.valid and unreadable.withheld is None


def test_a_fix_that_leaves_a_device_without_its_part_of_an_operator_is_not_safe() -> None:
    operator = "r0.decode.s0.b0.attn"
    shards = [Edit("set", f"{operator}.tp{number}", "rank", {"tp": number % 2}) for number in range(4)]
    parts = [Edit("set", f"{operator}.{part}", "devices", ["n0.g0", "n0.g1"]) for part in ("kv", "ar")]
    narrowed = edited(base_plan("dense-tp4"), (*shards, *parts, Edit("set_top", field="/strategy/decode/tp", value=2)))
    full, safe = autofix(narrowed), autofix(narrowed, safe_only=True)
    assert full.valid and {fix.safety for fix in full.fixes if "ops 2 nodes" in fix.description} == {"strategy"}
    assert not safe.valid and len((safe.document or {})["nodes"]) == len(narrowed["nodes"])


def test_a_fix_that_drops_a_shard_beside_a_whole_operator_is_safe() -> None:
    copy = {"id": "copy", "type": "ShardNode", "parent": "r0.decode.s0", "rank": {"tp": 1}, "devices": ["n0.g1"]}
    fixed = autofix(edited(base_plan("dense-tp2"), (Edit("add_node", value=copy),)), safe_only=True)
    assert fixed.valid and fixed.document == base_plan("dense-tp2")


def test_of_a_rule_that_only_warns_it_is_said_that_its_findings_stay() -> None:
    document = edited(base_plan("dense-sp2"), (Edit("set_top", field="/workload/input_tokens", value=512),))
    result = autofix(document, rules=["SP004"])
    assert result.valid and not result.fixes
    assert [why.split(":")[0] for why in result.unfixed] == ["SP004 is a warning"]
    assert autofix(document).unfixed == ()
