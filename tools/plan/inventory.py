"""The devices of a cluster in the order in which they are handed out: node by node."""

from __future__ import annotations


class Inventory:
    """Hands out devices node by node."""

    def __init__(self, nodes: int, gpus_per_node: int) -> None:
        self.gpus_per_node = gpus_per_node
        self.total = nodes * gpus_per_node
        self.next = 0

    def skip_to_room(self, width: int) -> None:
        """Go on to the next node where `width` devices in a row would straddle this one and the next."""
        used_in_node = self.next % self.gpus_per_node
        if used_in_node and used_in_node + width > self.gpus_per_node:
            self.next += self.gpus_per_node - used_in_node

    def take(self, width: int, *, align: bool) -> list[str] | None:
        """`width` devices in a row; aligned: inside one node where they fit in one, else from a node's start."""
        if align:
            self.skip_to_room(width)
        start = self.next
        if start + width > self.total:
            return None
        self.next = start + width
        return [f"n{i // self.gpus_per_node}.g{i % self.gpus_per_node}" for i in range(start, start + width)]
