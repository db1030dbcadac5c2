"""What a load generator is asked to send."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadToSend:
    """`requests` of random tokens, all as long: from `users` at once (closed loop), or `rate_per_s` at random."""

    model: str
    input_tokens: int
    output_tokens: int
    requests: int
    users: int | None = None
    rate_per_s: float | None = None

    # Options that the load generators of vLLM, SGLang and TensorRT-LLM have in common.

    @property
    def data(self) -> tuple[str, ...]:
        """Random prompts for the model."""
        return "--model", self.model, "--dataset-name", "random"

    @property
    def lengths(self) -> tuple[str, ...]:
        """Tokens of a prompt and of its output."""
        return "--random-input-len", str(self.input_tokens), "--random-output-len", str(self.output_tokens)

    @property
    def amount(self) -> tuple[str, ...]:
        """How many requests, and how they come."""
        rate, users = self.rate_per_s, self.users
        come = ("--max-concurrency", str(users)) if rate is None else ("--request-rate", f"{rate:g}")
        return "--num-prompts", str(self.requests), *come
