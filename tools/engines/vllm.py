"""vLLM: its load generator."""

from __future__ import annotations

from .load import LoadToSend


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`vllm bench serve` (its documentation, 0.11): without a range ratio all lengths are those stated."""
    return (
        "vllm", "bench", "serve", "--model", load.model, "--dataset-name", "random",
        "--random-input-len", str(load.input_tokens), "--random-output-len", str(load.output_tokens), "--ignore-eos",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
