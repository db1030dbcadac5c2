"""DP002: replicas are independent: no edge, no collective and no device is shared between two.

Between a prefill-only and a decode-only replica there is the KV cache and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.degrees import root_replicas
from ...plan.view import PHASES, NodeView, PlanView, as_str
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..reading import is_cache_edge, is_on_too_many, label
from ..tree import is_between_placed


def _only_phase(replica: NodeView) -> str | None:
    """The only phase that the replica serves, "" if it has no name; `None` if it serves none or both."""
    served = {as_str(phase.raw.get("phase")) or "" for phase in replica.children_of_type("PhaseNode")}
    return served.pop() if len(served) == 1 else None


def _edges(view: PlanView) -> Iterator[Finding]:
    alone = {replica.position: _only_phase(replica) for replica in view.replicas}
    served = set(alone.values())
    # The distinct view only lacks edges inside blocks, and KV-cache edges inside replicas or between split ones.
    for edge, start, end in view.distinct.links:
        # Siblings that are no replicas themselves are in the same replica.
        if start.parent is end.parent and "ReplicaNode" not in (start.type, end.type):
            continue
        source, target = start.within("ReplicaNode"), end.within("ReplicaNode")
        if source is None or target is None or source is target:
            continue
        # Disaggregated (R14), in either direction: PH002 judges the edges between the two.
        split = {alone[source.position], alone[target.position]} == {"prefill", "decode"}
        if split and start is not source and end is not target:
            continue
        # If all replicas serve the same single phase, some of them misname it (PH001), as one does with another name.
        named = len(served) > 1 and {alone[source.position], alone[target.position]} <= {*PHASES, None}
        if is_cache_edge(edge) and not named and None not in served:
            continue
        if not is_between_placed(view, edge):
            continue
        yield Finding(
            "edge-between",
            f"the edge {label(start)} → {label(end)} joins replicas {label(source)} and {label(target)}",
            where=edge,
            nodes=(start, end),
            value=[source.id, target.id],
            remedy="drop the edge: replicas know nothing of one another",
        )


def _inside(view: PlanView) -> Iterator[tuple[NodeView, NodeView]]:
    """Each node with devices, and the replica below the root that it belongs to."""
    counted = {replica.position for replica in root_replicas(view)}
    for node in view.nodes:
        replica = node.within("ReplicaNode") if node.devices else None
        if replica is not None and replica.position in counted:
            yield node, replica


def _devices(view: PlanView) -> Iterator[Finding]:
    """Devices that two replicas compute on, and collectives that reach devices of another replica."""
    owners: dict[str, NodeView] = {}
    shared: dict[tuple[int, int], tuple[NodeView, NodeView, set[str]]] = {}
    seen: set[tuple[tuple[str, ...], int]] = set()
    inside = list(_inside(view))
    for node, replica in inside:
        if node.is_collective or (node.devices, replica.position) in seen or is_on_too_many(view, node):
            continue
        seen.add((node.devices, replica.position))
        for device in node.devices:
            owner = owners.setdefault(device, replica)
            if owner is not replica:
                shared.setdefault((owner.position, replica.position), (owner, replica, set()))[2].add(device)
    for owner, replica, devices in shared.values():
        named = sorted(devices)
        yield Finding(
            "shared-device",
            f"replicas {label(owner)} and {label(replica)} share {', '.join(named[:MAX_NAMES])}",
            where=replica,
            nodes=(owner,),
            value=named,
            expected=[],
            remedy=f"move {label(replica)} to free devices and count them again",
        )
    entangled = {frozenset(pair) for pair in shared}
    for node, replica in inside:
        foreign: dict[int, list[str]] = {}
        for device in node.devices if node.is_collective else ():
            owner = owners.setdefault(device, replica)
            if owner is not replica and frozenset((owner.position, replica.position)) not in entangled:
                foreign.setdefault(owner.position, []).append(device)
        for devices in foreign.values():
            other = owners[devices[0]]
            yield Finding(
                "collective-reaches-over",
                f"{label(node)} of replica {label(replica)} reaches over to {', '.join(devices[:MAX_NAMES])} of "
                f"{label(other)}",
                where=node,
                nodes=(replica, other),
                value=devices,
                expected=[],
                remedy="keep the collective on its own operator's devices",
            )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every edge between two replicas and every device that two of them use."""
    if len(view.replicas) > 1:
        yield from _edges(view)
        yield from _devices(view)


RULE = Rule(
    id="DP002",
    name="entangled replicas",
    requirement=(
        "Replicas are independent: no edge, collective or device is shared between two (a prefill-only replica hands "
        "its KV cache to a decode-only one)."
    ),
    rationale=(
        "Replicas serve different requests at different moments. One that waits for another, or shares a device with "
        "it, adds no throughput."
    ),
    source="002 §3.1",
    remedy="give each replica edges and devices of its own",
    check=check,
    bad=Example(
        "dense-dp2-tp2",
        (Edit("add_edge", value={"source": "r0", "target": "r1", "type": "data"}),),
    ),
)
