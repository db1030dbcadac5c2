"""TensorRT-LLM's options (1.2.1): of `trtllm-serve`, and of the YAML that it reads (`llmapi/llm_args.py`)."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError
from ..plan.document import Phase
from .flags import Flags, Vocabulary
from .group import DTYPE_CHOICES, METHOD_CHOICES, Dialect, Group, Scheduling, layers_of

_NAMES = {
    "model": "model", "config": "config", "extra-llm-api-options": "config", "extra-engine-args": "config",
    "override-engine-args": "options",
    "model-path": "model", "tensor-parallel-size": "tp", "tp-size": "tp", "pipeline-parallel-size": "pp",
    "pp-size": "pp", "context-parallel-size": "context", "cp-size": "context", "cp-config.cp-type": "sequence_kind",
    "moe-expert-parallel-size": "ep", "ep-size": "ep", "expert-parallel-size": "ep",
    "moe-tensor-parallel-size": "tp_expert", "enable-attention-dp": "attention_dp", "pp-partition": "cut",
    "max-batch-size": "max_sequences", "max-num-tokens": "token_budget", "max-seq-len": "max_tokens",
    "free-gpu-memory-fraction": "memory_share", "kv-cache-free-gpu-memory-fraction": "memory_share",
    "kv-cache-free-gpu-mem-fraction": "memory_share", "kv-cache-config.free-gpu-memory-fraction": "memory_share",
    "kv-cache-config.dtype": "kv_cache", "kv-cache-dtype": "kv_cache", "dtype": "dtype",
    "quantization": "quantization", "server-role": "role", "disaggregation-mode": "role",
    "cache-transceiver-config.backend": "transfer",
}  # fmt: skip
_SWITCHES = frozenset({"enable-attention-dp", "enable-chunked-prefill", "use-cuda-graph", "disable-overlap-scheduler"})
_UNPLANNED = {
    "speculative-config.decoding-type": "speculative decoding", "speculative-config": "speculative decoding",
    "lora-config": "LoRA adapters", "moe-cluster-parallel-size": "clusters of experts",
    "cluster-size": "clusters of experts",
}  # fmt: skip
_BESIDE = frozenset({
    "allreduce-strategy", "attn-backend", "backend", "batch-scheduler", "batching-wait-timeout-ms",
    "cache-transceiver-config", "cuda-graph-batch-sizes", "cuda-graph-config", "cuda-graph-max-batch-size",
    "cuda-graph-padding-enabled", "custom-jinja-template", "disable-overlap-scheduler", "enable-chunked-prefill",
    "enable-iter-perf-stats", "event-buffer-max-size", "gpus-per-node", "kv-block-size", "kv-cache-config",
    "log-level", "max-input-len", "metadata-server-config-file", "modality", "moe-backend", "moe-config",
    "num-postprocess-workers", "print-iter-log", "publish-kv-metrics", "pytorch-backend-config", "request-plane",
    "return-perf-metrics", "stream-interval", "use-cuda-graph",
})  # fmt: skip
_CHOICES = {
    "kv_cache": ("auto", "fp8", "nvfp4", "bfloat16", "float16"),
    "quantization": METHOD_CHOICES,
    "dtype": DTYPE_CHOICES,
}
_ROLES: Mapping[str, Phase] = {"context": "prefill", "prefill": "prefill", "generation": "decode", "decode": "decode"}


def _group(flags: Flags, environment: Mapping[str, str], is_moe: bool) -> Group:
    """Attention DP is on or off: its degree is the whole tensor group."""
    ranks, context = flags.degree("tp"), flags.degree("context")
    groups = ranks if flags.on("attention_dp") else 1
    ep, tp_expert = flags.count("ep"), flags.count("tp_expert")
    if is_moe:
        ep = ep or max(1, ranks // (tp_expert or ranks))
        tp_expert = tp_expert or max(1, ranks // ep)
        if ep * tp_expert != ranks:
            raise InputError(
                f"moe_expert_parallel_size {ep} x moe_tensor_parallel_size {tp_expert} is not the tensor_parallel_size "
                f"{ranks}: TensorRT-LLM refuses that"
            )
    ulysses = (flags.text("sequence_kind") or "").upper() == "ULYSSES"
    return Group(
        groups=groups,
        tp=ranks // groups,
        context=context,
        sequence_kind="ulysses" if ulysses and context > 1 else None,
        pp=flags.degree("pp"),
        cut=layers_of(flags.text("cut")),
        ep=(ep or 1) if is_moe else 1,
        tp_expert=(tp_expert or 1) if is_moe else 1,
    )


def _scheduling(flags: Flags, group: Group) -> Scheduling:
    return Scheduling(
        max_sequences=flags.count("max_sequences"),
        token_budget=flags.count("token_budget"),
    )


DIALECT = Dialect(
    vocabulary=Vocabulary(_NAMES, _SWITCHES, _UNPLANNED, _BESIDE, _CHOICES),
    group=_group,
    scheduling=_scheduling,
    follows=lambda _: False,
    role=lambda flags: _ROLES.get((flags.text("role") or "").lower()),
    hands_over=lambda flags: flags.text("transfer") is not None,
    options_win=True,
)
