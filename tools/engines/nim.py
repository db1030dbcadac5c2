"""NVIDIA NIM: a server on TensorRT-LLM as it was in 2024."""

from __future__ import annotations

from msgspec.structs import replace

from .engine import Batch, MemoryUse
from .release import Release
from .trtllm import MEMORY_USE, QUANTISED_CACHE, SHARED_READ_HEADS, TensorRTLLM


class _NIM(TensorRTLLM, frozen=True):
    def generation(self, version: str | None) -> str:
        return "any"

    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        """Whole prompts of some 32 thousand tokens go into a step, by the waves that its closed loops run in.

        What its engines were built for is not known, so that what passes take is not counted.
        """
        return replace(MEMORY_USE, batch=Batch(32768, 1024), counts_passes=False)

    def gives_heads_one_block(self, generation: str) -> bool:
        return True


ENGINE = _NIM(
    name="nim",
    title="NIM",
    spellings=("nim",),
    is_judged=False,
    kernel_tables="trtllm",
    shared_read_heads=SHARED_READ_HEADS,
    quantised_cache=QUANTISED_CACHE,
)
