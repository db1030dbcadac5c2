"""A layout under a setting: everything that memory and time are computed from.

`make_layout` needs no graph (search compares hundreds of strategies); `layout_from_view` reads what
the graph shows, not what the strategy block declares. It judges nothing: an illegal strategy has a layout too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ..checkpoint import checkpoint
from ..engines.names import rank_order
from ..errors import InputError
from ..kept import Caches
from ..plan.document import Strategy
from ..plan.layout import Layout, ReplicaLayout
from ..plan.layout_reader import read_layout
from ..plan.placement import StageMaker, place, with_vocabulary
from ..plan.view import PlanView
from .make_setting import read_setting
from .setting import Setting


@dataclass(frozen=True, kw_only=True)
class LoadedLayout(Layout):
    """A layout and the setting that it serves its load in."""

    setting: Setting
    # Whether replicas of one kind differ in nothing but their devices' names (always so where made from a strategy).
    replicas_alike: bool = False
    # What other modules work out of it.
    caches: Caches = field(default_factory=Caches, repr=False, compare=False)

    def with_setting(self, setting: Setting) -> LoadedLayout:
        """The same devices under another setting."""
        return replace(self, setting=setting, caches={})

    @cached_property
    def representatives(self) -> tuple[ReplicaLayout, ...]:
        """The replicas that memory has to be computed for: the first of those that are alike but for device names."""
        return tuple({id(replica): replica for replica in self._alike.values()}.values())

    @cached_property
    def _alike(self) -> dict[int, ReplicaLayout]:
        """For each replica, by identity, the first that differs from it in nothing but the names of its devices."""
        first: dict[tuple[object, ...], ReplicaLayout] = {}
        return {
            id(replica): first.setdefault(replica.kind if self.replicas_alike else replica.shape, replica)
            for replica in self.replicas
        }

    def representative(self, replica: ReplicaLayout) -> ReplicaLayout:
        """The first replica that differs from `replica` in nothing but the names of its devices."""
        return self._alike[id(replica)]

    @cached_property
    def billed_gpus(self) -> int:
        """Devices of all nodes that it is in: nodes are rented whole."""
        return len({device.split(".")[0] for device in self.devices}) * self.setting.hardware.gpus_per_node


def stage_maker(setting: Setting) -> StageMaker:
    """What makes stages in `setting`."""
    order = rank_order(None if setting.serving is None else setting.serving.engine)
    return StageMaker(setting.architecture, setting.laid_out_relaxations, rank_order=order)


def make_layout(setting: Setting, strategy: Strategy) -> LoadedLayout:
    """The layout of `strategy` on the hardware of `setting`; no graph is needed.

    Raises:
        InputError: the hardware has too few devices.
    """
    checkpoint()
    facts = setting.hardware
    layout = place(strategy, stage_maker(setting), nodes=facts.nodes, gpus_per_node=facts.gpus_per_node)
    if layout is None:
        raise InputError(f"the strategy needs {strategy.gpu_count} devices, the hardware has {facts.gpus}")
    return LoadedLayout(layout.replicas, setting=setting, replicas_alike=True)


def layout_from_view(view: PlanView) -> LoadedLayout:
    """The layout that a plan's whole graph shows, in the setting that the plan states.

    Raises:
        InputError: what cannot be read, by name.
    """
    whole = view.whole
    return whole.once(layout_from_view, lambda: _read(whole))


def _read(view: PlanView) -> LoadedLayout:
    setting = read_setting(view)
    layout = read_layout(view, setting.architecture)
    if "vocab_parallel" in view.brought_relaxations:
        # The engine splits it, drawn or not.
        layout = with_vocabulary(layout, is_split=True)
    return LoadedLayout(layout.replicas, setting=setting)
