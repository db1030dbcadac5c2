"""Where an author runs things: the devices of his replicas, stage by stage.

The devices of every stage are read by majority over its operators, so that one damaged operator moves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..plan.degrees import root_replicas
from ..plan.document import PHASES, Phase
from ..plan.layout import StageLayout
from ..plan.stage_reading import ExpertGroup, has_all_experts, read_stage
from ..plan.view import PhaseView, PlanView, StageView, parse_device, places_of
from .settled_cut import numbered_stages


class ReplicaDevices(Struct, frozen=True):
    """The stages of one replica by index, for each phase that it has a branch of."""

    phases: Mapping[Phase, Mapping[int, StageLayout]]

    @property
    def staged(self) -> list[Phase]:
        """The phases that have a stage."""
        return [phase for phase, stages in self.phases.items() if stages]

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
    return [*first, *stage.usual_order(stage.settled_devices)]


def gathered(wanted: Sequence[ReplicaDevices], node_size: int) -> tuple[ReplicaDevices, ...]:
    """The author's devices without those that are not on the node that has most of their replica's.

    Of a replica that is larger than a node: of their stage's.
    """
    found: list[ReplicaDevices] = []
    for replica in wanted:
        of_replica = list(dict.fromkeys(device for phase in replica.phases for device in replica.of(phase)))
        whole = of_replica if len(of_replica) <= node_size else None
        phases: dict[Phase, dict[int, StageLayout]] = {
            phase: {index: _on_one_node(stage, whole or stage.devices) for index, stage in stages.items()}
            for phase, stages in replica.phases.items()
        }
        found.append(ReplicaDevices(phases))
    return tuple(found)


def _on_one_node(stage: StageLayout, group: Sequence[str]) -> StageLayout:
    """The stage without its devices on other nodes than the one that has most of `group`."""
    nodes = Counter(node for node, _ in places_of(group))
    node = max(nodes, key=lambda one: (nodes[one], -one), default=0)

    def kept(devices: Sequence[str]) -> tuple[str, ...]:
        return tuple(device for device in devices if (parse_device(device) or (None,))[0] == node)

    return replace(
        stage,
        devices=kept(stage.devices),
        attention_devices=kept(stage.attention_devices),
        ffn_devices=kept(stage.ffn_devices),
    )
