"""Tiny models and hardware for tests: every kind of decoder in a few layers."""

from __future__ import annotations

from typing import Any

from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    Plan,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count
from shardwright.tools.rules.examples import DENSE, MLA, MOE

MODELS = {"dense": DENSE, "moe": MOE, "mla": MLA}


def tiny_plan(
    config: dict[str, Any],
    prefill: PhaseStrategy,
    decode: PhaseStrategy | None = None,
    *,
    dp: int = 1,
    input_tokens: int = 16384,
    relaxations: tuple[str, ...] = (),
    nodes: int = 8,
) -> Plan:
    """A plan of a tiny model on `nodes` x 8 H100; `decode` defaults to `prefill` without SP."""
    if decode is None:
        width = prefill.sp * prefill.tp
        tp = width if config["num_attention_heads"] % width == 0 else prefill.tp
        decode = prefill.model_copy(update={"sp": 1, "tp": tp, "sp_kind": None})
    strategy = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode)
    strategy = strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
    return build_plan(
        BuildRequest(
            model=ModelBlock(name="tiny", config=config),
            hardware=HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=8),
            workload=WorkloadBlock(input_tokens=input_tokens, output_tokens=64, concurrency=4),
            precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
            policy=PolicyBlock.model_validate({"relaxations": relaxations}),
            strategy=strategy,
        )
    )
