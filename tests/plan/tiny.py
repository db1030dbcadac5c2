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

DENSE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 1024,
    "vocab_size": 1024,
    "max_position_embeddings": 65536,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MOE: dict[str, Any] = {
    **DENSE,
    "model_type": "qwen3_moe",
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
MLA: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "q_lora_rank": 128,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "intermediate_size": 1024,
    "moe_intermediate_size": 256,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "vocab_size": 1024,
    "max_position_embeddings": 65536,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
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
    """A plan of a tiny model on `nodes` x 8 H100; a decode strategy that is not given is the prefill's without SP."""
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
