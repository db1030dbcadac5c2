"""The intent of a proposal is read from its content: a whole plan, an incomplete or damaged one, or any JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.intent import PlanDefaults, PlanIntent, read_intent
from shardwright.tools.plan.document import HardwareBlock, ModelBlock, Plan, WorkloadBlock
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.validate import validate

from ..examples import examples
from ..rules.corruptions import Corruption, corruptions, damaged_plans, foreign_plans
from .references import reference_plan
from .settings import below, only_strategy, without, without_types

every_base = pytest.mark.parametrize("name", base_names())
# Plans whose replicas serve both phases with the same degrees, and those of them with several replicas.
ALIKE = [
    name
    for name in base_names()
    if base_plan(name)["strategy"]["prefill"] == base_plan(name)["strategy"]["decode"]
    and not base_plan(name)["strategy"]["prefill"].get("replicas")
]
SEVERAL = [name for name in ALIKE if base_plan(name)["strategy"]["dp"] > 1]
LOCAL = [row for row in corruptions("") if find_rule(row.rule).fix == "local" and row.rule in row.expected]
# Rows that local repair rewrites first (text for a number), or that leave no number, or no consistent ones, to read.
UNREAD = frozenset({"a number as text", "a negative number of tokens", "lengths with another mean than the stated one"})
# Rows whose declaration is a legal strategy other than their base's.
RESTATED = frozenset(
    {
        "cache shards that nothing merges",
        "an FFN that does not reach the devices of the next attention",
        "a shared expert on a device that nothing else uses",
        "another exchange of sequence shards",
        "the relaxation is not named",
    }
)
# More devices than experts: the rule asks for a re-plan itself.
ILLEGAL = frozenset({"more devices than experts"})


def intent_of(document: Any) -> PlanIntent:
    """The intent of a document."""
    return read_intent(PlanView(document))


def reference_of(document: Any) -> dict[str, Any]:
    """The reference plan of a document, as JSON."""
    plan = reference_plan(intent_of(document))
    assert plan is not None
    return plan.model_dump(mode="json")


@pytest.mark.one_in(3)
@every_base
def test_the_reference_of_a_whole_plan_is_that_plan(name: str) -> None:
    assert reference_of(base_plan(name)) == base_plan(name)


@pytest.mark.one_in(3)
@every_base
def test_a_strategy_alone_says_the_whole_plan(name: str) -> None:
    wanted, reference = base_plan(name), reference_of(only_strategy(name))
    assert reference["strategy"] == wanted["strategy"]
    if "redundant" not in name:
        assert reference["nodes"] == wanted["nodes"]


@pytest.mark.one_in(3)
@every_base
def test_a_graph_alone_says_the_whole_strategy(name: str) -> None:
    document = base_plan(name)
    wanted = document.pop("strategy")
    assert intent_of(document).strategy is not None
    assert reference_of(document)["strategy"] == wanted


@pytest.mark.one_in(3)
@every_base
def test_stages_without_operators_are_filled(name: str) -> None:
    wanted = base_plan(name)
    document = without_types(base_plan(name), "LayerBlockNode", "EmbeddingNode", "LMHeadNode")
    assert reference_of(document)["strategy"] == wanted["strategy"]


@pytest.mark.one_in(3)
@every_base
def test_operators_without_collectives_keep_their_degrees_and_devices(name: str) -> None:
    wanted = base_plan(name)
    document = without_types(base_plan(name), "AllReduceNode", "AllGatherNode", "AllToAllNode", "ReduceScatterNode")
    assert reference_of(document)["nodes"] == wanted["nodes"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SEVERAL)
def test_one_replica_of_several_stands_for_all(name: str) -> None:
    wanted = base_plan(name)
    replicas = [node["id"] for node in wanted["nodes"] if node["type"] == "ReplicaNode"]
    document = without(base_plan(name), below(wanted, replicas[-1]))
    assert reference_of(document)["strategy"] == wanted["strategy"]
    assert reference_of(document)["nodes"] == wanted["nodes"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ALIKE)
def test_prefill_alone_stands_for_both_phases(name: str) -> None:
    wanted = base_plan(name)
    decodes = [node["id"] for node in wanted["nodes"] if node.get("phase") == "decode"]
    document = without(base_plan(name), set().union(*(below(wanted, name) for name in decodes)))
    del document["strategy"]["decode"]
    assert reference_of(document)["nodes"] == wanted["nodes"]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("row", [row for row in LOCAL if row.name not in UNREAD | ILLEGAL], ids=str)
def test_one_fault_that_is_mended_in_place_leaves_the_strategy_readable(row: Corruption) -> None:
    strategy = intent_of(apply(row.example)).strategy
    assert strategy is not None
    if row.name not in RESTATED:
        assert strategy.model_dump(mode="json") == base_plan(row.example.base)["strategy"]
    plan = reference_plan(intent_of(apply(row.example)))
    assert plan is not None
    assert validate(plan).valid


@examples(30)
@given(foreign_plans())
def test_style_and_names_say_nothing_of_the_strategy(document: dict[str, Any]) -> None:
    strategy = intent_of(document).strategy
    assert strategy is not None
    assert strategy.model_dump(mode="json") == document["strategy"]


@examples(80)
@given(damaged_plans())
def test_no_damage_raises_and_a_reference_is_a_plan_or_nothing(document: dict[str, Any]) -> None:
    intent = intent_of(document)
    plan = reference_plan(intent)
    assert plan is None or isinstance(plan, Plan)
    assert not (intent.missing and plan is not None)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**9) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@examples(100)
@given(st.dictionaries(st.sampled_from(sorted(base_plan("dense-1"))), _ANY))
def test_any_json_has_an_intent_that_says_what_is_missing(document: dict[str, Any]) -> None:
    intent = intent_of(document)
    assert intent.missing
    assert reference_plan(intent) is None


@pytest.mark.parametrize("degree", ["tp", "tp_ffn"])
def test_a_declaration_that_collectives_and_caches_bear_out_wins_against_a_lost_shard(degree: str) -> None:
    document = base_plan("dense-tp4")
    operator = "attn" if degree == "tp" else "ffn"
    document = without(document, {f"r0.prefill.s0.b0.{operator}.tp3"})
    strategy = intent_of(document).strategy
    assert strategy is not None
    assert getattr(strategy.prefill, degree) == 4


@pytest.mark.parametrize(
    ("phase", "rank"), [("prefill", "dp"), ("decode", "dp"), ("decode", "sp"), ("prefill", "kv_sp")]
)
def test_shards_whose_ranks_have_a_barred_name_keep_the_strategy_also_where_one_is_lost(phase: str, rank: str) -> None:
    document = base_plan("dense-tp4")
    for node in document["nodes"]:
        if node["parent"] == f"r0.{phase}.s0.b0.attn" and node["type"] == "ShardNode":
            node["rank"] = {rank: node["rank"]["tp"]}
    document = without(document, {f"r0.{phase}.s0.b0.attn.tp3"})
    assert reference_of(document) == base_plan("dense-tp4")


def test_a_graph_that_is_whole_wins_against_the_declaration() -> None:
    document = base_plan("dense-tp4")
    document["strategy"]["decode"].update(tp=8, tp_ffn=8)
    strategy = intent_of(document).strategy
    assert strategy is not None
    assert (strategy.decode.tp, strategy.decode.tp_ffn) == (4, 4)


def test_a_shared_expert_that_is_whole_on_each_attention_group_wins_against_the_declaration() -> None:
    degrees = {"tp": 1, "tp_ffn": 1, "ep": 4, "attention_dp": 4}
    asked = only_strategy("moe-shared-tp2-ep4") | {"strategy": {"prefill": degrees, "decode": degrees}}
    document = reference_of(asked | {"policy": {"relaxations": ["attention_dp"]}})
    document["strategy"]["decode"]["tp_ffn"] = 2
    strategy = intent_of(document).strategy
    assert strategy is not None
    assert strategy.decode.tp_ffn == 1


def test_degrees_that_are_left_out_are_what_an_engine_would_take_and_noted() -> None:
    document = only_strategy("moe-shared-tp4-ep4")
    document["strategy"] = {"prefill": {"tp": 4}}
    intent = intent_of(document)
    assert intent.strategy is not None
    assert (intent.strategy.dp, intent.strategy.prefill.ep, intent.strategy.prefill.tp_ffn) == (1, 4, 4)
    assert intent.strategy.decode == intent.strategy.prefill
    noted = {words.partition(" is ")[0] for words in intent.completed}
    assert {"strategy.prefill.ep", "strategy.prefill.tp_ffn", "strategy.decode"} <= noted


def test_defaults_stand_in_for_what_is_left_out_and_for_nothing_else() -> None:
    document = only_strategy("dense-tp2")
    complete = dict(document)
    del document["model"], document["workload"]["input_tokens"], document["hardware"]
    defaults = PlanDefaults(
        model=ModelBlock.model_validate(complete["model"]),
        hardware=HardwareBlock(accelerator="h200-sxm", nodes=2, gpus_per_node=4),
        workload=WorkloadBlock(input_tokens=123, output_tokens=999),
    )
    intent = read_intent(PlanView(document), defaults)
    assert not intent.missing
    assert intent.hardware == defaults.hardware
    assert intent.workload is not None
    assert (intent.workload.input_tokens, intent.workload.output_tokens) == (123, 64)


def test_a_catalogue_name_is_enough_for_a_model() -> None:
    document = only_strategy("dense-tp2")
    document["model"] = {"name": "Llama-3.1-8B"}
    plan = reference_plan(intent_of(document))
    assert plan is not None
    assert plan.model.config["num_hidden_layers"] == 32
    assert validate(plan).valid


def test_hardware_without_a_size_is_as_large_as_the_graph_needs() -> None:
    document = base_plan("dense-dp2-tp2")
    document["hardware"] = {"accelerator": "h100-sxm"}
    hardware = intent_of(document).hardware
    assert hardware is not None
    assert hardware.nodes * hardware.gpus_per_node >= 4
    assert reference_of(document)["nodes"] == base_plan("dense-dp2-tp2")["nodes"]


def test_stages_keep_their_devices_in_the_order_of_their_ranks() -> None:
    document = base_plan("dense-pp2-tp2")
    order = {"n0.g0": "n0.g7", "n0.g1": "n0.g4", "n0.g2": "n0.g1", "n0.g3": "n0.g5"}
    for node in document["nodes"]:
        if "devices" in node:
            node["devices"] = [order[device] for device in node["devices"]]
    assert reference_of(document)["nodes"] == document["nodes"]


def test_a_config_that_cannot_be_read_is_told_once() -> None:
    document = base_plan("dense-1")
    document["model"]["name"] = "Llama-3.1-8B"
    document["model"]["config"]["num_hidden_layers"] = "48"
    (lacking,) = [words for words in read_intent(PlanView(document)).missing if words.startswith("model.config")]
    assert lacking.count("'48'") == 1
