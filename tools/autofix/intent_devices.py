"""Where an author runs things: the devices of every stage, in the author's order.

Read by majority over a stage's operators, so that one damaged operator moves nothing. What cannot be read is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..plan.document import PHASES, Phase
from ..plan.layout import StageLayout
from ..plan.stage_reading import ExpertGroup, has_all_experts, read_stage
from ..plan.view import PhaseView, PlanView, StageView
from ..rules.degrees import root_replicas


@dataclass(frozen=True, slots=True)
class ReplicaDevices:
    """The stages of one replica by index, for each phase that it has a branch of."""

    phases: Mapping[Phase, Mapping[int, StageLayout]]

    def stage(self, phase: Phase, index: int) -> StageLayout | None:
        """The devices of one stage, `None` where nothing of it is there."""
        return self.phases.get(phase, {}).get(index)

    def of(self, phase: Phase) -> tuple[str, ...]:
        """Every device of the phase in the order of its stages."""
        stages = self.phases.get(phase, {})
        return tuple(dict.fromkeys(device for index in sorted(stages) for device in stages[index].devices))


def read_devices(view: PlanView) -> tuple[ReplicaDevices, ...]:
    """The replicas below the root, in order; phases that hang below no replica count as one replica's."""
    branches: dict[int, dict[Phase, Mapping[int, StageLayout]]] = {}
    replicas = root_replicas(view) or list(view.replicas)
    order = {replica.position: place for place, replica in enumerate(replicas)}
    for branch in view.phases:
        place = 0 if branch.replica is None else order.get(branch.replica.position)
        for phase in PHASES:
            if branch.phase == phase and place is not None:
                branches.setdefault(place, {}).setdefault(phase, _stages(branch))
    count = max(len(replicas), 1 + max(branches, default=-1))
    return tuple(ReplicaDevices(branches.get(place, {})) for place in range(count))


def numbered_stages(branch: PhaseView) -> list[tuple[int, StageView]]:
    """The stages of a branch by number: by their layers where these are whole, else as they are numbered."""
    by_layers = sorted(branch.stages, key=lambda stage: stage.layers or (-1, -1))
    spans = [stage.layers or (-1, -1) for stage in by_layers]
    ends = [-1, *(last for _, last in spans)]
    if [first for first, _ in spans] == [last + 1 for last in ends[:-1]]:
        return list(enumerate(by_layers))
    indices = [-1 if stage.index is None else stage.index for stage in branch.stages]
    whole = 0 in indices and min(indices) == 0 and len(set(indices)) == len(indices)
    return [(index if whole else place, branch.stages[place]) for place, index in enumerate(indices)]


def _stages(branch: PhaseView) -> dict[int, StageLayout]:
    found = {number: _stage(number, stage) for number, stage in numbered_stages(branch)}
    return {number: read for number, read in found.items() if read.devices}


def _stage(number: int, stage: StageView) -> StageLayout:
    reading, settled = read_stage(stage), stage.settled_devices
    attention, ffn = (part.devices if part.is_whole else () for part in (reading.attention, reading.ffn))
    groups = reading.experts if has_all_experts(reading.experts) else ()
    order = [*_order(stage, groups), *attention, *stage.ordered_devices]
    return StageLayout(
        index=number,
        layers=stage.layers or (0, -1),
        devices=tuple(dict.fromkeys(device for device in order if device in settled)),
        attention_devices=tuple(device for device in attention if device in settled),
        ffn_devices=tuple(device for device in ffn if device in settled),
    )


def _order(stage: StageView, groups: Sequence[ExpertGroup]) -> list[str]:
    """Devices of the stage as the author orders them; some may stand twice, and some not belong to it.

    Groups of several devices stand side by side; else the list that most nodes with all of the stage's devices have.
    """
    side_by_side = any(len(devices) > 1 for _, devices in groups)
    first = [device for _, devices in groups if side_by_side for device in devices]
    settled = stage.settled_devices
    whole = [devices for devices in stage.device_lists if len(devices) == len(settled) == len(settled & {*devices})]
    return [*first, *max(whole, key=lambda devices: stage.device_lists[devices], default=())]
