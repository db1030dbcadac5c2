"""The place of a value in a foreign proposal: what the keys above it state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from .figures import Place


class Item(Struct, eq=False):
    """A node of a foreign proposal: what was read of it, and its children."""

    type: str | None
    name: str | None
    where: str
    phase: str | None = None
    replica: int | None = None
    parent_name: str | None = None
    index: int | None = None
    layers: tuple[int, int] | None = None
    layer_count: int | None = None
    devices: list[Place] | None = None
    experts: list[int | list[int]] | None = None
    rank: dict[str, int] | int | None = None
    role: str | None = None
    # Fields that our format has under the same name.
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    children: list[Item] = field(default_factory=list["Item"])
    parent: Item | None = None

    def adopt(self, child: Item) -> None:
        """Hang `child` below this node."""
        child.parent = self
        self.children.append(child)


def all_below(items: list[Item]) -> Iterator[Item]:
    """The items and everything below them, parents first."""
    waiting = [*items]
    for item in waiting:
        yield item
        waiting.extend(item.children)


class Scope(Struct, frozen=True):
    """The keys above a value: their path, the phase and operator that they name, whether they speak of hardware."""

    where: str = ""
    phase: str | None = None
    operator: str | None = None
    hardware: bool = False
    is_node: bool = False
    item: Item | None = None
    # The number of nested texts around the value.
    depth: int = 0

    @property
    def phase_or_any(self) -> str:
        """The phase that claims are filed under; `any` if none was named."""
        return self.phase or "any"

    @property
    def key(self) -> str:
        """The last of the keys."""
        return self.where.rpartition("/")[2]

    def inside(self, key: object, **changes: Any) -> Scope:
        """The scope of the value at `key`."""
        return replace(self, where=f"{self.where}/{str(key)[:60]}", **changes)

    def but(self, **changes: Any) -> Scope:
        """The same place with changed fields."""
        return replace(self, **changes)
