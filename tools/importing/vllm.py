"""vLLM's flags (0.33.0, `engine/arg_utils.py`, `config/parallel.py`), older spellings of them included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..plan.document import Phase
from .flags import Flags, Vocabulary
from .group import DTYPE_CHOICES, METHOD_CHOICES, Dialect, Group, Scheduling, layers_of

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
    "distributed-executor-backend": "executor", "is-prefill-worker": "is_prefill", "is-decode-worker": "is_decode",
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
    "disable-custom-all-reduce", "disable-prefix-caching", "dpa", "dpe", "dph",
    "dpp", "enable-chunked-prefill", "enable-log-requests", "enable-prefix-caching", "enable-sleep-mode",
    "eplb-config", "expert-placement-strategy", "guided-decoding-backend", "kv-events-config", "kv-transfer-config",
    "long-prefill-token-threshold", "max-logprobs", "max-long-partial-prefills", "max-num-partial-prefills",
    "max-parallel-loading-workers", "max-seq-len-to-capture", "moe-backend", "multi-step-stream-outputs",
    "no-enable-chunked-prefill", "no-enable-prefix-caching", "num-scheduler-steps", "o", "o0", "o1", "o2", "o3",
    "renderer-num-workers", "scheduling-policy", "stream-interval", "swap-space", "ubatch-size", "use-tqdm-on-load",
    "use-v2-block-manager",
})  # fmt: skip
_CHOICES = {
    "kv_cache": ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "nvfp4"),
    "quantization": METHOD_CHOICES,
    "dtype": DTYPE_CHOICES,
    "kv_role": ("kv_producer", "kv_consumer", "kv_both"),
}
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


def _refusals(flags: Flags, group: Group, is_moe: bool) -> Iterator[str]:
    """By its own checks (`config/model.py`, `config/parallel.py`, `config/scheduler.py`)."""
    if flags.on("expert_parallel") and not is_moe:
        yield f"{flags.written['expert_parallel']}: it needs a model with experts, and this one has none"
    if flags.on("eplb") and is_moe and not (flags.on("expert_parallel") and group.width > 1):
        yield f"{flags.written['eplb']} needs --enable-expert-parallel and several ranks"
    tokens, sequences = flags.count("token_budget"), flags.count("max_sequences")
    if tokens is not None and sequences is not None and tokens < sequences:
        names = flags.written["token_budget"], flags.written["max_sequences"]
        yield f"{names[0]} {tokens:,} is less than {names[1]} {sequences:,}"
    nodes, ranks = flags.degree("nodes"), group.width * group.pp * group.servers
    if ranks % nodes:
        yield f"{flags.written['nodes']} {nodes} does not divide the {ranks} ranks"


DIALECT = Dialect(
    vocabulary=Vocabulary(_NAMES, _SWITCHES, _UNPLANNED, _BESIDE, _CHOICES),
    group=_group,
    scheduling=_scheduling,
    follows=_follows,
    role=_role,
    hands_over=lambda flags: flags.on("transfer"),
    refusals=_refusals,
)
