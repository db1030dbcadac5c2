"""SGLang."""

from __future__ import annotations

from msgspec.structs import replace

from .engine import GIB, Batch, Engine, LoadToSend, MemoryUse
from .release import Release, release_of
from .vocabulary import DTYPE_CHOICES, HOST_CACHE, IN_STORAGE, METHOD_CHOICES, Vocabulary, of_rope

# As for vLLM, of 12 runs (DeepSeek-R1 on B200, GB200, GB300), where it lies between -0.10 and 0.02 s.
_HANDOFF_S = 0.0
# Its scheduler runs one batch ahead of the GPU from here on (release notes of v0.4).
_HIDES_HOST: Release = (0, 4)
_SEQUENCES = 1024
# `mem_fraction_static` is of what is free before the weights are loaded, and holds weights and KV cache alone:
# activations and CUDA graphs lie outside of it (its guide to hyperparameters). What is gone before: the CUDA context
# (78.81 of 79.19 GiB are left on one GPU); with the libraries of a group, and what loading leaves, as two starts of
# Kimi-K2 on eight ranks log it.
_MEMORY_USE = MemoryUse(
    batch=Batch(8192, _SEQUENCES),
    alone_bytes=0.4 * GIB,
    group_bytes=2.5 * GIB,
    linked_bytes=2.5 * GIB,
    counts_passes=False,
)

# Tokens of a chunk from so many GiB of a card on, 2,048 below, by the first release that takes them (`server_args.py`,
# `arg_groups/memory_hook.py`).
_LEAST_CHUNK = 2048
_CHUNKS: tuple[tuple[Release, tuple[tuple[float, int], ...]], ...] = (
    ((0, 5, 20), ((20, 4096), (60, 8192), (160, 16384))),
    ((0, 5, 3), ((35, 4096), (60, 8192), (160, 16384))),
    ((0, 4, 8), ((35, 8192), (160, 16384))),
    ((), ((24.4, 8192),)),
)

_ATTENTION_CHOICES = (
    "triton", "torch_native", "flex_attention", "dsa", "nsa", "dsv4", "compressed", "cutlass_mla", "fa3", "fa4",
    "flashinfer", "flashmla", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla", "trtllm_mha", "dual_chunk_flash_attn",
    "hpc_ops", "minicpm_flashattn", "minicpm_flashinfer", "aiter", "wave", "intel_amx", "ascend", "intel_xpu",
)  # fmt: skip
# Older spellings included; all flags of the version below are in the file that it names.
VOCABULARY = Vocabulary(
    spelled={
        "model": "model-path model", "config": "config", "tp": "tp-size tensor-parallel-size tp",
        "pp": "pp-size pipeline-parallel-size pp", "dp": "dp-size data-parallel-size dp",
        "attention_dp": "attn-dp-size attention-data-parallel-size", "dp_attention": "enable-dp-attention",
        "context": "attn-cp-size attention-context-parallel-size",
        "cache_parts": "dcp-size decode-context-parallel-size",
        "ep": "ep-size ep expert-parallel-size", "over_all": "enable-ep-moe enable-deepep-moe",
        "all_to_all": "moe-a2a-backend", "dense_tp": "moe-dense-tp-size", "eplb": "enable-eplb",
        "redundant": "ep-num-redundant-experts", "nodes": "nnodes", "node_rank": "node-rank",
        "master": "dist-init-addr nccl-init-addr",
        "max_sequences": "max-running-requests", "token_budget": "chunked-prefill-size",
        "max_tokens": "context-length", "memory_share": "mem-fraction-static", "kv_cache": "kv-cache-dtype",
        "dtype": "dtype", "quantization": "quantization", "two_batch": "enable-two-batch-overlap",
        "mode": "disaggregation-mode", "transfer": "disaggregation-transfer-backend",
        "host_cache": "hicache-size",
        **of_rope("json-model-override-args"),
    },
    switches="disable-overlap-schedule enable-deepep-moe enable-ep-moe enable-flashinfer-mla",
    unplanned={
        "speculative decoding": "speculative-algorithm speculative-algo decoupled-spec-role",
        "LoRA adapters": "enable-lora lora-paths uno-lora-path",
        "weights kept in CPU memory": "cpu-offload-gb offload-group-size kt-weight-path enable-paged-experts",
        "execution without CUDA graphs": "disable-cuda-graph disable-decode-cuda-graph disable-prefill-cuda-graph",
        "another use of CUDA graphs": "cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-config",
        HOST_CACHE: "enable-hierarchical-cache enable-hicache hicache-ratio hicache-host-memory-fraction",
        IN_STORAGE: (
            "hicache-storage-backend enable-lmcache enable-flexkv enable-unified-cache-external-linker"
        ),
        "a write policy of the KV cache in CPU memory": "hicache-write-policy",
        "memory shared out otherwise among kinds of layers": (
            "enable-unified-memory swa-full-tokens-ratio disable-hybrid-swa-memory mamba-full-memory-ratio "
            "max-mamba-cache-size"
        ),
        "a format of the recurrent state": "mamba-ssm-dtype enable-int8-mamba-checkpoint",
        "a KV cache shared out otherwise": "enable-kv-cache-sharding enable-dsa-cache-layer-split",
        "a changed model config": "json-model-override-args",
        "a quantisation of its own": "quantize-and-serve modelopt-quant rl-quant-profile torchao-config",
        "sequence parallelism of norms": "enable-layernorm-sp",
        "overlap in one batch": "enable-single-batch-overlap",
        "data parallelism in experts": "moe-dp-size moe-data-parallel-size dwdp-size",
        "layers cut otherwise": (
            "shared-experts-tp-size enable-shared-experts-attn-tp enable-dense-mlp-attn-tp enable-cp-decode-attn-tp "
            "enable-attn-tp-input-scattered"
        ),
        "collectives in fewer bits": "enable-quant-communications",
        "sparse attention of its own": "enable-hisparse enable-double-sparsity",
        "prefill and decode side by side on a GPU": "enable-pdmux", "diffusion": "dllm-algorithm",
        "a schedule of its own": (
            "enable-dynamic-chunking enable-prefill-delayer prefill-decode-interval prefill-max-requests "
            "pp-max-micro-batch-size"
        ),
        "requests that are turned away": "max-queued-requests",
        "encoders in other servers": "language-only encoder-only",
    },
    choices={
        "kv_cache": ("auto", "fp8_e4m3", "fp8_e5m2", "bf16", "bfloat16", "nvfp4", "mxfp8"),
        "quantization": METHOD_CHOICES, "dtype": DTYPE_CHOICES, "mode": ("null", "prefill", "decode"),
        "all_to_all": (
            "none", "deepep", "deepep_v2", "mooncake", "nixl", "mori", "flashinfer", "megamoe", "pplx", "ascend_fuseep",
            "ascend_tp",
        ),
        "transfer": ("mooncake", "mooncake_tcp", "nixl", "mori", "ascend", "fake"),
        "attention-backend": _ATTENTION_CHOICES, "prefill-attention-backend": _ATTENTION_CHOICES,
        "decode-attention-backend": _ATTENTION_CHOICES, "sampling-backend": ("flashinfer", "pytorch", "ascend"),
        "moe-runner-backend": (
            "auto", "deep_gemm", "triton", "triton_kernel", "flashinfer_trtllm", "experimental_sgl_trtllm",
            "flashinfer_trtllm_routed", "flashinfer_cutlass", "flashinfer_mxfp4", "flashinfer_cutedsl", "cutlass",
            "aiter", "marlin", "humming", "experimental_sgl_marlin", "hpc_ops", "megamoe",
        ),
    },
    meeting="host port nnodes node-rank dist-init-addr disaggregation-bootstrap-port",
    starting="base-gpu-id gpu-id-step nccl-port use-ray",
    listed="sglang.json",
    # `_handle_deprecated_args` of releases 0.5.1 to 0.5.4.
    renamed={
        "enable-deepep-moe": ("moe-a2a-backend", "deepep"),
        "enable-triton-kernel-moe": ("moe-runner-backend", "triton_kernel"),
        **{
            f"enable-flashinfer-{name}-moe": ("moe-runner-backend", f"flashinfer_{name}")
            for name in ("cutlass", "cutedsl", "trtllm", "mxfp4")
        },
    },
)  # fmt: skip


class _SGLang(Engine, frozen=True):
    def ffn_degrees(self, stage: int, group_ranks: int | None, *, is_moe: bool) -> tuple[int, ...] | None:
        """A dense FFN runs over the whole tensor group or, with `--moe-dense-tp-size 1`, whole on each rank."""
        return tuple(sorted({1, stage})) if is_moe else (stage,)

    def hides_host(self, version: str | None) -> bool:
        """Its scheduler runs one batch ahead of the GPU."""
        return (release_of(version) or _HIDES_HOST) >= _HIDES_HOST

    def overlap_needs(self, ep: int, attention_dp: int, stage: int) -> str | None:
        """Two-batch overlap hides an all-to-all of experts that spans the tensor group."""
        return None if ep == stage > 1 else "needs ep over all devices of a stage"

    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        """The chunk of prompts is as large as the card allows."""
        steps = next(steps for first, steps in _CHUNKS if release is None or release >= first)
        chunks = [tokens for least_gib, tokens in steps if total_bytes >= least_gib * GIB]
        return replace(_MEMORY_USE, batch=Batch(max(chunks, default=_LEAST_CHUNK), _SEQUENCES))

    def load_generator(self, load: LoadToSend) -> tuple[str, ...]:
        """`sglang.bench_serving` (its guide): the range ratio is the shortest length as a share of the stated one."""
        tool = "python", "-m", "sglang.bench_serving", "--backend", "sglang"
        return *tool, *load.data, *load.lengths, "--random-range-ratio", "1", *load.amount


ENGINE = _SGLang(
    name="sglang",
    title="SGLang",
    spellings=("sglang", "sgl"),
    version="0.5.23",
    image="lmsysorg/sglang:v0.5.23",
    programs=("sglang",),
    modules=(
        *("sglang.launch_server", "sglang_router.launch_server", "dynamo.sglang", "dynamo.sglang.worker"),
        "dynamo.sglang.decode_worker",
    ),
    versioned_images=("sglang",),
    begins=r"sglang\.launch_server|sglang[ \t]+serve",
    vocabulary=VOCABULARY,
    counts_all_groups=True,
    makes={"fp8": "fp8"},
    by_itself={
        "experts": "each expert rank gets a run of experts in their order",
        "all-to-all": "without --moe-a2a-backend dispatch and combine are an all-gather and a reduce-scatter; "
        "deepep, where it is installed, sends each token to its experts alone",
        "prefix cache": "prompts that share a beginning are served from its cache (--disable-radix-cache to "
        "stop), but on decode servers",
    },
    vocabulary_padding=64,
    refuses_split_blocks=True,
    cache_formats={"fp8": "fp8_e4m3", "nvfp4": "nvfp4", "mxfp8": "mxfp8"},
    # The first releases whose scheduler has an event loop for stages of a prefill server, and of a decode server.
    first_pipelined={"prefill": (0, 5, 1), "decode": (0, 5, 7)},
    cut_variable="SGLANG_PP_LAYER_PARTITION",
    kernel_tables="sglang",
    reduces_pairs_over_pcie=True,
    handoff_s=_HANDOFF_S,
    # From the card, the chunk, and the sizes of its CUDA graphs (`arg_groups/memory_hook.py`).
    computes_share=True,
    # `page_size`.
    cache_block_tokens=1,
    # HiCache under `write_through`, its default.
    keeps_in_host="copies",
    host_unit_bytes=10**9,
    # `configs/model_config.py`.
    refuses_beyond_positions=True,
    host_flags={"--disable-overlap-schedule": False},
)
