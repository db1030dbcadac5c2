"""SGLang."""

from __future__ import annotations

from .engine import Engine
from .load import LoadToSend
from .memory import GIB, Batch, MemoryUse
from .release import Release

# As for vLLM, of 12 runs (DeepSeek-R1 on B200,
# GB200, GB300), where it lies between -0.10 and 0.02 s.
_HANDOFF_S = 0.0
# `mem_fraction_static` is of what is free before the weights are loaded, and holds weights and KV cache alone:
# activations and CUDA graphs lie outside of it (its guide to hyperparameters). What is gone before: the CUDA context
# (78.81 of 79.19 GiB are left on one GPU); with the libraries of a group, and what loading leaves, as two starts of
# Kimi-K2 on eight ranks log it.
_MEMORY_USE = MemoryUse(
    batch=Batch(8192, 1024),
    alone_bytes=0.4 * GIB,
    group_bytes=2.5 * GIB,
    linked_bytes=2.5 * GIB,
    counts_passes=False,
)


class _SGLang(Engine):
    def ffn_degrees(self, stage: int, group_ranks: int | None, *, is_moe: bool) -> tuple[int, ...] | None:
        """A dense FFN runs over the whole tensor group or, with `--moe-dense-tp-size 1`, whole on each rank."""
        return tuple(sorted({1, stage})) if is_moe else (stage,)

    def overlap_needs(self, ep: int, attention_dp: int, stage: int) -> str | None:
        """Two-batch overlap hides an all-to-all of experts that spans the tensor group."""
        return None if ep == stage > 1 else "needs ep over all devices of a stage"

    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        return _MEMORY_USE

    def load_generator(self, load: LoadToSend) -> tuple[str, ...]:
        """`sglang.bench_serving` (its guide): the range ratio is the shortest length as a share of the stated one."""
        tool = "python", "-m", "sglang.bench_serving", "--backend", "sglang"
        return *tool, *load.data, *load.lengths, "--random-range-ratio", "1", *load.amount


ENGINE = _SGLang(
    name="sglang",
    title="SGLang",
    spellings=("sglang", "sgl"),
    vocabulary_padding=64,
    refuses_split_blocks=True,
    cache_formats={"fp8": "fp8_e4m3", "nvfp4": "nvfp4", "mxfp8": "mxfp8"},
    # The first releases whose scheduler has an event loop for stages of a prefill server, and of a decode server.
    first_pipelined={"prefill": (0, 5, 1), "decode": (0, 5, 7)},
    cut_setting='SGLANG_PP_LAYER_PARTITION="{}"',
    kernel_tables="sglang",
    reduces_pairs_over_pcie=True,
    handoff_s=_HANDOFF_S,
    # `page_size`.
    cache_block_tokens=1,
)
