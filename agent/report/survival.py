"""What the loss of a node stops, of a plan that has to survive it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...tools.language.lexicons.reserved import SURVIVES
from ...tools.plan.constraints import ReservedConstraint
from ...tools.plan.devices import parse_device
from ...tools.plan.view import PlanView

if TYPE_CHECKING:
    from ...tools.plan.document import Plan


def survival_lines(plan: Plan) -> Iterator[str]:
    """That a free node takes the place of a lost one only once servers are started there, and what stops till then."""
    kept = (limit for limit in plan.policy.constraints or () if isinstance(limit, ReservedConstraint))
    nodes = (limit.words for limit in kept if limit.kind == "reserved_nodes")
    words = next(filter(SURVIVES.search, nodes), None)
    if words is None:
        return
    alone = " and ".join(f"{phase} on {node}" for phase, node in _only_nodes(plan))
    stops = f"it stops all service where a phase has no other node ({alone})" if alone else "the others go on serving"
    yield f"“{words}”: servers of a lost node have to be started on what stays free, and until then {stops}"


def _only_nodes(plan: Plan) -> Iterator[tuple[str, str]]:
    """Each phase with each node that all of its replicas need."""
    nodes: dict[str, list[set[int]]] = defaultdict(list)
    for branch in PlanView(plan.model_dump(mode="json")).phases:
        spots = (parse_device(device) for stage in branch.stages for device in stage.devices)
        nodes[branch.phase or ""].append({spot[0] for spot in spots if spot is not None})
    for phase, replicas in nodes.items():
        yield from ((phase, f"n{node}") for node in sorted(set.intersection(*replicas)))
