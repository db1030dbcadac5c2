"""SGLang: its load generator."""

from __future__ import annotations

from .load import LoadToSend


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`sglang.bench_serving` (its guide): the range ratio is the shortest length as a share of the stated one."""
    return (
        "python", "-m", "sglang.bench_serving", "--backend", "sglang", "--model", load.model,
        "--dataset-name", "random", "--random-input-len", str(load.input_tokens),
        "--random-output-len", str(load.output_tokens), "--random-range-ratio", "1",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
