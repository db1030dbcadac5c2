"""Reads the layout of a plan out of its graph: what the graph shows, not what is declared.

Where operators of a stage differ, which a legal plan's never do, what most of them show counts: what a rule can judge
is read as far as it can be, so that other findings stand beside. What cannot be read at all is an `InputError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ..catalog.architecture import Architecture
from ..checkpoint import checked
from ..errors import InputError
from .document import Phase, PhaseStrategy
from .layout import NO_EXPERTS, Layout, PhaseLayout, ReplicaLayout, StageLayout
from .placement import own_cut
from .stage_reading import ExpertGroup, read_stage, sharding
from .view import PhaseView, PlanView, StageView

_ONE = (1, 1, 1, 1)


def read_layout(view: PlanView, architecture: Architecture) -> Layout:
    """The replicas of a plan with the degrees and devices that their graphs show.

    Raises:
        InputError: no phase can be read, or a stage's layers are not the model's.
    """
    phases: dict[str, dict[Phase, PhaseView]] = {}
    for phase in view.phases:
        if phase.replica is not None and phase.phase in ("prefill", "decode"):
            name: Phase = "prefill" if phase.phase == "prefill" else "decode"
            phases.setdefault(phase.replica.id, {}).setdefault(name, phase)
    if not phases:
        raise InputError("the plan has no phase inside a replica: nothing can be evaluated (rule PH001)")
    reader = _PhaseReader(view, architecture)
    replicas = [
        ReplicaLayout(
            index,
            reader.read("prefill", found["prefill"]) if "prefill" in found else None,
            reader.read("decode", found["decode"]) if "decode" in found else None,
        )
        for index, found in enumerate(checked(phases.values(), 1))
    ]
    return Layout(tuple(replicas))


class _PhaseReader:
    """Reads phase branches; of copies the first, the others are it on their own devices."""

    def __init__(self, view: PlanView, architecture: Architecture) -> None:
        self._view = view
        self._architecture = architecture
        self._known: dict[Hashable, tuple[PhaseView, PhaseLayout]] = {}

    def read(self, phase: Phase, found: PhaseView) -> PhaseLayout:
        likeness = self._view.likeness_of(found)
        if likeness is None:
            return _read_phase(phase, found, self._architecture)
        if likeness not in self._known:
            self._known[likeness] = (found, _read_phase(phase, found, self._architecture))
        first, layout = self._known[likeness]
        if first is found:
            return layout
        names: dict[str, str] = {}
        for stage, other in zip(first.stages, found.stages, strict=True):
            names.update(zip(stage.ordered_devices, other.ordered_devices, strict=True))
        return layout.renamed(names)


def _experts(groups: Sequence[ExpertGroup]) -> dict[str, tuple[frozenset[int], int, int]]:
    """Per device: the expert ids that it hosts, which slice of each, and in how many slices experts are cut."""
    found: dict[str, tuple[frozenset[int], int, int]] = {}
    for experts, devices in groups:
        ids = frozenset(experts)
        found.update({device: (ids, place, len(devices)) for place, device in enumerate(devices)})
    return found


def _vocabulary(stage: StageView, node_type: str) -> tuple[tuple[str, ...], int]:
    """Devices of the embedding or LM head of a stage, and in how many parts its table is cut."""
    for node in stage.node.children_of_type(node_type):
        return node.devices or tuple(sorted(stage.devices)), sharding(node).size("tp")
    return (), 1


def _stage_order(stage: StageView, attention: tuple[str, ...]) -> tuple[str, ...]:
    """Devices of the stage: attention's first, in rank order, then the others as most of its nodes order them."""
    if stage.devices.issubset(attention):
        return tuple(dict.fromkeys(attention))
    whole = [devices for devices in stage.device_lists if len(devices) == len(stage.devices) == len({*devices})]
    usual = max(whole, key=lambda devices: stage.device_lists[devices], default=())
    return tuple(dict.fromkeys((*attention, *usual, *stage.ordered_devices)))


def _read_phase(phase: Phase, found: PhaseView, architecture: Architecture) -> PhaseLayout:
    if not found.stages:
        raise InputError(f"phase {found.node.id!r} has no PipelineStageNode (rule PP001)")
    stages: list[StageLayout] = []
    attention_sizes: list[tuple[int, int, int, int]] = []
    ffn_sizes: list[tuple[int, int, int, int]] = []
    expert_shapes: list[tuple[int, int]] = []
    for index, stage in enumerate(found.stages):
        first, last = _layers(stage, architecture)
        reading = read_stage(stage)
        attention, ffn = reading.attention.devices, reading.ffn.devices
        devices = _stage_order(stage, attention)
        if not devices:
            raise InputError(f"stage {stage.node.id!r:.60} has no devices: nothing runs there")
        experts = _experts(reading.experts)
        embedding, embedding_shards = _vocabulary(stage, "EmbeddingNode")
        head, head_shards = _vocabulary(stage, "LMHeadNode")
        if attention:
            attention_sizes.append(reading.attention.sizes)
        if ffn:
            ffn_sizes.append(reading.ffn.sizes)
        if experts:
            slices = max(of for _, _, of in experts.values())
            expert_shapes.append((max(1, len(experts) // slices), slices))
        stages.append(
            StageLayout(
                index=index,
                layers=(first, last),
                devices=devices,
                attention_devices=attention,
                ffn_devices=ffn,
                experts=tuple(experts[d][0] if d in experts else NO_EXPERTS for d in devices) if experts else (),
                expert_ranks=tuple(experts[d][1] if d in experts else 0 for d in devices) if experts else (),
                embedding_devices=embedding,
                head_devices=head,
                vocab_shards=max(embedding_shards, head_shards),
            )
        )
    degrees = _degrees(found, stages, attention_sizes, ffn_sizes, expert_shapes)
    cut = own_cut(tuple(last - first + 1 for first, last in (stage.layers for stage in stages)))
    return PhaseLayout(phase, degrees.model_copy(update={"stage_layers": cut}), tuple(stages))


def _layers(stage: StageView, architecture: Architecture) -> tuple[int, int]:
    layers = stage.layers
    if layers is None or not 0 <= layers[0] <= layers[1] < architecture.num_layers:
        raise InputError(
            f"stage {stage.node.id!r}: layers {stage.node.raw.get('layers')!r:.60} are not layers of this model, "
            f"which has 0 to {architecture.num_layers - 1} (rule PP004)"
        )
    return layers


def _degrees(
    found: PhaseView,
    stages: list[StageLayout],
    attention_sizes: list[tuple[int, int, int, int]],
    ffn_sizes: list[tuple[int, int, int, int]],
    expert_shapes: list[tuple[int, int]],
) -> PhaseStrategy:
    dp, kv_sp, sp, tp = Counter(attention_sizes).most_common(1)[0][0] if attention_sizes else _ONE
    tp_ffn = Counter(size[3] for size in ffn_sizes).most_common(1)[0][0] if ffn_sizes else 1
    ep, tp_expert = Counter(expert_shapes).most_common(1)[0][0] if expert_shapes else (1, 1)
    ulysses = any(
        node.role == "sequence_in"
        for stage in found.stages
        for operator in stage.operators()
        for node in operator.children_of_type("AllToAllNode")
    )
    return PhaseStrategy(
        pp=len(stages),
        sp=sp,
        ep=ep,
        tp=tp,
        tp_ffn=tp_ffn,
        sp_kind=None if sp == 1 else "ulysses" if ulysses else "all_gather",
        attention_dp=dp if dp > 1 else None,
        tp_expert=tp_expert if tp_expert > 1 else None,
        kv_sp=kv_sp if kv_sp > 1 else None,
    )
