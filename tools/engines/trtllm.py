"""TensorRT-LLM: its load generator."""

from __future__ import annotations

from .load import LoadToSend


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`tensorrt_llm.serve.scripts.benchmark_serving` (guide to benchmarking with trtllm-serve)."""
    return (
        "python", "-m", "tensorrt_llm.serve.scripts.benchmark_serving", "--backend", "openai", "--model", load.model,
        "--dataset-name", "random", "--random-ids", "--random-input-len", str(load.input_tokens),
        "--random-output-len", str(load.output_tokens), "--random-range-ratio", "0", "--ignore-eos",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
