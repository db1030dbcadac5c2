"""What a request is about, as far as the choice of sections depends on it: a named condition per field.

The names in a section's `when` are these fields with hyphens for underscores.
"""

from __future__ import annotations

from msgspec import Struct


class Situation(Struct, frozen=True):
    """The conditions of a request; those that do not hold are false."""

    moe: bool = False
    dense: bool = False
    mla: bool = False
    gqa: bool = False
    sliding_window: bool = False
    linear_attention: bool = False
    long_context: bool = False
    multi_node: bool = False
    single_node: bool = False
    disaggregated: bool = False
    many_requests: bool = False
    latency: bool = False
    throughput: bool = False
    cost: bool = False
    limits: bool = False
    low_precision: bool = False
    relaxations: bool = False
    tight_memory: bool = False

    def holding(self) -> tuple[str, ...]:
        """Names of the conditions that hold, in the order of the fields."""
        return tuple(name for name in CONDITIONS if getattr(self, name.replace("-", "_")))


CONDITIONS: tuple[str, ...] = tuple(name.replace("_", "-") for name in Situation.__struct_fields__)
