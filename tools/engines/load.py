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

    @property
    def arrivals(self) -> tuple[str, ...]:
        """The options that all three tools have for it."""
        if self.rate_per_s is not None:
            return ("--request-rate", f"{self.rate_per_s:g}")
        return ("--max-concurrency", str(self.users))
