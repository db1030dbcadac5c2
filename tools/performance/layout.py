"""A layout with its setting, the input of all memory and time computations; settings from blocks or from a plan.

`make_layout` needs no graph (search compares hundreds of strategies); `layout_from_view` reads what the graph shows,
not what the strategy block declares. Nothing is judged: an illegal strategy has a layout too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar, get_args

from msgspec import field
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from ..caches import Caches, Recent, entries
from ..catalog.accelerators import Accelerator
from ..catalog.architecture import Architecture
from ..catalog.hardware import HardwareFacts, hardware_facts
from ..catalog.precision import weight_dtypes
from ..checkpoint import checkpoint
from ..engines.names import rank_order
from ..errors import InputError
from ..plan.constraints import each_read, free_bytes
from ..plan.document import (
    HardwareBlock,
    Phase,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.latency_limits import LATENCY_FIELDS, STATISTIC_FIELDS
from ..plan.layout import Layout, ReplicaLayout
from ..plan.layout_reader import read_layout
from ..plan.placement import StageMaker, place, with_vocabulary
from ..plan.view import PlanView
from .setting import Setting


class LoadedLayout(Layout, frozen=True, kw_only=True, dict=True):
    """A layout and the setting in which it serves its load."""

    setting: Setting
    # Whether replicas of one kind differ only in their devices' names (always so when made from a strategy).
    replicas_alike: bool = False
    # Results that other modules compute from it.
    caches: Caches = field(default_factory=Caches)

    def with_setting(self, setting: Setting) -> LoadedLayout:
        """The same devices under another setting."""
        return replace(self, setting=setting, caches={})

    @cached_property
    def representatives(self) -> tuple[ReplicaLayout, ...]:
        """The replicas to compute memory for: the first of each group that differs only in device names."""
        return tuple({id(replica): replica for replica in self._alike.values()}.values())

    @cached_property
    def _alike(self) -> dict[int, ReplicaLayout]:
        """For each replica, by identity, the first that differs from it only in device names."""
        first: dict[tuple[object, ...], ReplicaLayout] = {}
        return {
            id(replica): first.setdefault(replica.kind if self.replicas_alike else replica.shape, replica)
            for replica in self.replicas
        }

    def representative(self, replica: ReplicaLayout) -> ReplicaLayout:
        """The first replica that differs from `replica` only in device names."""
        return self._alike[id(replica)]

    def requests_of_replica(self, phase: Phase, concurrency: int | None = None) -> int:
        """Requests in flight on each of the replicas that serve `phase`, shared evenly and rounded up."""
        replicas = self.prefill_replicas if phase == "prefill" else self.decode_replicas
        in_flight = self.setting.workload.concurrency if concurrency is None else concurrency
        return math.ceil(in_flight / max(1, len(replicas)))

    @cached_property
    def billed_gpus(self) -> int:
        """Number of GPUs of all its nodes, since nodes are rented whole."""
        return len({device.split(".")[0] for device in self.devices}) * self.setting.hardware.gpus_per_node


def stage_maker(setting: Setting) -> StageMaker:
    """The maker of stages in `setting`."""
    order = rank_order(setting.serving.engine)
    return StageMaker(setting.architecture, setting.laid_out_relaxations, rank_order=order)


def make_layout(setting: Setting, strategy: Strategy) -> LoadedLayout:
    """The layout of `strategy` on the hardware of `setting`; no graph is needed.

    Raises InputError: the hardware has too few devices.
    """
    checkpoint()
    facts = setting.hardware
    layout = place(strategy, stage_maker(setting), nodes=facts.nodes, gpus_per_node=facts.gpus_per_node)
    if layout is None:
        raise InputError(f"the strategy needs {strategy.gpu_count} devices, the hardware has {facts.gpus}")
    return LoadedLayout(layout.replicas, setting=setting, replicas_alike=True)


def layout_from_view(view: PlanView) -> LoadedLayout:
    """The layout that a plan's whole graph shows, in the setting that the plan states.

    Raises InputError: a part cannot be read (it names the part).
    """
    whole = view.whole
    return whole.once(layout_from_view, lambda: _read(whole))


def _read(view: PlanView) -> LoadedLayout:
    setting = read_setting(view)
    layout = read_layout(view, setting.architecture)
    if "vocab_parallel" in view.brought_relaxations:
        # The engine splits it whether the graph shows it or not.
        layout = with_vocabulary(layout, is_split=True)
    return LoadedLayout(layout.replicas, setting=setting)


_Block = TypeVar("_Block", bound=BaseModel)


def usable_share(policy: PolicyBlock, hardware: HardwareFacts) -> float:
    """The usable share of a GPU's memory: the policy's, or less where a constraint keeps more free."""
    free = free_bytes(policy.constraints or ()) / hardware.memory_bytes
    return max(1e-9, min(policy.memory_utilization, 1.0 - free))


def make_setting(
    architecture: Architecture,
    hardware: HardwareFacts,
    workload: WorkloadBlock,
    precision: PrecisionBlock,
    policy: PolicyBlock | None = None,
    serving: ServingBlock | None = None,
) -> Setting:
    """The setting of a deployment, with the weight formats that `precision.weights` means for this model.

    It shares cached results with a recent setting that differs only in the number of requests and the limits.
    """
    chosen = policy or PolicyBlock()
    setting = Setting(
        architecture=architecture,
        hardware=hardware,
        workload=workload,
        precision=precision,
        dtypes=weight_dtypes(architecture, precision.weights),
        relaxations=frozenset(chosen.relaxations),
        memory_utilization=usable_share(chosen, hardware),
        serving=serving or ServingBlock(),
    )
    recent = _RECENT.like(setting, _are_timed_alike)
    return recent if recent.workload == workload else recent.with_workload(workload)


# An entry (times of a piece, a run of a load) has some kilobytes.
_RECENT = Recent[Setting](32, 10_000, lambda setting: entries(setting.caches))
# Workload fields with the amount of load and the limits.
_LOAD_FIELDS = ("concurrency", "objective", *LATENCY_FIELDS, *STATISTIC_FIELDS)


def _are_timed_alike(first: Setting, second: Setting) -> bool:
    """Whether the `caches` of one setting hold for the other; architectures are compared by identity, as layers are."""
    if first.architecture is not second.architecture or first.hardware != second.hardware:
        return False
    return (
        first.workload.model_copy(update={name: getattr(second.workload, name) for name in _LOAD_FIELDS})
        == second.workload
        and first.precision == second.precision
        and first.dtypes == second.dtypes
        and first.relaxations == second.relaxations
        and first.memory_utilization == second.memory_utilization
        and first.serving == second.serving
    )


def read_block(model: type[_Block], raw: Mapping[str, Any], where: str) -> _Block:
    """`raw` as `model`, without unknown fields and unreadable optional ones (rule ST001 reports them).

    Raises InputError: a required field is missing or unreadable.
    """
    usable = {name: value for name, value in raw.items() if name in model.model_fields}
    for _ in range(len(usable) + 1):
        try:
            return model.model_validate(usable)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            if name not in usable or model.model_fields[name].is_required():
                raise InputError(f"{where}.{name}: {first['msg']}") from None
            del usable[name]
    raise InputError(f"{where} cannot be read")


def read_policy(view: PlanView) -> PolicyBlock:
    """The policy of a plan: its known relaxations, and each constraint that can be read."""
    known = [name for name in get_args(Relaxation) if name in view.relaxations]
    constraints = [*filter(None, each_read(view.policy.get("constraints")))] or None
    return read_block(PolicyBlock, {**view.policy, "relaxations": known, "constraints": constraints}, "policy")


def facts_of(block: HardwareBlock, accelerator: Accelerator | None = None) -> HardwareFacts:
    """The facts of a hardware block; `accelerator`: its own, if already looked up."""
    return hardware_facts(
        accelerator or block.accelerator,
        block.nodes,
        block.gpus_per_node,
        intra_node_bw_gb_s=block.intra_node_bw_gb_s,
        inter_node_bw_gb_s=block.inter_node_bw_gb_s,
    )


def read_setting(view: PlanView) -> Setting:
    """The setting that a plan states. Raises InputError: a part cannot be read (it names the part)."""
    if view.architecture is None:
        raise InputError(view.architecture_error or "model.config cannot be read")
    hardware = facts_of(read_block(HardwareBlock, view.hardware, "hardware"))
    return make_setting(
        view.architecture,
        hardware,
        read_block(WorkloadBlock, view.workload, "workload"),
        read_block(PrecisionBlock, view.precision, "precision"),
        read_policy(view),
        read_block(ServingBlock, view.serving, "serving"),
    )
