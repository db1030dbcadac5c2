"""TensorRT-LLM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .engine import GIB, Batch, Engine, LoadToSend, MemoryUse
from .release import Release, release_of
from .vocabulary import DTYPE_CHOICES, METHOD_CHOICES, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..catalog.attention.spec import AttentionSpec
    from ..catalog.dtypes import DType

# As for vLLM, of 18 runs (DeepSeek-R1 and Kimi-K2.5 on B200, GB200, GB300), a quarter of them below 0.06 s.
_HANDOFF_S = 0.09
_SWITCHED_OFF = re.compile(r'"disable_overlap_scheduler": ?(true|false)')
# `free_gpu_memory_fraction` is of what weights, activations, runtime and libraries leave free (its guide to memory
# use, `_util.py`). What the runtime takes: least squares over the peaks of NVIDIA's sizing sweep of release 0.9.
MEMORY_USE = MemoryUse(
    batch=Batch(8192, 2048),
    alone_bytes=1.2 * GIB,
    group_bytes=5.0 * GIB,
    linked_bytes=5.0 * GIB,
    of_free=True,
)


# Query heads of a KV head for which releases with one block a head had a kernel that reads it once for all of them
# (XQA: "limited configurations", Llama-2-70B among them; docs/source/advanced/gpt-attention.md of 0.9).
SHARED_READ_HEADS = 8
# What NVIDIA's quantised checkpoints (ModelOpt, FP8 and NVFP4) ask for.
QUANTISED_CACHE: DType = "fp8"
# Options of `trtllm-serve`, and of the YAML that it reads (`llmapi/llm_args.py` of the version below).
VOCABULARY = Vocabulary(
    spelled={
        "model": "model model-path", "config": "config extra-llm-api-options extra-engine-args",
        "options": "override-engine-args", "tp": "tensor-parallel-size tp-size",
        "pp": "pipeline-parallel-size pp-size", "context": "context-parallel-size cp-size",
        "sequence_kind": "cp-config.cp-type", "ep": "moe-expert-parallel-size ep-size expert-parallel-size",
        "tp_expert": "moe-tensor-parallel-size", "attention_dp": "enable-attention-dp", "cut": "pp-partition",
        "max_sequences": "max-batch-size", "token_budget": "max-num-tokens", "max_tokens": "max-seq-len",
        "memory_share": (
            "kv-cache-config.free-gpu-memory-fraction free-gpu-memory-fraction "
            "kv-cache-free-gpu-memory-fraction kv-cache-free-gpu-mem-fraction"
        ),
        "kv_cache": "kv-cache-config.dtype kv-cache-dtype", "dtype": "dtype", "quantization": "quantization",
        "role": "server-role disaggregation-mode", "transfer": "cache-transceiver-config.backend",
        "host_cache": "kv-cache-config.host-cache-size", "cuts_prompts": "enable-chunked-prefill",
    },
    switches="disable-overlap-scheduler enable-attention-dp enable-chunked-prefill use-cuda-graph",
    unplanned={
        "speculative decoding": "speculative-config.decoding-type speculative-config",
        "LoRA adapters": "lora-config", "clusters of experts": "moe-cluster-parallel-size cluster-size",
    },
    beside=(
        "allreduce-strategy attention-dp-config attn-backend backend batch-scheduler batching-wait-timeout-ms "
        "cache-transceiver-config cuda-graph-batch-sizes cuda-graph-config cuda-graph-max-batch-size "
        "cuda-graph-padding-enabled custom-jinja-template enable-iter-perf-stats event-buffer-max-size gpus-per-node "
        "kv-block-size kv-cache-config log-level max-input-len metadata-server-config-file modality moe-backend "
        "moe-config num-postprocess-workers print-iter-log publish-kv-metrics pytorch-backend-config request-plane "
        "return-perf-metrics stream-interval"
    ),
    choices={
        "kv_cache": ("auto", "fp8", "nvfp4", "bfloat16", "float16"),
        "quantization": METHOD_CHOICES, "dtype": DTYPE_CHOICES,
    },
    in_file=True,
)  # fmt: skip


class TensorRTLLM(Engine, frozen=True):
    """TensorRT-LLM, and NIM on it."""

    def generation(self, version: str | None) -> str:
        """`session` ran static batches, `cpp` is the C++ runtime, `1.0` the first release on PyTorch."""
        number = release_of(version)
        if number is not None and number < (0, 12):
            return "session"
        if "2024" in (version or "") or (number is not None and number < (0, 18)):
            return "cpp"
        return "1.0" if number is not None and number < (1, 1) else "pytorch"

    def first_stage_with_more(self, stages: int, extra: int) -> int:
        """The remainder goes to the first stages."""
        return 0

    def refuses_cache_split(self, spec: AttentionSpec, tp: int, kv_sp: int) -> str | None:
        """Its Helix parallelism goes along the sequence in prefill too; no setting is known for decode alone."""
        return f"the KV cache is in {kv_sp} parts along the sequence in decode alone"

    def own_reduction_ranks(self, generation: str, *, over_pcie: bool) -> frozenset[int]:
        """Those of 2024 reduced with NCCL: kernels of their own were an option of the build."""
        if self.gives_heads_one_block(generation):
            return frozenset()
        return super().own_reduction_ranks(generation, over_pcie=over_pcie)

    def hides_host(self, version: str | None) -> bool:
        """The overlap scheduler is the default on PyTorch (its documentation, Overlap Scheduler)."""
        return self.generation(version) in ("1.0", "pytorch")

    def host_setting(self, flags: Sequence[str]) -> bool | None:
        """`disable_overlap_scheduler`, a switch of its file of options, which kept flags hold as JSON."""
        switch = next(filter(None, map(_SWITCHED_OFF.search, flags)), None)
        return None if switch is None else switch.group(1) == "false"

    def gives_heads_one_block(self, generation: str) -> bool:
        """Blocks shared a long sequence only when the build asked for it (`--multi_block_mode`)."""
        return generation == "session"

    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        """It takes its share of free memory, whatever the card."""
        return MEMORY_USE

    def load_generator(self, load: LoadToSend) -> tuple[str, ...]:
        """`tensorrt_llm.serve.scripts.benchmark_serving` (guide to benchmarking with trtllm-serve)."""
        tool = "python", "-m", "tensorrt_llm.serve.scripts.benchmark_serving", "--backend", "openai"
        fixed = "--random-range-ratio", "0", "--ignore-eos"
        return *tool, *load.data, "--random-ids", *load.lengths, *fixed, *load.amount


ENGINE = TensorRTLLM(
    name="trtllm",
    title="TensorRT-LLM",
    spellings=("tensorrtllm", "tensorrt", "trtllm"),
    version="1.2.1",
    image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
    programs=("trtllm-serve",),
    modules=("tensorrt_llm.commands.serve", "dynamo.trtllm"),
    versioned_images=("tensorrt-llm/release",),
    begins=r"trtllm-serve(?:[ \t]+serve)?",
    vocabulary=VOCABULARY,
    by_itself={
        "KV cache": "free_gpu_memory_fraction is of what weights and runtime leave free, and was predicted with so",
        "experts": "each expert rank gets a run of experts in their order",
        "prefix cache": "prompts that share a beginning are served from its cache (kv_cache_config.enable_block_reuse)",
    },
    most_group_ranks=1,
    names_gpus_once=True,
    sequence_kinds=frozenset(("ulysses",)),
    cache_formats={"fp8": "fp8", "nvfp4": "nvfp4"},
    lacks=frozenset({"kv_sequence_decode", "redundant_experts"}),
    kernel_tables="trtllm",
    shared_read_heads=SHARED_READ_HEADS,
    handoff_s=_HANDOFF_S,
    quantised_cache=QUANTISED_CACHE,
    # `_check_arguments` (`llmapi/llm.py`).
    cuts_prompts_by="enable_chunked_prefill",
    # `KvCacheConfig.tokens_per_block`.
    cache_block_tokens=32,
    # Its guide to the KV cache: "when a block is evicted from primary memory" it is copied to secondary memory.
    keeps_in_host="evicted",
)
