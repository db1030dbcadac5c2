"""vLLM's flags (0.33.0, `engine/arg_utils.py`, `config/parallel.py`), older spellings of them included."""

from __future__ import annotations

from collections.abc import Mapping

from ..plan.document import Phase
from .flags import Flags, Vocabulary
from .group import Dialect, Group, Scheduling, layers_of

_NAMES = {
    "model": "model", "config": "config", "tensor-parallel-size": "tp", "tp": "tp", "pipeline-parallel-size": "pp",
    "pp": "pp", "prefill-context-parallel-size": "context", "pcp": "context",
    "decode-context-parallel-size": "cache_parts", "dcp": "cache_parts", "data-parallel-size": "dp", "dp": "dp",
    "data-parallel-size-local": "local", "dpl": "local", "data-parallel-rank": "rank", "dpn": "rank",
    "data-parallel-start-rank": "first_rank", "dpr": "first_rank", "nnodes": "nodes", "n": "nodes",
    "node-rank": "node_rank", "r": "node_rank", "headless": "headless", "enable-expert-parallel": "expert_parallel",
    "ep": "expert_parallel", "enable-eplb": "eplb", "eplb-config.num-redundant-experts": "redundant",
    "num-redundant-experts": "redundant", "max-num-seqs": "max_sequences", "max-num-batched-tokens": "token_budget",
    "max-model-len": "max_tokens", "gpu-memory-utilization": "memory_share",
    "device-memory-utilization": "memory_share", "kv-cache-dtype": "kv_cache", "dtype": "dtype",
    "quantization": "quantization", "q": "quantization", "enable-dbo": "two_batch",
    "kv-transfer-config": "transfer", "kv-transfer-config.kv-role": "kv_role", "disaggregation-mode": "mode",
    "is-prefill-worker": "is_prefill", "is-decode-worker": "is_decode",
}  # fmt: skip
_SWITCHES = frozenset({
    "headless", "enable-expert-parallel", "ep", "enable-eplb", "enable-dbo", "is-prefill-worker", "is-decode-worker",
    "enable-chunked-prefill", "no-enable-chunked-prefill", "enable-prefix-caching", "async-scheduling", "o0", "o1",
    "o2", "o3", "use-v2-block-manager", "no-enable-prefix-caching", "disable-prefix-caching",
})  # fmt: skip
_UNPLANNED = {
    "speculative-config": "speculative decoding", "speculative-model": "speculative decoding",
    "num-speculative-tokens": "speculative decoding", "enable-lora": "LoRA adapters", "lora-modules": "LoRA adapters",
    "cpu-offload-gb": "weights kept in CPU memory", "enforce-eager": "execution without CUDA graphs",
    "kv-cache-memory-bytes": "a KV cache of a stated size", "num-gpu-blocks-override": "a KV cache of a stated size",
    "sliding-window": "an attention window of its own", "hf-overrides": "a changed model config",
    "rope-scaling": "a changed model config",
}  # fmt: skip
_BESIDE = frozenset({
    "additional-config", "all2all-backend", "api-server-count", "async-scheduling", "attention-backend",
    "block-size", "calculate-kv-scales", "compilation-config", "cuda-graph-sizes", "data-parallel-address",
    "data-parallel-backend", "data-parallel-external-lb", "data-parallel-hybrid-lb", "data-parallel-rpc-port",
    "dbo-decode-token-threshold", "dbo-prefill-token-threshold", "disable-cascade-attn", "disable-chunked-mm-input",
    "disable-custom-all-reduce", "disable-prefix-caching", "distributed-executor-backend", "dpa", "dpe", "dph",
    "dpp", "enable-chunked-prefill", "enable-log-requests", "enable-prefix-caching", "enable-sleep-mode",
    "eplb-config", "expert-placement-strategy", "guided-decoding-backend", "kv-events-config", "kv-transfer-config",
    "long-prefill-token-threshold", "max-logprobs", "max-long-partial-prefills", "max-num-partial-prefills",
    "max-parallel-loading-workers", "max-seq-len-to-capture", "moe-backend", "multi-step-stream-outputs",
    "no-enable-chunked-prefill", "no-enable-prefix-caching", "num-scheduler-steps", "o", "o0", "o1", "o2", "o3",
    "renderer-num-workers", "scheduling-policy", "stream-interval", "swap-space", "ubatch-size", "use-tqdm-on-load",
    "use-v2-block-manager",
})  # fmt: skip
_ROLES: Mapping[str, Phase] = {
    "kv_producer": "prefill",
    "kv_consumer": "decode",
    "prefill": "prefill",
    "decode": "decode",
}


def _group(flags: Flags, environment: Mapping[str, str], is_moe: bool) -> Group:
    """One number sets the tensor parallelism of all layers; data-parallel ranks of a MoE model share its experts."""
    tp, context, dp = flags.degree("tp"), flags.degree("context"), flags.degree("dp")
    groups = dp if is_moe else 1
    width = groups * context * tp
    has_groups = is_moe and flags.on("expert_parallel")
    return Group(
        servers=1 if is_moe else dp,
        groups=groups,
        tp=tp,
        context=context,
        cache_parts=flags.degree("cache_parts"),
        pp=flags.degree("pp"),
        cut=layers_of(environment.get("VLLM_PP_LAYER_PARTITION")),
        ep=width if has_groups else 1,
        tp_expert=width if is_moe and not has_groups else 1,
        tp_ffn=context * tp,
        redundant_experts=(flags.count("redundant") or 0) if flags.on("eplb") else 0,
    )


def _scheduling(flags: Flags, group: Group) -> Scheduling:
    return Scheduling(
        max_sequences=flags.count("max_sequences"),
        token_budget=flags.count("token_budget"),
        overlaps=flags.on("two_batch"),
    )


def _follows(flags: Flags) -> bool:
    later = any(flags.text(one) not in (None, "0") for one in ("node_rank", "rank", "first_rank"))
    return later or flags.on("headless")


def _role(flags: Flags) -> Phase | None:
    if flags.on("is_prefill"):
        return "prefill"
    if flags.on("is_decode"):
        return "decode"
    return _ROLES.get(flags.text("kv_role") or flags.text("mode") or "")


DIALECT = Dialect(
    vocabulary=Vocabulary(_NAMES, _SWITCHES, _UNPLANNED, _BESIDE),
    group=_group,
    scheduling=_scheduling,
    follows=_follows,
    role=_role,
    hands_over=lambda flags: flags.on("transfer"),
)
