"""The assumptions that completing a request makes as it goes: each value that nobody stated, with its reason."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from .intent import Assumption


class Notes(Struct):
    """The assumptions made so far."""

    assumptions: list[Assumption] = field(default_factory=list[Assumption])

    def assume(self, name: str, value: Any, reason: str) -> Any:
        """Record an assumption and return its value."""
        self.assumptions.append(Assumption(field=name, value=value, reason=reason))
        return value
