"""A plan for a named engine is one that the engine has settings for: the space and the rules say the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    WorkloadBlock,
)
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.engines import Engine
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.search.space import SpaceRequest, strategies

from ..plan.tiny import DENSE, MLA, MOE

SHARED = {**MOE, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 512}
ODD = {**MOE, "num_experts": 18, "num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 1000}
CONFIGS = {"dense": DENSE, "moe": MOE, "mla": MLA, "shared": SHARED, "odd": ODD}
ENGINES: tuple[Engine | None, ...] = ("vllm", "sglang", "trtllm", None)
RULES = [rule for rule in all_rules() if rule.id.startswith("EN")]


MOST = 150


def errors(config: dict[str, Any], engine: Engine | None, searched_for: Engine | None) -> tuple[int, set[str]]:
    """Strategies looked at of the space for `searched_for`, and the rules of `engine` that their plans break."""
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=1, gpus_per_node=12)
    request = SpaceRequest(
        architecture=read_architecture(config),
        nodes=1,
        gpus_per_node=12,
        input_tokens=16384,
        relaxations=frozenset({"attention_dp"}),
        engine=searched_for,
    )
    found: set[str] = set()
    count = 0
    # Replicas are alike: one shows all.
    ones = [strategy for strategy in strategies(request) if strategy.dp == 1]
    for strategy in Random(5).sample(ones, min(len(ones), MOST)):
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
        found |= {item.rule for rule in RULES for item in rule.run(view) if item.severity == "error"}
    return count, found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_no_strategy_of_the_space_breaks_a_rule_of_the_named_engine(kind: str, engine: Engine | None) -> None:
    count, found = errors(CONFIGS[kind], engine, engine)
    assert count > 0
    assert found == set()


def test_a_space_that_knows_no_engine_has_strategies_that_engines_refuse() -> None:
    """Without this the test above could pass by rules that never fire."""
    assert "EN008" in errors(DENSE, "vllm", None)[1]
    assert {"EN003", "EN005", "EN009"} <= errors(SHARED, "sglang", None)[1] | errors(ODD, "sglang", None)[1]
    assert "EN006" in errors(MLA, "trtllm", None)[1]
    assert "EN011" in errors(ODD, "vllm", None)[1]
