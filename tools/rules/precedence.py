"""One fault, one finding: drops findings that are explained by a finding of another rule.

A rule need not know which other rules report the cause of its findings: this list does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set

from .base import Violation

# Findings of a rule are dropped if one of these rules has a finding at the same place.
EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    "ST003": ("CO003", "CO004", "CO005", "TP001", "TP006", "SP001", "EP007", "DP001"),
    "ST005": ("PP001", "TP003", "EP002", "EP009", "SP002", "SP003", "DE003"),
    "ST006": ("PP003", "DP002", "PH002", "TP004"),
    "PP001": ("PP002", "PP003", "ST004"),
    "DE002": ("DE005",),
    "GP001": ("GP002", "EP008"),
    # A stage whose lists repeat a device is narrower than they suggest.
    "GP003": ("GP004",),
    # A device that does not exist, or is named twice, in place of another.
    "TP002": ("GP004",),
    "DE003": ("GP004",),
    # A group, or an operator, that reaches into another stage takes its collectives with it.
    "DE004": ("GP004", "TP004"),
    # Two rules cover the same shard in the same wrong place: keep the one that names the place.
    "TP001": ("CO005",),
    "SP001": ("CO005",),
    "EP001": ("EP007",),
    # A node that is moved takes its edges along, and lacks those of its new place.
    "PP003": ("PP007",),
    "PP005": ("EP009",),
    # Shards that lead into the collective of another operator do not lead into their own.
    "TP003": ("TP004",),
    # An edge that no type would mend.
    "ST007": ("EP002", "EP006", "EP009", "ST004"),
    # An expert on several devices because it is split.
    "EP003": ("TP006", "CO003"),
    # A count that is the product of degrees, ep among them.
    "EP008": ("GP002",),
    # Degrees that do not divide because a shard is missing or surplus.
    "TP005": ("TP002", "CO002"),
    "EN011": ("TP002", "CO002"),
    # A device whose shard is missing waits for it.
    "GP005": ("TP002", "TP004", "SP002"),
    # A shard below another operator shares a device with a shard of that operator.
    "GP004": ("TP004",),
    # A misplaced replica serves no phase either, and replicas that divide the model cover no layers as a whole.
    "PH001": ("DP001",),
    "PP004": ("DP003",),
    "EP005": ("DP003", "EP008"),
}
# Of these it may be anywhere in the plan.
EXPLAINED_ANYWHERE = frozenset({"GP001", "GP003"})


def _shown(violation: Violation) -> Iterator[tuple[str, Hashable]]:
    """The places of a finding, which others are compared with: its edges and nodes, or its field if it has neither."""
    yield from (("edge", edge) for edge in violation.edges)
    for node in violation.nodes:
        yield "node", node
        if not violation.edges:
            yield "node alone", node
    if not violation.edges and not violation.nodes:
        yield "field", violation.path


def _looked_for(violation: Violation) -> Iterator[tuple[str, Hashable]]:
    """The places where the finding that explains `violation` may be.

    A finding about an edge is compared by its edges with other findings about edges, and by the nodes at their ends
    with those that name nodes alone: two bad edges of one node are two faults.
    """
    if violation.edges:
        yield from (("edge", edge) for edge in violation.edges)
        yield from (("node alone", end) for edge in violation.edges for end in edge)
    elif violation.nodes:
        yield from (("node", node) for node in violation.nodes)
    else:
        yield "field", violation.path


def without_explained(violations: list[Violation]) -> list[Violation]:
    """`violations` without those that others explain."""
    places: dict[str, set[tuple[str, Hashable]]] = {}
    for violation in violations:
        places.setdefault(violation.rule, set()).update(_shown(violation))
    return [violation for violation in violations if not _is_explained(violation, places)]


def _is_explained(violation: Violation, places: Mapping[str, Set[tuple[str, Hashable]]]) -> bool:
    return any(
        violation.rule in EXPLAINED_ANYWHERE or not places[by].isdisjoint(_looked_for(violation))
        for by in EXPLAINED_BY.get(violation.rule, ())
        if by in places
    )
