"""How large a plan can be for the stated hardware and layers, and how much a document may write out.

A few characters of the compact form stand for any number of nodes, but no plan has more than every device in every
operator of every layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..catalog.config import read_architecture
from ..errors import ShardwrightError
from .element_reader import SchemaFault
from .elements import as_int, as_list, as_mapping

# Documents of this size are read, judged and timed within a gigabyte of memory.
MAX_NODES = 250_000
MAX_EDGES = 400_000
# What `repeat` and `like` may write out in total: the plan of some thousand GPUs, judged and mended in seconds. A wide
# node repeated often is large before there are many nodes, so values are counted too.
MAX_COPIED_NODES = 50_000
MAX_COPIED_EDGES = 100_000
MAX_COPIED_VALUES = 1_500_000
# The same if hardware or layers are unknown.
_UNKNOWN_NODES, _UNKNOWN_EDGES = 10_000, 30_000

# Nodes in one phase, for one layer on one device: a shard of every operator and a finer split of each; as many
# containers, collectives, routers and cache writes if each device is a replica. Several times what a plan has.
_NODES_OF_A_PLACE = 64
_EDGES_OF_A_NODE = 4
_PHASES = 2
# Room for nodes that belong to no layer and device, and for faulty drafts.
_SPARE_NODES = 10_000
_CHARS_OF_A_VALUE = 64


class PlanSize(Struct, frozen=True):
    """Nodes and edges that no plan exceeds, and for what: "16 GPUs and 8 layers"."""

    nodes: int
    edges: int
    of: str


def largest_plan(document: Mapping[str, Any]) -> PlanSize | None:
    """The size that no plan for the hardware and model of `document` exceeds; `None` if these cannot be read."""
    hardware = as_mapping(document.get("hardware"))
    nodes, gpus_per_node = as_int(hardware.get("nodes")), as_int(hardware.get("gpus_per_node"))
    layers = _layers(as_mapping(document.get("model")).get("config"))
    if nodes is None or gpus_per_node is None or layers is None or min(nodes, gpus_per_node) < 1:
        return None
    gpus = nodes * gpus_per_node
    most_nodes = min(MAX_NODES, _PHASES * gpus * layers * _NODES_OF_A_PLACE + _SPARE_NODES)
    # Every prefill replica may hand its cache to every decode replica, layer by layer.
    most_edges = min(MAX_EDGES, most_nodes * _EDGES_OF_A_NODE + gpus * gpus * layers)
    return PlanSize(most_nodes, most_edges, f"{gpus:,} GPUs and {layers:,} layers")


def excess_of(document: Mapping[str, Any]) -> SchemaFault | None:
    """The fault of the list of `document` that is longer than that of any plan for its hardware and model, if any."""
    counts = {part: len(as_list(document.get(part))) for part in ("nodes", "edges")}
    if max(counts.values()) <= _SPARE_NODES:
        return None
    most = largest_plan(document) or PlanSize(MAX_NODES, MAX_EDGES, "any hardware")
    for part, size in (("nodes", most.nodes), ("edges", most.edges)):
        if counts[part] > size:
            message = f"{counts[part]:,} {part}, more than {size:,}, the most that a plan for {most.of} can have"
            return SchemaFault(f"/{part}", message, counts[part], size)
    return None


def _layers(config: object) -> int | None:
    if not isinstance(config, dict):
        return None
    try:
        return read_architecture(as_mapping(config), where="model.config").num_layers  # pyright: ignore[reportUnknownArgumentType] - raw JSON
    except (ShardwrightError, RecursionError):
        return None


class Room:
    """The room that is left for the compact form of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        largest = largest_plan(document)
        most = largest or PlanSize(_UNKNOWN_NODES, _UNKNOWN_EDGES, "unknown hardware or layers")
        self.nodes = min(MAX_COPIED_NODES, most.nodes)
        self.edges = min(MAX_COPIED_EDGES, most.edges)
        self._values = MAX_COPIED_VALUES
        self._of = most.of

    def take(self, *, nodes: int = 0, edges: int = 0, values: int = 0) -> bool:
        """Take room for this many; return whether they fit."""
        if nodes > self.nodes or edges > self.edges or values > self._values:
            return False
        self.nodes, self.edges, self._values = self.nodes - nodes, self.edges - edges, self._values - values
        return True

    def __str__(self) -> str:
        return f"for {self._of}, {self.nodes:,} nodes and {self.edges:,} edges more at most"


def size_of(item: object) -> int:
    """The number of values in `item`, long texts counted by length: the cost of one copy."""
    values, total = [item], 0
    for value in values:
        total += 1 + (len(value) // _CHARS_OF_A_VALUE if isinstance(value, str) else 0)
        values.extend(as_mapping(value).values())
        values.extend(as_list(value))
    return total
