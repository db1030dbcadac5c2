"""vLLM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from .engine import GIB, Batch, Engine, LoadToSend, MemoryUse
from .release import Release, release_of
from .vocabulary import DTYPE_CHOICES, HOST_CACHE, IN_STORAGE, METHOD_CHOICES, Vocabulary, of_rope

if TYPE_CHECKING:
    from ..catalog.attention.spec import AttentionSpec

# The first release with the new engine (V1), and the last that it can be where a text tells no more than the old one.
_NEW_ENGINE: Release = (0, 8)
_LAST_OLD: Release = (0, 7)
# Asynchronous scheduling is its default from here on (pull request 27614).
_HIDES_HOST: Release = (0, 14)
# The first release with attention and matmul kernels of its own for AMD's cards.
_OWN_ROCM_KERNELS: Release = (0, 6, 2)
# A token went through the dense layers of 7B to 70B models in 16 bits at 0.04 to 0.06 of the peak, on 1 to 8 cards and
# with 32 to 256 sequences alike (Argonne's LLM-Inference-Bench), where kernels reach 0.51 at best. With 0.07 or 0.12
# models that took no part in the fit of the other constants are predicted about as well, with 1 far worse.
_EARLY_MATMUL_SHARE = 0.09

# `max_num_batched_tokens` and `max_num_seqs` of a server that states none, on GPUs of 70 GiB and more other than the
# A100, and elsewhere (`EngineArgs.get_batch_defaults`). Before the new engine every GPU had the smaller batch, and at
# least as many tokens as a prompt may have.
_LARGE, _SMALL = Batch(8192, 1024), Batch(2048, 256)
_LARGE_GIB = 70
# The median of TTFT measured less predicted, without the way of the cache, of runs of InferenceX behind dynamo with
# 1,024 tokens in and at most 16 users (Kimi-K2.5 on GB200; 3 runs, 0.165 to 0.214 s).
_HANDOFF_S = 0.19
# To what MXFP4 experts are padded: 2,880 to 3,072 and 2,944 in gpt-oss (65.97 GiB of gpt-oss-120b on one GPU).
_MXFP4_TILE = (256, 128)
# The first release whose sampler needs no sorted copies: 5.64 and 2.23 GiB of activations with Qwen3-14B before and
# after, on one machine. Both figures per sequence and vocabulary entry: starts with 32,768 to 256,000 entries and 128
# to 1,024 sequences agree within 5%.
_UNSORTED: Release = (0, 17)
_SORTING_LOGIT_BYTES, _LOGIT_BYTES = 38.4, 14.0
# Memory outside torch by the same logs: the kernels that were loaded (on Blackwell far more), and from 0.12 on
# workspaces of the all-reduce on linked GPUs.
_WORKSPACES: Release = (0, 12)
_ALONE_BYTES, _GROUP_BYTES, _BLACKWELL_BYTES = 0.2 * GIB, 0.3 * GIB, 1.8 * GIB
_EARLIER_LINKED_BYTES, _LINKED_BYTES = 0.55 * GIB, 2.1 * GIB
# The first release that takes an estimate of its CUDA graphs off the cache (pull request 38284): 0.52 GiB for 40 layers
# with 51 batch sizes, 0.32 for 94 with 11.
_GRAPHS_COUNTED: Release = (0, 21)
_GRAPH_BYTES = 0.0003 * GIB


# The first release that logs tokens as most requests of full length x that length (`_report_kv_cache_config`).
_DERIVED_TOKENS: Release = (0, 21)
# The first release whose short prompts skip the choice of sparse attention (pull request 47327).
_CHOOSES_WHERE_NEEDED: Release = (0, 25)


def _connectors(*names: str) -> str:
    """The flags that name a connector by itself, or as one of several (`kv_connector/factory.py`)."""
    places = ("kv-connector", "kv-connector-extra-config.connectors.kv-connector")
    return " ".join(f"kv-transfer-config.{place}={name}" for name in names for place in places)


# Older spellings included; all flags of the version below are in the file that it names.
VOCABULARY = Vocabulary(
    spelled={
        "model": "model", "config": "config", "tp": "tensor-parallel-size tp", "pp": "pipeline-parallel-size pp",
        "context": "prefill-context-parallel-size pcp", "cache_parts": "decode-context-parallel-size dcp",
        "dp": "data-parallel-size dp", "local": "data-parallel-size-local dpl", "rank": "data-parallel-rank dpn",
        "first_rank": "data-parallel-start-rank dpr", "nodes": "nnodes n", "node_rank": "node-rank r",
        "master": "master-addr", "master_port": "master-port", "dp_master": "data-parallel-address dpa",
        "dp_port": "data-parallel-rpc-port dpp", "dp_backend": "data-parallel-backend dpb",
        "all_to_all": "all2all-backend",
        "headless": "headless", "expert_parallel": "enable-expert-parallel ep", "eplb": "enable-eplb",
        "redundant": "eplb-config.num-redundant-experts num-redundant-experts", "max_sequences": "max-num-seqs",
        "token_budget": "max-num-batched-tokens", "max_tokens": "max-model-len",
        "memory_share": "gpu-memory-utilization device-memory-utilization", "kv_cache": "kv-cache-dtype",
        "dtype": "dtype", "quantization": "quantization q", "two_batch": "enable-dbo",
        "transfer": "kv-transfer-config", "kv_role": "kv-transfer-config.kv-role", "mode": "disaggregation-mode",
        "executor": "distributed-executor-backend", "is_prefill": "is-prefill-worker",
        "is_decode": "is-decode-worker", "host_cache": "kv-offloading-size",
        "whole_prompts": "no-enable-chunked-prefill disable-chunked-prefill",
        "host_bytes": "kv-transfer-config.kv-connector-extra-config.cpu-bytes-to-use",
        **of_rope("hf-overrides", "rope-scaling"),
    },
    switches=(
        "disable-chunked-prefill is-decode-worker is-prefill-worker no-enable-chunked-prefill o0 o1 o2 o3 "
        "use-v2-block-manager"
    ),
    unplanned={
        "speculative decoding": "speculative-config sc spec-method spec-model speculative-model num-speculative-tokens",
        "LoRA adapters": "enable-lora lora-modules",
        "weights kept in CPU memory": "cpu-offload-gb offload-group-size",
        "execution without CUDA graphs": "enforce-eager",
        "a KV cache of a stated size": "kv-cache-memory-bytes num-gpu-blocks-override",
        HOST_CACHE: (
            "kv-transfer-config.kv-connector-extra-config.num-cpu-blocks "
            + _connectors("lmcacheconnector", "lmcacheconnectorv1", "lmcachempconnector", "simplecpuoffloadconnector")
        ),
        IN_STORAGE: _connectors("mooncakestoreconnector", "flexkvconnectorv1", "hf3fskvconnector"),
        "a KV cache as large for all kinds of layers": "disable-hybrid-kv-cache-manager",
        "layers whose KV cache has a format of its own": "kv-cache-dtype-skip-layers",
        "a format of the recurrent state": "mamba-cache-dtype mamba-ssm-cache-dtype",
        "an attention window of its own": "sliding-window disable-sliding-window",
        "prefill that skips layers": "kv-sharing-fast-prefill", "diffusion": "diffusion-config dc",
        "a changed model config": "hf-overrides rope-scaling rope-theta",
        "a quantisation of its own": "quantization-config",
        "another mode or level of optimisation": "performance-mode optimization-level",
        "a scheduler of its own": (
            "scheduler-cls prefill-schedule-interval max-num-active-seqs max-num-scheduled-tokens"
        ),
        "requests that are turned away": "max-num-queued-reqs max-num-queued-tokens",
        "encoders in other servers": "ec-transfer-config",
    },
    choices={
        "kv_cache": ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "nvfp4"),
        "quantization": METHOD_CHOICES, "dtype": DTYPE_CHOICES, "kv_role": ("kv_producer", "kv_consumer", "kv_both"),
        "all_to_all": (
            "allgather_reducescatter", "deepep_high_throughput", "deepep_low_latency", "deepep_v2", "nixl_ep",
            "mori_high_throughput", "mori_low_latency", "mori", "flashinfer_nvlink_one_sided",
            "flashinfer_nvlink_two_sided", "flashinfer_all2allv", "pplx", "naive",
        ),
        # `Executor.get_class` takes the path of a class too.
        "executor": ("mp", "ray", "uni", "external_launcher", "module.Class"),
        "dp_backend": ("mp", "ray"), "expert-placement-strategy": ("linear", "round_robin"),
        # `AttentionBackendEnum`, of all releases since the flag came.
        "attention-backend": (
            "flash_attn", "flash_attn_diffkv", "flash_attn_mla", "flashinfer", "flashinfer_mla",
            "flashinfer_mla_sparse", "flashmla", "flashmla_sparse", "triton_attn", "triton_mla", "triton_mla_sparse",
            "cutlass_mla", "flex_attention", "tree_attn", "turboquant", "rocm_attn", "rocm_aiter_fa",
            "rocm_aiter_mla", "rocm_aiter_mla_sparse", "rocm_aiter_triton_mla", "rocm_aiter_unified_attn",
            "xpu_mla_sparse", "cpu_attn", "torch_sdpa", "pallas", "ipex", "no_attention", "custom",
        ),
        "scheduling-policy": ("fcfs", "priority"), "kv-offloading-backend": ("native", "lmcache"),
    },
    meeting=(
        "host port headless nnodes node-rank master-addr master-port data-parallel-size-local "
        "data-parallel-start-rank data-parallel-address data-parallel-rpc-port"
    ),
    # Headless nodes refuse servers of their own (`run_headless`), and several nodes another backend than `mp`.
    starting=(
        "api-server-count asc data-parallel-external-lb dpe data-parallel-hybrid-lb dph "
        "data-parallel-multi-port-external-lb dpm data-parallel-supervisor-port uds"
    ),
    listed="vllm.json",
    apart="disaggregation-mode is-decode-worker is-prefill-worker o o0 o1 o2 o3",
    inverts=True,
    variables={"VLLM_ALL2ALL_BACKEND": "all2all-backend", "VLLM_ATTENTION_BACKEND": "attention-backend"},
    # Its page "Context Extension".
    successors={"rope-scaling": "--hf-overrides with rope_parameters, rope_theta among them; write it anew"},
)  # fmt: skip


class _VLLM(Engine, frozen=True):
    def generation(self, version: str | None) -> str:
        """`v0` is the old engine, `v0.6` its last releases."""
        number = release_of(version)
        if "2024" in (version or "") or (number is not None and number < _OWN_ROCM_KERNELS):
            return "v0"
        return "v0.6" if number is not None and number < _NEW_ENGINE else "v1"

    def release(self, version: str | None) -> Release | None:
        number = release_of(version)
        return min(number or _LAST_OLD, _LAST_OLD) if self.generation(version) != "v1" else number

    def first_stage_with_more(self, stages: int, extra: int) -> int:
        """The remainder goes to the stages from the last but one backwards."""
        return stages - 1 - extra

    def ffn_degrees(self, stage: int, group_ranks: int | None, *, is_moe: bool) -> tuple[int, ...] | None:
        """One number sets the tensor parallelism of all layers."""
        return None if group_ranks is None else (group_ranks,)

    def refuses_cache_split(self, spec: AttentionSpec, tp: int, kv_sp: int) -> str | None:
        """Its own TP counts both: tp x kv_sp ranks, of which those that would hold copies may cut (not MLA)."""
        ranks, heads = tp * kv_sp, spec.copied_heads
        if heads is None:
            return None
        if ranks <= heads:
            return (
                f"kv_sp {kv_sp} shares out the cache of a KV head among GPUs that hold copies of it, and {heads} KV "
                f"heads on tp × kv_sp = {ranks} GPUs have no copies"
            )
        if kv_sp > ranks // heads:
            return f"kv_sp {kv_sp} exceeds the {ranks // heads} copies of each of the {heads} KV heads"
        if (spec.query_heads // heads) % kv_sp:
            return f"kv_sp {kv_sp} does not divide the {spec.query_heads // heads} query heads of each KV head"
        return None

    def overlap_needs(self, ep: int, attention_dp: int, stage: int) -> str | None:
        """Dual batch overlap hides the all-to-all of experts in deployments of data and expert parallelism."""
        return None if ep == stage and attention_dp > 1 else "needs attention_dp, and ep over all devices of a stage"

    def overlaps_from_tokens(self, words: Sequence[str], *, is_decode: bool) -> int:
        """Below two thresholds (`config/parallel.py`: of steps that decode alone, and of others) it splits nothing."""
        name = f"--dbo-{'decode' if is_decode else 'prefill'}-token-threshold"
        tokens = 32 if is_decode else 512
        for word, following in pairwise((*words, "")):
            flag, _, value = word.partition("=")
            if flag.replace("_", "-") == name and (value or following).isdecimal():
                tokens = int(value or following)
        return tokens

    def hides_host(self, version: str | None) -> bool:
        """By asynchronous scheduling, which nothing published in 2025 had by default."""
        if self.generation(version) != "v1" or "2025" in (version or ""):
            return False
        return (release_of(version) or _HIDES_HOST) >= _HIDES_HOST

    def decodes_in_prompt_kernel(self, generation: str, accelerator_class: str) -> bool:
        """FlashAttention 2 does, which cards before Hopper run (pull request 58013, open, parts the two)."""
        return generation == "v1" and accelerator_class in ("ampere", "ada")

    def reads_for_each_head(self, generation: str, accelerator_class: str) -> bool:
        """Its first kernels for the paged cache did, kept longest on AMD's cards (on NVIDIA's: FlashAttention)."""
        return generation == "v0" and accelerator_class.startswith("cdna")

    def matmul_share(self, generation: str, accelerator_class: str) -> float:
        """That of the MI300X in 2024."""
        return _EARLY_MATMUL_SHARE if (generation, accelerator_class) == ("v0", "cdna3") else 1.0

    def chooses_always(self, version: str | None) -> bool:
        number = release_of(version)
        return number is not None and number < _CHOOSES_WHERE_NEEDED

    def logs_whole_requests(self, release: Release | None) -> bool:
        return release is None or release >= _DERIVED_TOKENS

    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        """What `release` (the newest where it is not known) keeps of a GPU of an `architecture` with `total_bytes`."""
        effective = release or (10**4, 0)
        is_large = total_bytes >= _LARGE_GIB * GIB and architecture != "ampere" and effective >= _NEW_ENGINE
        outside_bytes = _BLACKWELL_BYTES if architecture == "blackwell" else _ALONE_BYTES
        return MemoryUse(
            batch=_LARGE if is_large else _SMALL,
            alone_bytes=outside_bytes,
            group_bytes=max(outside_bytes, _GROUP_BYTES),
            linked_bytes=max(outside_bytes, _LINKED_BYTES if effective >= _WORKSPACES else _EARLIER_LINKED_BYTES),
            logit_bytes=_LOGIT_BYTES if effective >= _UNSORTED else _SORTING_LOGIT_BYTES,
            graph_bytes=_GRAPH_BYTES if effective >= _GRAPHS_COUNTED else 0.0,
            takes_whole_prompts=effective < _NEW_ENGINE,
            mxfp4_tile=_MXFP4_TILE,
        )

    def load_generator(self, load: LoadToSend) -> tuple[str, ...]:
        """`vllm bench serve` (its documentation, 0.11): without a range ratio all lengths are those stated."""
        return "vllm", "bench", "serve", *load.data, *load.lengths, "--ignore-eos", *load.amount


ENGINE = _VLLM(
    name="vllm",
    title="vLLM",
    spellings=("vllm",),
    version="0.33.0",
    image="vllm/vllm-openai:v0.33.0",
    # Its guide to installation, "Pre-built images" of ROCm.
    rocm_image="vllm/vllm-openai-rocm:v0.33.0",
    programs=("vllm",),
    modules=("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "dynamo.vllm"),
    starting_images=("vllm-openai", "vllm-openai-rocm"),
    versioned_images=("vllm-openai", "vllm"),
    begins=r"vllm[ \t]+serve|vllm\.entrypoints\.\S{1,60}",
    vocabulary=VOCABULARY,
    makes={"fp8": "fp8_per_tensor"},
    by_itself={
        "experts": "each rank gets a run of experts in their order (--expert-placement-strategy linear)",
        "all-to-all": "dispatch and combine run over --all2all-backend allgather_reducescatter; DeepEP, where it is "
        "installed, is faster: deepep_high_throughput for prefill, deepep_low_latency for decode",
        "prefix cache": "prompts that share a beginning are served from its cache (--no-enable-prefix-caching to stop)",
    },
    vocabulary_padding=64,
    refuses_split_blocks=True,
    deals_out_experts=True,
    slices_groups=False,
    splits_dense_sequence=False,
    rank_order="groups",
    cache_formats={"fp8": "fp8", "nvfp4": "nvfp4"},
    # Its NIXL connector, which hands caches over here, refuses stages of a `kv_consumer` (`nixl/base_worker.py`).
    first_pipelined={"decode": None},
    cut_variable="VLLM_PP_LAYER_PARTITION",
    kernel_tables="vllm",
    reduces_pairs_over_pcie=True,
    handoff_s=_HANDOFF_S,
    ends_at_last_position=True,
    # `OffloadingConnector`: each whole block is stored once it is computed, the longest unused go first.
    keeps_in_host="copies",
    host_unit_bytes=GIB,
    counts_host_of_ranks=True,
    # `VllmConfig` puts the connector of `--kv-offloading-size` in the place of the one that is stated.
    keeps_beside_transfer=False,
    pushes_from_stages="NixlPushConnector",
    # `_check_enough_kv_cache_memory` (`v1/core/kv_cache_utils.py`); the old engine in `worker/worker.py`.
    refuses_unheld_length=True,
    refuses_beyond_positions=True,
    host_flags={"--async-scheduling": True, "--no-async-scheduling": False},
)
