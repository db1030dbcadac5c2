"""SGLang's flags (0.5.23, `server_args.py`, `arg_groups/`), older spellings of them included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import InputError
from ..plan.document import Phase
from .flags import Flags, Vocabulary
from .group import DTYPE_CHOICES, METHOD_CHOICES, Dialect, Group, Scheduling, layers_of

_NAMES = {
    "model-path": "model", "model": "model", "config": "config", "tp-size": "tp", "tensor-parallel-size": "tp",
    "tp": "tp", "pp-size": "pp", "pipeline-parallel-size": "pp", "pp": "pp", "dp-size": "dp",
    "data-parallel-size": "dp", "dp": "dp", "attn-dp-size": "attention_dp",
    "attention-data-parallel-size": "attention_dp", "enable-dp-attention": "dp_attention",
    "attn-cp-size": "context", "attention-context-parallel-size": "context", "dcp-size": "cache_parts",
    "ep-size": "ep", "ep": "ep", "expert-parallel-size": "ep", "enable-ep-moe": "over_all",
    "enable-deepep-moe": "over_all", "moe-a2a-backend": "all_to_all", "moe-dense-tp-size": "dense_tp",
    "enable-eplb": "eplb", "ep-num-redundant-experts": "redundant", "nnodes": "nodes", "node-rank": "node_rank",
    "max-running-requests": "max_sequences", "chunked-prefill-size": "token_budget", "context-length": "max_tokens",
    "mem-fraction-static": "memory_share", "kv-cache-dtype": "kv_cache", "dtype": "dtype",
    "quantization": "quantization", "enable-two-batch-overlap": "two_batch", "disaggregation-mode": "mode",
    "disaggregation-transfer-backend": "transfer",
}  # fmt: skip
_SWITCHES = frozenset({
    "enable-dp-attention", "enable-ep-moe", "enable-deepep-moe", "enable-eplb", "enable-two-batch-overlap",
    "enable-flashinfer-mla", "disable-radix-cache", "enable-prefill-cp", "enable-dp-lm-head", "enable-torch-compile",
    "enable-mixed-chunk",
})  # fmt: skip
_UNPLANNED = {
    "speculative-algorithm": "speculative decoding", "speculative-algo": "speculative decoding",
    "enable-lora": "LoRA adapters", "lora-paths": "LoRA adapters", "cpu-offload-gb": "weights kept in CPU memory",
    "disable-cuda-graph": "execution without CUDA graphs", "enable-hierarchical-cache": "a KV cache in CPU memory",
    "json-model-override-args": "a changed model config", "enable-layernorm-sp": "sequence parallelism of norms",
    "disable-overlap-schedule": "no overlapped scheduling", "enable-single-batch-overlap": "overlap in one batch",
    "moe-dp-size": "data parallelism in experts",
}  # fmt: skip
_BESIDE = frozenset({
    "attention-backend", "base-gpu-id", "cp-strategy", "cuda-graph-bs", "cuda-graph-max-bs",
    "cuda-graph-max-bs-decode", "decode-attention-backend", "decode-log-interval", "deepep-mode",
    "disable-cuda-graph-padding", "disable-custom-all-reduce", "disable-radix-cache",
    "disable-shared-experts-fusion", "disaggregation-bootstrap-port", "disaggregation-decode-polling-interval",
    "disaggregation-ib-device", "dist-init-addr", "enable-dp-lm-head", "enable-flashinfer-allreduce-fusion",
    "enable-flashinfer-mla", "enable-mixed-chunk", "enable-nccl-nvls", "enable-prefill-cp", "enable-torch-compile",
    "ep-dispatch-algorithm", "eplb-algorithm", "eplb-rebalance-num-iterations", "flashinfer-mla-disable-ragged",
    "fp8-gemm-backend", "gpu-id-step", "load-balance-method", "max-prefill-tokens", "max-total-tokens",
    "mm-attention-backend", "moe-runner-backend", "num-continuous-decode-steps",
    "num-reserved-decode-tokens", "page-size", "prefill-attention-backend", "prefill-round-robin-balance",
    "sampling-backend", "schedule-conservativeness", "schedule-policy", "scheduler-recv-interval", "sleep-on-idle",
    "stream-output", "tokenizer-worker-num", "torch-compile-max-bs", "warmups", "weight-loader-disable-mmap",
})  # fmt: skip
_CHOICES = {
    "kv_cache": ("auto", "fp8_e4m3", "fp8_e5m2", "bf16", "bfloat16", "nvfp4", "mxfp8"),
    "quantization": METHOD_CHOICES,
    "dtype": DTYPE_CHOICES,
    "mode": ("null", "prefill", "decode"),
}
# Backends without a group of their own for tokens: experts stay in the groups that `--ep-size` names.
_LOCAL = frozenset({"none", ""})


def _group(flags: Flags, environment: Mapping[str, str], is_moe: bool) -> Group:
    """`tp` is the width of a stage; attention groups, context and expert parallelism lie inside of it."""
    width, context, copies = flags.degree("tp"), flags.degree("context"), flags.degree("dp")
    groups = flags.degree("attention_dp")
    if flags.on("dp_attention"):
        groups, copies = max(groups, copies), 1
    if width % (groups * context):
        raise InputError(
            f"--tp-size {width} is no multiple of the {groups * context} parts of attention: SGLang refuses that"
        )
    over_all = flags.on("over_all") or (flags.text("all_to_all") or "").lower() not in _LOCAL
    ep = (width if over_all else flags.degree("ep")) if is_moe else 1
    if width % ep:
        raise InputError(f"--ep-size {ep} does not divide --tp-size {width}: SGLang refuses that")
    return Group(
        servers=copies,
        groups=groups,
        tp=width // groups // context,
        context=context,
        cache_parts=flags.degree("cache_parts"),
        pp=flags.degree("pp"),
        cut=layers_of(environment.get("SGLANG_PP_LAYER_PARTITION")),
        ep=ep,
        tp_expert=width // ep if is_moe else 1,
        tp_ffn=1 if flags.text("dense_tp") == "1" else width,
        redundant_experts=(flags.count("redundant") or 0) if flags.on("eplb") else 0,
    )


def _scheduling(flags: Flags, group: Group) -> Scheduling:
    """It divides sequences and tokens by the attention groups; a chunk of -1 is a whole prompt."""
    sequences = flags.count("max_sequences")
    budget = None if (flags.text("token_budget") or "-").startswith("-") else flags.count("token_budget")
    return Scheduling(
        max_sequences=None if sequences is None else max(1, sequences // group.groups),
        token_budget=None if budget is None else max(1, budget // group.groups),
        overlaps=flags.on("two_batch"),
    )


def _role(flags: Flags) -> Phase | None:
    mode = flags.text("mode")
    return "prefill" if mode == "prefill" else "decode" if mode == "decode" else None


def _refusals(flags: Flags, group: Group, is_moe: bool) -> Iterator[str]:
    """By its own checks (`server_args.py`, `arg_groups/validation_hook.py`)."""
    if (flags.text("kv_cache") or "").lower() == "fp8":
        yield f"{flags.written['kv_cache']} fp8: it takes fp8_e4m3 or fp8_e5m2"
    nodes = flags.degree("nodes")
    if group.servers > 1 and nodes > 1:
        yield f"{flags.written['dp']} {group.servers} on {nodes} nodes: it starts replicas on one node only"
    if group.width * group.pp % nodes:
        yield f"{flags.written['nodes']} {nodes} does not divide the {group.width * group.pp} ranks"


DIALECT = Dialect(
    vocabulary=Vocabulary(_NAMES, _SWITCHES, _UNPLANNED, _BESIDE, _CHOICES),
    group=_group,
    scheduling=_scheduling,
    follows=lambda flags: flags.text("node_rank") not in (None, "0"),
    role=_role,
    hands_over=lambda flags: flags.text("transfer") is not None,
    refusals=_refusals,
)
