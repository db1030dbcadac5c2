"""NVIDIA NIM: a server on TensorRT-LLM as it was in 2024."""

from __future__ import annotations

from .trtllm import QUANTISED_CACHE, SHARED_READ_HEADS, TensorRTLLM


class _NIM(TensorRTLLM):
    def generation(self, version: str | None) -> str:
        return "any"

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
