"""The builder is correct by construction over the whole closed set of combinations."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from shardwright.tools.errors import InputError
from shardwright.tools.performance.execution import expand_plan
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import PhaseStrategy, Plan
from shardwright.tools.validate import validate

from .tiny import MLA, MODELS, MOE, tiny_plan

# Every subset of {TP, SP, PP, EP}, also the empty one (R5). A MoE operator puts an expert group on every device of its
# stage (R4): there is EP exactly where a MoE stage has several devices.
SUBSETS = [frozenset(s) for n in range(5) for s in itertools.combinations(("tp", "sp", "pp", "ep"), n)]


def _legal(subset: frozenset[str], kind: str) -> bool:
    if kind == "dense":
        return "ep" not in subset
    return ("ep" in subset) == bool(subset & {"tp", "sp", "ep"})


def _degrees(subset: frozenset[str], kind: str) -> PhaseStrategy:
    tp, sp = (2 if "tp" in subset else 1), (2 if "sp" in subset else 1)
    pp = 2 if "pp" in subset else 1
    stage = max(tp * sp, 2 if "ep" in subset else 1)
    return PhaseStrategy(
        pp=pp,
        sp=sp,
        tp=tp,
        ep=stage if kind != "dense" else 1,
        tp_ffn=(tp if kind != "moe" else 1),
    )


CASES = [
    pytest.param(kind, subset, id=f"{kind}-{'x'.join(sorted(subset)) or 'none'}")
    for kind in MODELS
    for subset in SUBSETS
    if _legal(subset, kind)
]


def scrambled(plan: Plan, seed: int) -> dict[str, Any]:
    """The same plan with nodes and edges shuffled and every id replaced by random Unicode."""
    chance = random.Random(seed)
    document = plan.model_dump(mode="json")
    names = {node["id"]: "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(6)) + str(i)
             for i, node in enumerate(document["nodes"])}  # fmt: skip
    for node in document["nodes"]:
        node["id"] = names[node["id"]]
        if node["parent"] is not None:
            node["parent"] = names[node["parent"]]
    for edge in document["edges"]:
        edge["source"], edge["target"] = names[edge["source"]], names[edge["target"]]
    chance.shuffle(document["nodes"])
    chance.shuffle(document["edges"])
    return document


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("kind", "subset"), CASES)
@pytest.mark.parametrize("dp", [1, 2])
def test_every_legal_combination_is_built_valid_and_keeps_its_hash_under_renaming(
    kind: str, subset: frozenset[str], dp: int
) -> None:
    plan = tiny_plan(MODELS[kind], _degrees(subset, kind), dp=dp)
    report = validate(plan)
    assert report.violations == () or all(v.severity == "warning" for v in report.violations), report.violations
    shuffled = scrambled(plan, seed=dp)
    assert validate(shuffled).errors == 0
    assert content_hash(shuffled) == content_hash(plan)


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_prefill_and_decode_may_have_strategies_of_their_own(kind: str) -> None:
    ep = 4 if kind != "dense" else 1
    ffn = 1 if kind == "moe" else 4
    plan = tiny_plan(
        MODELS[kind],
        PhaseStrategy(pp=2, sp=2, tp=1, tp_ffn=1 if kind == "moe" else 2, ep=2 if kind != "dense" else 1),
        PhaseStrategy(pp=1, tp=4, tp_ffn=ffn, ep=ep),
    )
    assert validate(plan).errors == 0


def test_disaggregated_prefill_feeds_every_decode_replica() -> None:
    phase = PhaseStrategy(pp=1, tp=2, tp_ffn=2, ep=2)
    prefill, decode = phase.model_copy(update={"replicas": 2}), phase.model_copy(update={"replicas": 3})
    plan = tiny_plan(MLA, prefill, decode, dp=5)
    assert validate(plan).errors == 0
    feeding = [edge for edge in plan.edges if edge.carries == "kv_cache" and edge.target.endswith("attn")]
    blocks = 2  # two dense layers, then the MoE layers
    assert len(feeding) == 2 * 3 * blocks


@pytest.mark.parametrize(
    ("config", "degrees", "relaxation"),
    [
        (MLA, PhaseStrategy(tp=2, ep=8, tp_ffn=2, attention_dp=4), "attention_dp"),
        (MLA, PhaseStrategy(tp=1, ep=8, tp_ffn=8, attention_dp=8), "attention_dp"),
        (MOE, PhaseStrategy(tp=4, ep=2, tp_expert=2), "tp_in_expert"),
        (MOE, PhaseStrategy(tp=4, ep=1, tp_expert=4), "tp_in_expert"),
        (MODELS["dense"], PhaseStrategy(tp=4, tp_ffn=4), "vocab_parallel"),
    ],
)
def test_relaxed_forms_are_valid_under_their_relaxation_only(
    config: dict[str, Any], degrees: PhaseStrategy, relaxation: str
) -> None:
    relaxed = tiny_plan(config, degrees, degrees, relaxations=(relaxation,))
    assert validate(relaxed).errors == 0, validate(relaxed).violations
    strict = relaxed.model_dump(mode="json")
    strict["policy"]["relaxations"] = []
    assert validate(strict).errors > 0


@pytest.mark.parametrize(("groups", "tp", "shards"), [(4, 2, 8), (8, 1, 0)])
def test_each_attention_group_cuts_the_vocabulary_over_its_own_devices(groups: int, tp: int, shards: int) -> None:
    degrees = PhaseStrategy(tp=tp, ep=8, tp_ffn=tp, attention_dp=groups)
    plan = tiny_plan(MLA, degrees, degrees, relaxations=("attention_dp", "vocab_parallel"))
    assert validate(plan).errors == 0
    heads = [node.id for node in plan.nodes if node.type == "LMHeadNode"]
    assert sum(node.type == "ShardNode" and node.parent == heads[0] for node in plan.nodes) == shards
    gathers = [node.devices for node in expand_plan(plan, "decode").nodes if ".head.close" in node.id]
    assert {len(devices or ()) for devices in gathers} == ({tp} if tp > 1 else set())


def test_an_inventory_that_is_too_small_is_named() -> None:
    with pytest.raises(ValueError, match="needs 16 devices, the hardware has 8"):
        tiny_plan(MODELS["dense"], PhaseStrategy(pp=4, tp=4, tp_ffn=4), nodes=1)


@pytest.mark.thorough
def test_a_plan_that_no_document_holds_is_refused_while_it_is_built() -> None:
    prefill, decode = PhaseStrategy(replicas=700), PhaseStrategy(replicas=700)
    with pytest.raises(InputError, match="more than 400,000 edges, the most that a document holds"):
        tiny_plan(MODELS["dense"], prefill, decode, dp=1400, nodes=175)
