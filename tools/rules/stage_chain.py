"""The chain of stages of a phase: their order, the edges between them, and where the chain is broken.

The order shows three times: in `index`, in `layers` and in the edges. Two that agree win, so that a wrong index, a
wrong layer range or a turned edge is one fault and not three.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from msgspec import Struct

from ..plan.branches import once_per_phase
from ..plan.view import EdgeView, Link, PhaseView, StageView


class Gap(Struct, frozen=True, eq=False):
    """Two consecutive stages with no edge from `before` to `after`.

    `parallel`: both are reached from earlier stages, so they run side by side. `turned`: the edge from `after` to
    `before`, if there is one.
    """

    before: StageView
    after: StageView
    parallel: bool
    turned: EdgeView | None


class StageChain(Struct, frozen=True, eq=False):
    """Stages of one phase in order of execution, `place` by node position, and the edges between two of them."""

    phase: PhaseView
    stages: tuple[StageView, ...]
    place: dict[int, int]
    links: tuple[Link, ...]

    def span(self, link: Link) -> int:
        """How many places the edge goes forward; negative if it runs against the order."""
        _, source, target = link
        return self.place[target.position] - self.place[source.position]

    def gaps(self) -> Iterator[Gap]:
        """Consecutive stages that no edge joins in order."""
        entered = [False] * len(self.stages)
        exited = [False] * len(self.stages)
        steps: dict[int, list[Link]] = {}
        for link in self.links:
            source, target = (self.place[end.position] for end in link[1:])
            if target > source:
                entered[target] = exited[source] = True
            if abs(target - source) == 1:
                steps.setdefault(min(source, target), []).append(link)
        for place, (before, after) in enumerate(pairwise(self.stages)):
            joined = steps.get(place, ())
            if any(self.span(link) == 1 for link in joined):
                continue
            same_index = before.index is not None and before.index == after.index
            # Two stages with the same index that both lead on are two heads of a chain.
            parallel = (entered[place] and entered[place + 1]) or (same_index and exited[place] and exited[place + 1])
            yield Gap(before, after, parallel, next((edge for edge, _, _ in joined), None))

    def lacks_stages(self) -> bool:
        """Whether indices and layers both rise with gaps: stages are missing (PP004)."""
        spans = [(stage.index, stage.layers) for stage in self.stages]
        following = (-1, -1)
        hole = False
        for index, layers in spans:
            if index is None or layers is None or index <= following[0] or layers[0] <= following[1]:
                return False
            hole = hole or (index > following[0] + 1 and layers[0] > following[1] + 1)
            following = (index, layers[1])
        return hole

    def parallel_positions(self) -> frozenset[int]:
        """Node positions of the stages that run in parallel to another."""
        pairs = (gap for gap in self.gaps() if gap.parallel)
        return frozenset(stage.node.position for gap in pairs for stage in (gap.before, gap.after))


@once_per_phase
def stage_chain(phase: PhaseView) -> StageChain:
    """The chain of `phase`."""
    positions = {stage.node.position for stage in phase.stages}
    links = tuple(
        (edge, stage.node, edge.target)
        for stage in phase.stages
        for edge in stage.node.edges_out
        if edge.target is not None and edge.target is not stage.node and edge.target.position in positions
    )
    stages = _execution_order(phase.stages, links)
    return StageChain(phase, stages, {stage.node.position: place for place, stage in enumerate(stages)}, links)


def _execution_order(by_index: tuple[StageView, ...], links: tuple[Link, ...]) -> tuple[StageView, ...]:
    by_edges = _order_of_edges(by_index, links)
    if by_edges is None or by_edges == by_index:
        return by_index
    return by_edges if by_edges == _order_of_layers(by_index) else by_index


def _order_of_layers(stages: tuple[StageView, ...]) -> tuple[StageView, ...] | None:
    """Stages sorted by layers; `None` if these leave the order open."""
    spans = [stage.layers for stage in stages]
    if None in spans or len(set(spans)) < len(spans):
        return None
    return tuple(sorted(stages, key=lambda stage: stage.layers or (0, 0)))


def _order_of_edges(stages: tuple[StageView, ...], links: tuple[Link, ...]) -> tuple[StageView, ...] | None:
    """The only order that the edges allow; `None` if they allow several or none."""
    by_position = {stage.node.position: stage for stage in stages}
    sorter = TopologicalSorter[int](dict.fromkeys(by_position, ()))
    for _, source, target in links:
        sorter.add(target.position, source.position)
    try:
        sorter.prepare()
    except CycleError:
        return None
    order: list[StageView] = []
    while len(ready := sorter.get_ready()) == 1:
        order.append(by_position[ready[0]])
        sorter.done(*ready)
    return tuple(order) if len(order) == len(stages) else None
