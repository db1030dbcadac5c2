"""Whatever legal strategy is drawn, the builder's plan is valid, and its hash survives renaming and shuffling."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    Plan,
    PolicyBlock,
    PrecisionBlock,
    WorkloadBlock,
)
from shardwright.tools.search.space import SpaceRequest
from shardwright.tools.validate import validate

from ..examples import examples
from ..spaces import draw_strategy
from .test_builder import scrambled
from .tiny import DENSE, MLA, MOE

INTERLEAVED: dict[str, Any] = {
    **DENSE,
    "model_type": "gemma3_text",
    "num_hidden_layers": 14,
    "sliding_window": 512,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 2 + ["sliding_attention"] * 2,
    "query_pre_attn_scalar": 64,
}
SHARED: dict[str, Any] = {
    **MOE,
    "model_type": "qwen2_moe",
    "num_hidden_layers": 9,
    "shared_expert_intermediate_size": 512,
}
CONFIGS = {"dense": DENSE, "moe": MOE, "mla": MLA, "interleaved": INTERLEAVED, "shared": SHARED}
SIZES = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (3, 2)]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of a legal strategy on hardware with enough devices."""
    kind = draw(st.sampled_from(sorted(CONFIGS)))
    nodes, gpus = draw(st.sampled_from(SIZES))
    relaxed = draw(st.booleans())
    architecture = read_architecture(CONFIGS[kind])
    apart = draw(st.booleans()) and nodes * gpus > 1
    allowed = frozenset({"attention_dp"} if relaxed else ())
    strategy = draw_strategy(draw, SpaceRequest(architecture, nodes, gpus, 16384, allowed, apart))
    return build_plan(
        BuildRequest(
            model=ModelBlock(name=f"tiny {kind}", config=CONFIGS[kind]),
            hardware=HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=gpus),
            workload=WorkloadBlock(input_tokens=16384, output_tokens=64, concurrency=2),
            precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
            strategy=strategy,
            policy=PolicyBlock(relaxations=("attention_dp",) if relaxed else ()),
        )
    )


@examples(80)
@given(plans())
def test_every_plan_of_the_builder_is_valid(plan: Plan) -> None:
    report = validate(plan)
    assert report.errors == 0, report.violations
    # The only warnings are of idle devices, groups across nodes and layouts that engines lack.
    warned = {violation.rule for violation in report.violations}
    assert all(rule in ("GP005", "TP007", "PP008") or rule.startswith("EN") for rule in warned), warned


@examples(40)
@given(plans(), st.integers(0, 1000))
def test_the_hash_of_a_plan_is_of_its_meaning(plan: Plan, seed: int) -> None:
    assert content_hash(scrambled(plan, seed)) == content_hash(plan)
