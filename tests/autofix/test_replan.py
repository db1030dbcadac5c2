"""Re-planning returns the nearest legal plan by the stated distance, keeps what it can, or says that none exists."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.autofix.distance import distance, moves
from shardwright.tools.autofix.intent import PlanIntent, read_intent
from shardwright.tools.autofix.nearest_plan import Attempt, Replanned, Work
from shardwright.tools.autofix.replan import replan
from shardwright.tools.autofix.result import Infeasible
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import Strategy
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.examples import apply, base_plan
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.validate import validate

from ..examples import examples
from ..rules.corruptions import Corruption, corruptions
from .brute_force import valid_strategies
from .corrupted import some_of_each_rule
from .settings import any_strategies, only_strategy

RELAXED = ("attention_dp", "tp_expert", "kv_sp")
# Rules whose bad plans may have no legal plan at all on their hardware, or name something unknown.
_MAY_HAVE_NONE = frozenset({"ME001", "PE010"})
REPLANNED = [row for row in corruptions("") if find_rule(row.rule).fix == "re-plan" and row.rule in row.expected]
# Of these, rows whose answer (how much hardware would do) takes long to compute and tests nothing new.
_ALIKE = frozenset(
    {"a cache that does not fit", "a first token too late", "tokens too few", "tokens too slow", "requests too many"}
)
SURE = [row for row in REPLANNED if row.rule not in _MAY_HAVE_NONE]
NONE_EXISTS = [row for row in REPLANNED if row.rule in _MAY_HAVE_NONE and row.name not in _ALIKE]
# Share of memory, concurrent requests and limit with which all, many, some, few or no strategies of two GPUs fit.
TINY = {
    "room for all": ("dense-1", 0.9, 4, None),
    "room for few": ("dense-1", 0.0075, 4, None),
    "room for some": ("dense-1", 0.006, 1, None),
    "room for none": ("dense-1", 0.001, 1, None),
    "too many requests": ("dense-1", 0.012, 64, None),
    "experts": ("moe-1", 0.9, 4, None),
    "experts, little room": ("moe-1", 0.006, 1, None),
    "a limit that some hold": ("dense-1", 0.9, 4, 55.0),
    "a limit that none holds": ("dense-1", 0.9, 4, 1.0),
}


def replanned(document: dict[str, Any]) -> Replanned | Infeasible:
    """The outcome of re-planning a document."""
    view = PlanView(document)
    return replan(read_intent(view), view)


def _tiny(name: str) -> dict[str, Any]:
    base, share, concurrency, limit = TINY[name]
    document = only_strategy(base)
    document["hardware"].update(nodes=1, gpus_per_node=2)
    document["policy"]["memory_utilization"] = share
    document["workload"].update(concurrency=concurrency, **({} if limit is None else {"ttft_ms_max": limit}))
    return document


@cache
def _enumerated(name: str) -> tuple[PlanIntent, list[Strategy]]:
    intent = read_intent(PlanView(_tiny(name)))
    return intent, valid_strategies(intent)


@pytest.mark.thorough
@pytest.mark.parametrize("row", SURE, ids=str)
def test_every_corruption_that_asks_for_a_re_plan_ends_valid_with_its_distance_stated(row: Corruption) -> None:
    document = apply(row.example)
    outcome = replanned(document)
    assert isinstance(outcome, Replanned)
    assert validate(outcome.built.document).valid
    assert (outcome.replanning.distance == 0) == (not outcome.replanning.moves)
    view = PlanView(document)
    for block in ("model", "hardware", "workload", "precision"):
        assert outcome.built.document[block] == view.raw[block]
    # Relaxations are those that the author allows and those that the engine applies by itself, no others.
    assert set(outcome.built.document["policy"]["relaxations"]) == view.relaxations
    assert outcome.built.document["policy"]["memory_utilization"] == view.raw["policy"]["memory_utilization"]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("row", some_of_each_rule(SURE, 1), ids=str)
def test_a_re_planned_plan_is_its_own_nearest(row: Corruption) -> None:
    outcome = replanned(apply(row.example))
    assert isinstance(outcome, Replanned)
    again = replanned(outcome.built.document)
    assert isinstance(again, Replanned)
    assert again.replanning.distance == 0
    assert again.replanning.after.model_dump() == outcome.replanning.after.model_dump()


@pytest.mark.thorough
@pytest.mark.parametrize("row", NONE_EXISTS, ids=str)
def test_where_no_plan_exists_the_rule_is_named_and_closer_plans_are_valid(row: Corruption) -> None:
    outcome = replanned(apply(row.example))
    assert isinstance(outcome, Infeasible)
    assert outcome.rule in (row.rule, "ST001")
    assert outcome.reason
    for closest in outcome.closest:
        assert closest.change
        assert validate(closest.plan).valid


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TINY)
def test_small_settings_have_the_legal_strategies_that_their_names_say(name: str) -> None:
    _, legal = _enumerated(name)
    assert (not legal) == ("none" in name or "too many" in name)


@pytest.mark.thorough
@examples(60)
@given(st.sampled_from(sorted(TINY)), any_strategies())
def test_any_strategy_on_two_gpus_becomes_the_nearest_of_all_that_are_legal(name: str, author: Strategy) -> None:
    intent, legal = _enumerated(name)
    nearest = Attempt(replace(intent, strategy=author), PlanView(_tiny(name)), Work()).nearest_plan()
    assert (nearest is None) == (not legal)
    if nearest is None:
        return
    assert validate(nearest.built.document).valid
    has_ffn = intent.architecture is not None and intent.architecture.has_split_ffn
    least = min(distance(author, strategy, has_ffn=has_ffn) for strategy in legal)
    # Cuts of the stages and exchanges of sequence shards are not enumerated: they can only be nearer.
    assert nearest.replanning.distance <= least + 1e-9
    assert nearest.replanning.is_nearest


@given(any_strategies(), any_strategies(), any_strategies())
def test_the_distance_is_a_metric(first: Strategy, second: Strategy, third: Strategy) -> None:
    for has_ffn in (True, False):
        there = distance(first, second, has_ffn=has_ffn)
        assert distance(first, first, has_ffn=has_ffn) == 0
        assert there == pytest.approx(distance(second, first, has_ffn=has_ffn))
        beyond = distance(second, third, has_ffn=has_ffn)
        assert distance(first, third, has_ffn=has_ffn) <= there + beyond + 1e-9


@given(any_strategies(), any_strategies())
def test_strategies_without_distance_say_the_same(first: Strategy, second: Strategy) -> None:
    if distance(first, second) == 0:
        bare = [
            strategy.model_dump(exclude={side: {"sp_kind", "replicas"} for side in ("prefill", "decode")})
            for strategy in (first, second)
        ]
        assert bare[0] == bare[1]


def test_no_relaxation_is_used_that_the_policy_does_not_name() -> None:
    document = base_plan("relaxed-attention-dp2-ep4")
    document["policy"]["relaxations"] = []
    outcome = replanned(document)
    assert isinstance(outcome, Replanned)
    assert outcome.built.document["policy"]["relaxations"] == []
    for phase in (outcome.replanning.after.prefill, outcome.replanning.after.decode):
        assert [getattr(phase, name) or 1 for name in RELAXED] == [1, 1, 1]


def _with_constraints(name: str, *constraints: dict[str, Any]) -> Replanned | Infeasible:
    document = only_strategy(name)
    document["policy"]["constraints"] = [{"words": "as asked", **constraint} for constraint in constraints]
    return replanned(document)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("constraint", "after"),
    [
        ({"kind": "degree", "value": {"name": "pp", "relation": "forbidden"}}, {"dp": 3, "pp": 1}),
        ({"kind": "replicas", "value": 5}, {"dp": 5, "pp": 1}),
        ({"kind": "reserved_gpus", "value": 6}, {"dp": 1, "pp": 2}),
        ({"kind": "degree", "value": {"name": "tp", "relation": "=", "degree": 2}}, {"tp": 2, "pp": 3}),
    ],
    ids=lambda value: value.get("kind", ""),
)
def test_the_nearest_that_keeps_a_constraint_is_found(constraint: dict[str, Any], after: dict[str, int]) -> None:
    outcome = _with_constraints("dense-pp3", constraint)
    assert isinstance(outcome, Replanned) and outcome.replanning.is_nearest
    strategy = outcome.replanning.after
    assert {"dp": strategy.dp, "pp": strategy.prefill.pp, "tp": strategy.prefill.tp}.items() >= after.items()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "constraints",
    [
        [{"kind": "replicas", "value": 9}],
        [{"kind": "degree", "value": {"name": "pp", "relation": "=", "degree": 9}}],
        [
            {"kind": "degree", "value": {"name": "tp", "relation": "=", "degree": 4}},
            {"kind": "degree", "value": {"name": "pp", "relation": "=", "degree": 4}},
        ],
    ],
)
def test_constraints_that_no_strategy_keeps_are_named(constraints: list[dict[str, Any]]) -> None:
    outcome = _with_constraints("dense-pp3", *constraints)
    assert isinstance(outcome, Infeasible) and outcome.rule == "CO008"


def test_degrees_that_were_legal_stay() -> None:
    document = only_strategy("dense-pp2-tp2")
    document["strategy"]["prefill"]["tp_ffn"] = document["strategy"]["decode"]["tp_ffn"] = 3
    outcome = replanned(document)
    assert isinstance(outcome, Replanned)
    changed = moves(outcome.replanning.before, outcome.replanning.after)
    assert outcome.replanning.distance == pytest.approx(sum(move.cost for move in changed))
    assert {move.what.partition(".")[2] for move in changed if "." in move.what} <= {"tp_ffn", "replicas"}
    assert (outcome.replanning.after.prefill.pp, outcome.replanning.after.prefill.tp) == (2, 2)


def test_device_order_and_ids_stay_where_only_the_ffn_changes() -> None:
    document = base_plan("dense-tp4")
    order = {f"n0.g{place}": f"n0.g{other}" for place, other in enumerate((6, 2, 5, 3))}
    for node in document["nodes"]:
        node["id"] = f"mine/{node['id']}"
        node["parent"] = None if node["parent"] is None else f"mine/{node['parent']}"
        if "devices" in node:
            node["devices"] = [order[device] for device in node["devices"]]
    for edge in document["edges"]:
        edge.update(source=f"mine/{edge['source']}", target=f"mine/{edge['target']}")
    # A width that four shards cannot divide.
    document["model"]["config"]["intermediate_size"] = 1026
    outcome = replanned(document)
    assert isinstance(outcome, Replanned)
    assert (outcome.replanning.after.prefill.tp, outcome.replanning.after.prefill.tp_ffn) == (4, 2)
    shards = {node["id"]: node["devices"] for node in outcome.built.document["nodes"] if node["type"] == "ShardNode"}
    author_shards = {node["id"]: node["devices"] for node in document["nodes"] if node["type"] == "ShardNode"}
    attention = [name for name in author_shards if ".attn." in name]
    assert attention
    assert all(shards[name] == author_shards[name] for name in attention)
    assert all(node["id"].startswith("mine/") for node in outcome.built.document["nodes"])


def test_fewer_devices_than_decided_give_the_nearest_that_fits() -> None:
    document = base_plan("dense-dp2-tp2")
    document["hardware"]["gpus_per_node"] = 2
    legal = replanned(document)
    assert isinstance(legal, Replanned)
    assert (legal.replanning.after.dp, legal.replanning.after.prefill.tp, legal.replanning.after.gpu_count) == (1, 2, 2)


def test_stage_cuts_stay_where_another_degree_must_change() -> None:
    document = base_plan("dense-pp3-uneven")
    document["strategy"]["prefill"]["tp"] = document["strategy"]["decode"]["tp"] = 3
    document = {key: value for key, value in document.items() if key not in ("nodes", "edges")}
    outcome = replanned(document)
    assert isinstance(outcome, Replanned)
    assert outcome.replanning.after.prefill.stage_layers == outcome.replanning.after.decode.stage_layers == (2, 3, 3)


def test_more_weights_than_memory_says_by_how_much_and_how_much_hardware_would_do() -> None:
    document = only_strategy("moe-ep4")
    document["model"]["config"].update(num_hidden_layers=8, moe_intermediate_size=262144, num_experts=64)
    document["hardware"].update(nodes=1, gpus_per_node=2)
    outcome = replanned(document)
    assert isinstance(outcome, Infeasible)
    assert outcome.rule == "ME001"
    assert outcome.shortfall_bytes is not None
    assert outcome.shortfall_bytes > 0
    assert outcome.needs is not None
    assert outcome.needs.gpus is not None
    assert outcome.needs.gpus > 2
    assert any(closest.plan.hardware.nodes * closest.plan.hardware.gpus_per_node > 2 for closest in outcome.closest)


# A load that is too much for two GPUs, and the changes that the closest plans make.
_TOO_MUCH = [
    (
        {"concurrency": 1500},
        ("requests in flight instead of 1,500", "input tokens instead of 16,384", "KV cache in fp8"),
    ),
    ({"concurrency": 8000, "input_tokens": 3000, "output_tokens": 3000, "tpot_ms_max": 6.0}, ("requests in flight",)),
    ({"input_tokens": 60_000, "ttft_ms_max": 150.0}, ("limits lifted", "input tokens instead of 60,000")),
    ({"input_tokens": 60_000, "end_to_end_ms_max": 200.0}, ("limits lifted", "input tokens instead of 60,000")),
    ({"input_tokens": 65_530}, ("65,472 input tokens instead of 65,530",)),
    ({"input_tokens": 10, "output_tokens": 80_000}, ("65,527 output tokens",)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("asked", "offered"), _TOO_MUCH, ids=str)
def test_the_closest_plans_ask_for_less_of_one_thing(asked: dict[str, Any], offered: tuple[str, ...]) -> None:
    document = only_strategy("dense-tp2")
    document["hardware"].update(nodes=1, gpus_per_node=2)
    document["workload"].update(asked)
    outcome = replanned(document)
    assert isinstance(outcome, Infeasible)
    changes = [closest.change for closest in outcome.closest]
    assert all(any(words in change for change in changes) for words in offered), changes
    for closest in outcome.closest:
        assert validate(closest.plan).valid
        plan = closest.plan.model_dump(mode="json")
        changed = {name for name in ("workload", "precision", "hardware") if plan[name] != document[name]}
        assert len(changed) == 1, closest.change


def test_what_nobody_says_is_named_not_guessed() -> None:
    document = only_strategy("dense-tp2")
    del document["model"]
    outcome = replanned(document)
    assert isinstance(outcome, Infeasible)
    assert "model" in outcome.reason


def test_where_rules_refuse_every_strategy_the_rule_is_named_and_no_memory() -> None:
    document = base_plan("dense-tp2")
    document["serving"] = {"engine": "trtllm", "overlap": "two_batch"}
    outcome = replanned(document)
    assert isinstance(outcome, Infeasible)
    assert (outcome.rule, outcome.shortfall_bytes, outcome.needs) == ("EN015", None, None)
    assert [closest.change for closest in outcome.closest] == ["no serving.overlap stated"]


@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
def test_a_device_is_moved_to_a_free_one_before_a_degree_is_changed(engine: str) -> None:
    document = base_plan("dense-tp4")
    document["hardware"]["nodes"] = 2
    document["serving"] = {"engine": engine}
    astray = json.loads(json.dumps(document).replace("n0.g3", "n1.g0"))
    assert not validate(astray).valid
    mended = autofix(astray)
    assert mended.valid and mended.replanned is None and mended.strategy_changes == ()
    assert content_hash(mended.document or {}) == content_hash(document)


def test_faults_that_have_nothing_to_do_with_too_little_hardware_are_mended_all_the_same() -> None:
    document = base_plan("dense-dp2-tp2")
    document["hardware"].update(nodes=1, gpus_per_node=2)
    document["policy"]["memory_utilization"] = 0.001
    document = json.loads(json.dumps(document).replace("n0.g2", "n1.g0").replace("n0.g3", "n1.g1"))
    lacking = {finding.rule for finding in validate(document).violations}
    broken = {**document, "edges": document["edges"][:3] + document["edges"][4:]}
    broken["strategy"] = {**document["strategy"], "gpu_count": 7}
    mended = autofix(broken)
    assert mended.infeasible is not None and mended.fixes
    assert {finding.rule for finding in mended.remaining} == lacking < {v.rule for v in validate(broken).violations}
    assert mended.document is not None and mended.document["hardware"] == document["hardware"]


def test_a_shortfall_that_is_none_is_not_stated() -> None:
    document = only_strategy("dense-tp2")
    document["hardware"].update(nodes=1, gpus_per_node=2)
    document["workload"]["concurrency"] = 1500
    outcome = replanned(document)
    assert isinstance(outcome, Infeasible) and outcome.rule == "ME001"
    assert outcome.shortfall_bytes != 0
