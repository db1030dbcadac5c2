"""SGLang: its load generator, and what it keeps of a GPU's memory."""

from __future__ import annotations

from .load import LoadToSend
from .memory import GIB, Batch, MemoryUse

# What handing a request from prefill to decode adds to its first token: as for vLLM, of 12 runs (DeepSeek-R1 on B200,
# GB200, GB300), where it lies between -0.10 and 0.02 s.
HANDOFF_S = 0.0
# `mem_fraction_static` is of what is free before the weights are loaded, and holds weights and KV cache alone:
# activations and CUDA graphs lie outside of it (its guide to hyperparameters). What is gone before: the CUDA context
# (78.81 of 79.19 GiB are left on one GPU); with the libraries of a group, and what loading leaves, as two starts of
# Kimi-K2 on eight ranks log it.
MEMORY_USE = MemoryUse(
    batch=Batch(8192, 1024),
    alone_bytes=0.4 * GIB,
    group_bytes=2.5 * GIB,
    linked_bytes=2.5 * GIB,
    counts_passes=False,
)


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`sglang.bench_serving` (its guide): the range ratio is the shortest length as a share of the stated one."""
    return (
        "python", "-m", "sglang.bench_serving", "--backend", "sglang", "--model", load.model,
        "--dataset-name", "random", "--random-input-len", str(load.input_tokens),
        "--random-output-len", str(load.output_tokens), "--random-range-ratio", "1",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
