"""Reads the layout of a plan from its graph, not from what is declared.

If operators of a stage differ, which is illegal, the majority counts, so that a damaged plan can still be evaluated
beside the findings on it. An unreadable graph is an `InputError`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..catalog.architecture import Architecture
from ..checkpoint import checked
from ..errors import InputError
from .degrees import DEGREE_NAMES, phase_degrees
from .document import PHASES, Phase, PhaseStrategy
from .layout import NO_EXPERTS, Layout, PhaseLayout, ReplicaLayout, StageLayout
from .placement import own_cut
from .stage_reading import ExpertGroup, read_stage, sharding
from .view import PhaseView, PlanView, StageView


def read_layout(view: PlanView, architecture: Architecture) -> Layout:
    """The layout of a plan, with the degrees and devices that its graph shows.

    Raises InputError: no phase can be read, or a stage's layers are not the model's.
    """
    served = [phases for phases in view.served.values() if not phases.keys().isdisjoint(PHASES)]
    if not served:
        raise InputError("the plan has no phase inside a replica: nothing can be evaluated (rule PH001)")
    reader = _PhaseReader(view, architecture)
    replicas = [
        ReplicaLayout(
            index,
            reader.read("prefill", phases["prefill"][0]) if "prefill" in phases else None,
            reader.read("decode", phases["decode"][0]) if "decode" in phases else None,
        )
        for index, phases in enumerate(checked(served, 1))
    ]
    return Layout(tuple(replicas))


class _PhaseReader:
    """Reads phase branches; a copy of an earlier one gets that one's layout with its own devices."""

    def __init__(self, view: PlanView, architecture: Architecture) -> None:
        self._view = view
        self._architecture = architecture
        self._known: dict[Hashable, tuple[PhaseView, PhaseLayout]] = {}

    def read(self, phase: Phase, branch: PhaseView) -> PhaseLayout:
        likeness = self._view.likeness_of(branch)
        if likeness is None:
            return self._layout(phase, branch)
        if likeness not in self._known:
            self._known[likeness] = (branch, self._layout(phase, branch))
        first, layout = self._known[likeness]
        if first is branch:
            return layout
        names: dict[str, str] = {}
        for stage, copied in zip(first.stages, branch.stages, strict=True):
            names.update(zip(stage.ordered_devices, copied.ordered_devices, strict=True))
        return layout.renamed(names)

    def _layout(self, phase: Phase, branch: PhaseView) -> PhaseLayout:
        if not branch.stages:
            raise InputError(f"phase {branch.node.id!r} has no PipelineStageNode (rule PP001)")
        stages = tuple(_stage(index, stage, self._architecture) for index, stage in enumerate(branch.stages))
        return PhaseLayout(phase, _degrees(self._view, branch, stages), stages)


def _experts(groups: Sequence[ExpertGroup]) -> dict[str, tuple[frozenset[int], int]]:
    """The expert ids that each device hosts, and which slice of each."""
    by_device: dict[str, tuple[frozenset[int], int]] = {}
    for experts, devices in groups:
        ids = frozenset(experts)
        by_device.update({device: (ids, place) for place, device in enumerate(devices)})
    return by_device


def _vocabulary(stage: StageView, node_type: str) -> tuple[tuple[str, ...], int]:
    """Devices of the embedding or LM head of a stage, and the number of parts of its table."""
    for node in stage.node.children_of_type(node_type):
        return node.devices or tuple(sorted(stage.devices)), sharding(node).size("tp")
    return (), 1


def _stage_order(stage: StageView, attention: tuple[str, ...]) -> tuple[str, ...]:
    """Devices of the stage: attention's in rank order, then the others in the order of most of its nodes."""
    if stage.devices.issubset(attention):
        return tuple(dict.fromkeys(attention))
    return tuple(dict.fromkeys((*attention, *stage.usual_order(stage.devices), *stage.ordered_devices)))


def _stage(index: int, stage: StageView, architecture: Architecture) -> StageLayout:
    layers, reading = _layers(stage, architecture), read_stage(stage)
    attention = reading.attention.devices
    devices = _stage_order(stage, attention)
    if not devices:
        raise InputError(f"stage {stage.node.id!r:.60} has no devices: nothing runs there")
    experts = _experts(reading.experts)
    embedding, embedding_shards = _vocabulary(stage, "EmbeddingNode")
    head, head_shards = _vocabulary(stage, "LMHeadNode")
    return StageLayout(
        index=index,
        layers=layers,
        devices=devices,
        attention_devices=attention,
        ffn_devices=reading.ffn.devices,
        experts=tuple(experts[d][0] if d in experts else NO_EXPERTS for d in devices) if experts else (),
        expert_ranks=tuple(experts[d][1] if d in experts else 0 for d in devices) if experts else (),
        embedding_devices=embedding,
        head_devices=head,
        vocab_shards=max(embedding_shards, head_shards),
    )


def _layers(stage: StageView, architecture: Architecture) -> tuple[int, int]:
    layers = stage.layers
    if layers is None or not 0 <= layers[0] <= layers[1] < architecture.num_layers:
        raise InputError(
            f"stage {stage.node.id!r}: layers {stage.node.raw.get('layers')!r:.60} are not layers of this model, "
            f"which has 0 to {architecture.num_layers - 1} (rule PP004)"
        )
    return layers


def _degrees(view: PlanView, branch: PhaseView, stages: Sequence[StageLayout]) -> PhaseStrategy:
    """The degrees that the phase shows; an unreadable exchange of sequence shards counts as `all_gather`."""
    shown = phase_degrees(view, branch)
    sizes = {name: shown.likeliest(name) for name in DEGREE_NAMES}
    return PhaseStrategy(
        pp=len(stages),
        sp=sizes["sp"],
        ep=sizes["ep"],
        tp=sizes["tp"],
        tp_ffn=sizes["tp_ffn"],
        stage_layers=own_cut(tuple(last - first + 1 for first, last in (stage.layers for stage in stages))),
        sp_kind=None if sizes["sp"] == 1 else shown.exchange or "all_gather",
        attention_dp=sizes["attention_dp"] if sizes["attention_dp"] > 1 else None,
        tp_expert=sizes["tp_expert"] if sizes["tp_expert"] > 1 else None,
        kv_sp=sizes["kv_sp"] if sizes["kv_sp"] > 1 else None,
    )
