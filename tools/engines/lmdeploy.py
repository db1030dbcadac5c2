"""LMDeploy with its engine TurboMind."""

from __future__ import annotations

from msgspec.structs import replace

from .engine import Batch, Engine, MemoryUse
from .release import Release
from .trtllm import MEMORY_USE


class _LMDeploy(Engine, frozen=True):
    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        """It takes its share of free memory, as TensorRT-LLM does; its largest batch is `max_batch_size`."""
        return replace(MEMORY_USE, batch=Batch(MEMORY_USE.batch.tokens, 256))


ENGINE = _LMDeploy(
    name="lmdeploy",
    title="LMDeploy",
    spellings=("lmdeploy", "turbomind"),
    is_judged=False,
    kernel_tables="vllm",
    reduces_pairs_over_pcie=True,
    # `cache_block_seq_len`.
    cache_block_tokens=64,
)
