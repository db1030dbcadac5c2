"""TensorRT-LLM: its load generator, and what it keeps of a GPU's memory."""

from __future__ import annotations

from .load import LoadToSend
from .memory import GIB, Batch, MemoryUse

# What handing a request from prefill to decode adds to its first token: as for vLLM, of 18 runs (DeepSeek-R1 and
# Kimi-K2.5 on B200, GB200, GB300), a quarter of them below 0.06 s.
HANDOFF_S = 0.09
# `free_gpu_memory_fraction` is of what weights, activations, runtime and libraries leave free (its guide to memory
# use, `_util.py`). What the runtime takes: least squares over the peaks of NVIDIA's sizing sweep of release 0.9.
MEMORY_USE = MemoryUse(
    batch=Batch(8192, 2048),
    alone_bytes=1.2 * GIB,
    group_bytes=5.0 * GIB,
    linked_bytes=5.0 * GIB,
    of_free=True,
)


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`tensorrt_llm.serve.scripts.benchmark_serving` (guide to benchmarking with trtllm-serve)."""
    return (
        "python", "-m", "tensorrt_llm.serve.scripts.benchmark_serving", "--backend", "openai", "--model", load.model,
        "--dataset-name", "random", "--random-ids", "--random-input-len", str(load.input_tokens),
        "--random-output-len", str(load.output_tokens), "--random-range-ratio", "0", "--ignore-eos",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
