"""Phase branches and pipeline stages of a plan as the rules read them. Nothing here judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from copy import copy
from functools import cached_property, wraps
from itertools import chain
from typing import Any, ParamSpec, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from .elements import OPERATOR_TYPES, NodeView

P = ParamSpec("P")
Read = TypeVar("Read")


class Siblings(Struct, frozen=True, eq=False, dict=True):
    """All stages of one phase branch."""

    stages: list[StageView] = field(default_factory=list["StageView"])

    @cached_property
    def agreed_devices(self) -> frozenset[str]:
        """Devices that two operators of one of the stages name."""
        return frozenset[str]().union(*[stage.agreed_devices for stage in self.stages])


class StageView(Struct, frozen=True, eq=False, dict=True):
    """One pipeline stage of one phase of one replica. `nodes` are all its descendants.

    `distinct_blocks` are the `blocks`; in `PlanView.distinct` without those that are like an earlier one.
    """

    siblings: Siblings

    node: NodeView
    index: int | None
    layers: tuple[int, int] | None
    nodes: tuple[NodeView, ...]
    blocks: tuple[NodeView, ...]
    distinct_blocks: tuple[NodeView, ...]

    @cached_property
    def device_lists(self) -> Counter[tuple[str, ...]]:
        """Each list of devices that nodes of the stage name, with the number of these nodes."""
        return Counter(node.devices for node in self.nodes)

    @cached_property
    def devices(self) -> frozenset[str]:
        """D: every device that the stage or a node below it names."""
        return frozenset(self.node.devices).union(*self.device_lists)

    @cached_property
    def agreed_devices(self) -> frozenset[str]:
        """Devices that at least two operators name; an embedding or LM head counts as an operator.

        The nodes of one operator are one witness: a fault that moves a shard moves its cache write and collectives too.
        """
        witnesses: list[set[tuple[str, ...]]] = [set()]
        for node in self.nodes:
            if node.parent is self.node or (node.parent is not None and node.parent.type == "LayerBlockNode"):
                witnesses.append(set())
            witnesses[-1].add(node.devices)
        seen: set[str] = set()
        twice: set[str] = set()
        for lists in witnesses:
            named = {device for devices in lists for device in devices}
            twice |= seen & named
            seen |= named
        return frozenset(twice)

    @cached_property
    def settled_devices(self) -> frozenset[str]:
        """D as the stage's nodes agree on it: devices that two of them name, or all named ones if there are none.

        Without strayed devices: those that only one operator names, and that another stage has by agreement.
        """
        if self.agreed_devices == self.devices:
            return self.devices
        seen: set[str] = set()
        twice: set[str] = set()
        for devices, times in self.device_lists.items():
            twice.update(devices if times > 1 else seen.intersection(devices))
            seen.update(devices)
        strayed = self.siblings.agreed_devices - self.agreed_devices
        return frozenset(twice - strayed or seen - strayed or seen)

    @cached_property
    def ordered_devices(self) -> tuple[str, ...]:
        """D sorted by length of name, then name, so that copies of a stage have the same order."""
        return tuple(sorted(self.devices, key=lambda device: (len(device), device)))

    def usual_order(self, devices: frozenset[str]) -> tuple[str, ...]:
        """The most frequent order of `devices` among the nodes that list exactly these; empty if none does."""
        whole = [listed for listed in self.device_lists if len(listed) == len(devices) == len(devices & {*listed})]
        return max(whole, key=lambda listed: self.device_lists[listed], default=())

    @cached_property
    def operators(self) -> tuple[NodeView, ...]:
        """Attention, FFN and MoE operators of the stage's distinct blocks (shared experts are not listed)."""
        return tuple(child for block in self.distinct_blocks for child in block.children_of_type(*OPERATOR_TYPES))

    @property
    def operators_and_shared(self) -> Iterator[NodeView]:
        """The `operators`, each MoE operator followed by its shared experts."""
        return chain.from_iterable(map(with_shared, self.operators))


def with_shared(operator: NodeView) -> Iterator[NodeView]:
    """An operator and, if it is a MoE operator, its shared experts."""
    yield operator
    if operator.type == "MoENode":
        yield from operator.children_of_type("FFNNode")


class PhaseView(Struct, frozen=True, eq=False):
    """One phase branch of one replica, stages sorted by index (unreadable indices last)."""

    node: NodeView
    replica: NodeView | None
    phase: str | None
    stages: tuple[StageView, ...]
    # Results that several rules share, by the function that computes them: see `once_per_phase`.
    memo: dict[object, Any] = field(default_factory=dict[object, Any])


def once_per_phase(read: Callable[P, Read]) -> Callable[P, Read]:
    """`read`, whose last argument is a phase, computed once for each phase."""

    @wraps(read)
    def recalled(*args: P.args, **kwargs: P.kwargs) -> Read:
        memo = cast("PhaseView", args[-1]).memo
        if read not in memo:
            memo[read] = read(*args, **kwargs)
        return memo[read]

    return recalled


def distinct_phase(phase: PhaseView, left_out: AbstractSet[int]) -> PhaseView:
    """`phase` without the blocks at the positions `left_out` in the `distinct_blocks` of its stages."""
    return replace(phase, stages=tuple([_distinct_stage(stage, left_out) for stage in phase.stages]), memo={})


def _distinct_stage(stage: StageView, left_out: AbstractSet[int]) -> StageView:
    distinct = copy(stage)
    # The copy keeps what was computed for the devices of the whole stage.
    cached = {name: value for name, value in vars(stage).items() if name != "operators"}
    blocks = tuple([block for block in stage.blocks if block.position not in left_out])
    vars(distinct).update(cached, distinct_blocks=blocks)
    return distinct
