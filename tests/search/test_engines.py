"""A search for a named engine proposes only what the engine has settings for: space and rules agree."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.engines.names import EngineName as Engine
from shardwright.tools.errors import InputError
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import StageMaker, is_disaggregated, place
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.search.space import SpaceRequest

from ..plan.tiny import DENSE, MLA, MOE
from ..spaces import strategies

pytestmark = pytest.mark.thorough

SHARED = {**MOE, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 512}
ODD = {**MOE, "num_experts": 18, "num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 1000}
CONFIGS = {"dense": DENSE, "moe": MOE, "mla": MLA, "shared": SHARED, "odd": ODD}
ENGINES: tuple[Engine | None, ...] = (*JUDGED, None)
RULES = [rule for rule in all_rules() if rule.id.startswith("EN")]


MOST = 150


def errors(config: dict[str, Any], engine: Engine | None, searched_for: Engine | None) -> tuple[int, set[str]]:
    """How many strategies of the space for `searched_for` were tried, and the rules of `engine` that they break."""
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=1, gpus_per_node=12)
    request = SpaceRequest(
        architecture=read_architecture(config),
        nodes=1,
        gpus_per_node=12,
        input_tokens=16384,
        relaxations=frozenset({"attention_dp"}),
        engine=searched_for,
    )
    broken: set[str] = set()
    count = 0
    # Replicas are alike: a single one shows all.
    single = [strategy for strategy in strategies(request) if strategy.dp == 1]
    for strategy in Random(5).sample(single, min(len(single), MOST)):
        count += 1
        plan = build_plan(
            BuildRequest(
                model=ModelBlock(name="tiny", config=config),
                hardware=hardware,
                workload=WorkloadBlock(input_tokens=16384, output_tokens=64),
                precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
                strategy=strategy,
                policy=PolicyBlock(relaxations=("attention_dp",)),
                serving=ServingBlock(engine=engine),
            )
        )
        view = PlanView(plan.model_dump(mode="json"))
        broken |= {violation.rule for rule in RULES for violation in rule.run(view) if violation.severity == "error"}
    return count, broken


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_no_strategy_of_the_space_breaks_a_rule_of_the_named_engine(kind: str, engine: Engine | None) -> None:
    count, broken = errors(CONFIGS[kind], engine, engine)
    assert count > 0
    assert broken == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_replicas_have_as_many_devices_on_each_node_where_an_engine_is_named(engine: Engine | None) -> None:
    architecture = read_architecture(DENSE)
    uneven = False
    for strategy in strategies(SpaceRequest(architecture, 3, 4, 1024, engine=engine)):
        layout = place(strategy, StageMaker(architecture), nodes=3, gpus_per_node=4)
        assert layout is not None
        for replica in layout.replicas:
            for phase in replica.phases:
                nodes = Counter(device.partition(".")[0] for device in phase.devices)
                uneven |= len(set(nodes.values())) > 1
    assert uneven is (engine is None)


SIDES = [
    ("sglang", "0.4.8", {("prefill", 1), ("decode", 1)}),
    ("sglang", "0.5.6", {("prefill", 1), ("prefill", 2), ("decode", 1)}),
    ("sglang", "0.5.7", {("prefill", 1), ("prefill", 2), ("decode", 1), ("decode", 2)}),
    ("vllm", "0.33.0", {("prefill", 1), ("prefill", 2), ("decode", 1)}),
]


@pytest.mark.parametrize(("engine", "version", "pipelines"), SIDES)
def test_a_side_is_a_pipeline_where_the_version_of_the_engine_runs_it(
    engine: Engine, version: str, pipelines: set[tuple[str, int]]
) -> None:
    request = SpaceRequest(
        read_architecture(DENSE), 1, 4, 1024, disaggregated=True, engine=engine, engine_version=version
    )
    degrees = [
        (phase, getattr(strategy, phase).pp) for strategy in strategies(request) for phase in ("prefill", "decode")
    ]
    assert {(phase, min(stages, 2)) for phase, stages in degrees} == pipelines


@pytest.mark.parametrize(("engine", "makes_copies"), [("sglang", True), ("trtllm", False)])
def test_copies_of_experts_fill_up_groups_that_experts_do_not_divide_into(engine: Engine, makes_copies: bool) -> None:
    """18 experts on 4 devices: none without copies, 20 slots with them, where the engine can be told so."""
    for relaxations, is_there in ((frozenset[str](), False), (frozenset({"redundant_experts"}), makes_copies)):
        request = SpaceRequest(read_architecture(ODD), 1, 4, 1024, relaxations, engine=engine)
        assert (4 in {strategy.decode.ep for strategy in strategies(request)}) is is_there


def test_a_named_engine_cuts_the_weights_of_attention_once() -> None:
    """Sequence ranks hold whole weights, which a decode with more tensor ranks would have to cut again."""
    for engine, alike in (("sglang", True), (None, False)):
        request = SpaceRequest(read_architecture(MOE), 1, 4, 16384, disaggregated=False, engine=engine)
        pairs = {
            (strategy.prefill.sp > 1, strategy.prefill.tp == strategy.decode.tp) for strategy in strategies(request)
        }
        assert ((True, False) not in pairs) is alike


def test_a_space_that_knows_no_engine_has_strategies_that_engines_refuse() -> None:
    """Without this the test above could pass by rules that never fire."""
    assert "EN008" in errors(DENSE, "vllm", None)[1]
    assert {"EN003", "EN005", "EN009"} <= errors(SHARED, "sglang", None)[1] | errors(ODD, "sglang", None)[1]
    assert "EN006" in errors(MLA, "trtllm", None)[1]
    assert "EN011" in errors(ODD, "vllm", None)[1]


def test_phases_are_not_put_apart_unasked_where_the_release_cannot_hand_caches_over() -> None:
    words = "Qwen3-32B on 4x H100 NVL, 1500/250, 40 users, with vLLM {}"
    for version, may_be_apart in (("0.6.3", False), ("0.33.0", True)):
        chosen = plan(words.format(version)).plan
        assert chosen is not None and is_disaggregated(chosen.strategy) is may_be_apart
    with pytest.raises(InputError, match=r"vLLM 0\.6\.3 has no --kv-transfer-config \(from 0\.6\.5\)"):
        plan(f"{words.format('0.6.3')}, prefill and decode apart")
