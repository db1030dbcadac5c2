"""Which degrees an author decided on: what the strategy declares, and what the graph shows, settled where they differ.

The graph is believed where it is whole; the declaration where other parts of the graph (devices of collectives and
cache writes, other operators, other replicas) bear it out, or where fewer shards than it says are only what is left of
an operator; what neither says is completed as serving engines would and
noted. Whether the degrees are legal is not asked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ..bounds import DEGREE
from ..catalog.architecture import Architecture
from ..plan.document import PHASES, Phase, PhaseStrategy
from ..plan.placement import StageDegrees, attention_width, even_cut
from ..plan.schema import shown
from ..plan.view import NodeView, PlanView, StageView, as_int, as_list, as_mapping
from ..rules.degrees import DEGREE_NAMES, PhaseDegrees, Reading, phase_degrees
from ..rules.judge import DegreeJudge
from ..rules.legality import RELAXATION_OF, Conditions, splits
from ..rules.shown_faults import conditions_of
from ..rules.tensor_parallel.uneven_split import divides
from .intent_devices import numbered_stages
from .intent_notes import Notes

_PAIRS: tuple[tuple[Phase, Phase], ...] = (("prefill", "decode"), ("decode", "prefill"))
_MOST = int(DEGREE.most)
# Beyond this no width of a model is split.
_MOST_TRIED = 4096
# Parts of an operator whose devices say how wide it is.
_WITNESSES = frozenset({"KVCacheUpdateNode", "RouterNode", "AllReduceNode", "ReduceScatterNode", "AllToAllNode"})


@dataclass(frozen=True, slots=True)
class _Sources:
    """All that says something of one phase: its block of the strategy, and the branches of the graph."""

    phase: Phase
    block: Mapping[str, Any]
    branches: Sequence[PhaseDegrees]

    @property
    def is_silent(self) -> bool:
        """Whether nothing is said of this phase."""
        return not any(_stated(self.block, name) for name in ("pp", *DEGREE_NAMES)) and not self.branches

    def readings(self, name: str) -> list[Reading]:
        """Every operator that shows a value for the degree."""
        return [reading for branch in self.branches for reading in branch.readings.get(name, ())]


def _stated(block: Mapping[str, Any], name: str) -> int | None:
    """The degree that was declared; no degree is negative, so that a sign before one is a dash."""
    value = as_int(block.get(name))
    return abs(value) if value is not None and 1 <= abs(value) <= _MOST else None


def read_phases(view: PlanView, architecture: Architecture, notes: Notes) -> dict[Phase, PhaseStrategy]:
    """The degrees of both phases; a phase of which nothing is said takes the other's."""
    found: dict[Phase, PhaseStrategy] = {}
    sources = {phase: _sources(view, phase) for phase in PHASES}
    conditions = replace(conditions_of(view) or Conditions(architecture), architecture=architecture)
    for phase, other in _PAIRS:
        if not sources[phase].is_silent:
            read = _read(sources[phase], sources[other], conditions, notes)
            found[phase] = read if "tp_in_expert" in view.relaxations else _whole_experts(read, architecture)
    if not found:
        given = view.raw.get("strategy")
        notes.lack(f"strategy ({shown(given)}: no degree of a phase in it)" if given else "strategy")
        return found
    for phase, other in _PAIRS:
        if phase not in found:
            found[phase] = _taken_over(found[other], phase, architecture)
            notes.say(f"strategy.{phase}", "as the other phase", f"nothing is said of {phase}")
    return found


def _whole_experts(degrees: PhaseStrategy, architecture: Architecture) -> PhaseStrategy:
    """Experts that may not be split are whole on as many devices, where there are experts enough (rule TP006)."""
    devices = degrees.ep * (degrees.tp_expert or 1)
    if devices == degrees.ep or devices > architecture.num_experts:
        return degrees
    return degrees.model_copy(update={"ep": devices, "tp_expert": None})


def _sources(view: PlanView, phase: Phase) -> _Sources:
    branches = [phase_degrees(view, found) for found in view.phases if found.phase == phase and found.stages]
    return _Sources(phase, as_mapping(view.strategy.get(phase)), branches)


def _taken_over(degrees: PhaseStrategy, phase: Phase, architecture: Architecture) -> PhaseStrategy:
    """`degrees` for the other phase: ranks along the sequence become tensor ranks where that is legal."""
    along = degrees.kv_sp if phase == "prefill" else degrees.sp
    tp = degrees.tp * (along or 1)
    update: dict[str, Any] = {"sp": 1, "kv_sp": None, "sp_kind": None}
    if divides(architecture, "tp", tp):
        update["tp"] = tp
    return degrees.model_copy(update=update)


def _read(own: _Sources, other: _Sources, conditions: Conditions, notes: Notes) -> PhaseStrategy:
    architecture = conditions.architecture
    degrees: dict[str, Any] = {}
    for name in DEGREE_NAMES:
        value = 1 if not splits(architecture, name) else _settled(own, other, name, notes)
        if value is not None and (value > 1 or name not in RELAXATION_OF):
            degrees[name] = value
    cut = _cut(own, other, architecture.num_layers)
    stated_pp, found_pp = _stated(own.block, "pp"), max((len(b.phase.stages) for b in own.branches), default=1)
    pp = len(cut) if cut is not None else stated_pp or found_pp
    degrees["pp"] = pp
    if cut is not None and cut != even_cut(architecture.num_layers, pp):
        degrees["stage_layers"] = cut
    if degrees.get("sp", 1) > 1:
        degrees["sp_kind"] = _exchange(own)
    return _completed(own, degrees, conditions, notes)


def _completed(own: _Sources, degrees: dict[str, Any], conditions: Conditions, notes: Notes) -> PhaseStrategy:
    """Degrees that nobody says: TP of the FFN is attention's as far as that divides, EP the stage's, the others 1.

    Products of stated degrees end where the format's do: beyond that they are as illegal as before.
    """
    architecture = conditions.architecture
    attention = PhaseStrategy.model_validate({name: degrees[name] for name in degrees if name not in ("ep", "tp_ffn")})
    if "tp_ffn" not in degrees and architecture.has_split_ffn:
        along = attention.tp * attention.sp * (attention.kv_sp or 1)
        parts = (tp for tp in range(1, min(along, _MOST_TRIED) + 1) if along % tp == 0)
        legal = DegreeJudge(conditions).legal("tp_ffn", parts, StageDegrees(phase=own.phase))
        # Beside a degree of attention that is not legal either, the same was meant.
        degrees["tp_ffn"] = max(legal) if divides(architecture, "tp", attention.tp) else min(along, _MOST)
        notes.say(f"strategy.{own.phase}.tp_ffn", degrees["tp_ffn"], "not said: as attention")
    if "ep" not in degrees and architecture.is_moe:
        width = max(attention_width(attention), degrees.get("tp_ffn", 1))
        degrees["ep"] = min(max(1, width // (attention.tp_expert or 1)), _MOST)
        notes.say(f"strategy.{own.phase}.ep", degrees["ep"], "not said: all devices of a stage")
    return PhaseStrategy.model_validate(degrees)


def _settled(own: _Sources, other: _Sources, name: str, notes: Notes) -> int | None:
    """The degree that was meant; `None` where neither the declaration nor the graph says one."""
    stated, readings = _stated(own.block, name), own.readings(name)
    counts = Counter(reading.value for reading in readings)
    where = f"strategy.{own.phase}.{name}"
    if not counts:
        if stated is not None:
            notes.say(where, stated, "declared")
        return stated
    most = max(counts.values())
    usual = [value for value, count in counts.items() if count == most]
    shown = stated if stated in usual else min(usual)
    if stated is None or stated == shown:
        notes.say(where, shown, "shown by the graph" if stated is None else "declared, and shown by the graph")
        return shown
    kept = _borne_out(own, other, name, (stated, shown))
    notes.say(
        where, stated if kept else shown,
        f"declared, not outweighed by {shown} in operators" if kept else f"shown by the graph, against {stated}",
    )  # fmt: skip
    return stated if kept else shown


def _borne_out(own: _Sources, other: _Sources, name: str, claims: tuple[int, int]) -> bool:
    """Whether more of the graph speaks for the declared degree than for the one that most operators show."""
    stated, shown = claims
    readings = own.readings(name)
    contradictions = 0
    votes = sum(reading.value == stated for reading in readings)
    if _stated(other.block, name) == stated:
        votes += any(reading.value == stated for reading in other.readings(name))
    for reading in readings:
        if reading.value == shown:
            contradicted = shown > stated or _is_whole(reading.operator)
            votes += _witnesses(reading.operator, name, claims) - contradicted
            contradictions += contradicted
    # Shards that are missing are missing: they bear out no smaller degree.
    return votes > 0 or not contradictions


def _is_whole(operator: NodeView) -> bool:
    """Whether a collective, cache write or router of `operator` has just the devices of its shards.

    A lone shard of an FFN needs none of them: it is whole beside an operator that is whole on the same device.
    """
    devices = _part_devices(operator)
    if not devices:
        return False
    if any(set(child.devices) == devices for child in operator.children if child.type in _WITNESSES):
        return True
    if len(devices) > 1 or operator.type != "FFNNode" or operator.parent is None:
        return False
    beside = (operator.parent, *operator.parent.children)
    return any(
        other.type in ("AttentionNode", "MoENode") and _part_devices(other) == devices and _is_whole(other)
        for other in beside
    )


def _part_devices(operator: NodeView) -> set[str]:
    """The devices of the shards or expert groups of `operator`."""
    parts = "ExpertNode" if operator.type == "MoENode" else "ShardNode"
    return {device for part in operator.children_of_type(parts) for device in part.devices}


def _witnesses(operator: NodeView, name: str, claims: tuple[int, int]) -> int:
    """Parts of `operator` that are as wide as the first claim says, less those as wide as the second."""
    stated, shown = claims
    width = len(_part_devices(operator))
    if not width or width % shown:
        return 0
    sizes = [len(set(child.devices)) for child in operator.children if child.type in _WITNESSES]
    return sizes.count(width // shown * stated) - sizes.count(width)


def _exchange(own: _Sources) -> str | None:
    """How sequence shards are exchanged: what most operators with SP show, else what is declared."""
    kinds: Counter[str] = Counter()
    for reading in own.readings("sp"):
        roles = [child.role for child in reading.operator.children_of_type("AllToAllNode")]
        gathers = len(reading.operator.children_of_type("AllGatherNode"))
        if reading.value > 1 and len(roles) != gathers:
            kinds["ulysses" if len(roles) > gathers else "all_gather"] += 1
    stated = own.block.get("sp_kind")
    declared = stated if stated in ("ulysses", "all_gather") else None
    shown = kinds.most_common(1)[0][0] if kinds else None
    return declared if shown is None or shown == (declared or "all_gather") else shown


def _cut(own: _Sources, other: _Sources, total: int) -> tuple[int, ...] | None:
    """Layers of each stage as most branches have them, else as stated, else as the remains of the graph suggest.

    Of two cuts that equally many branches have, the declaration, then the other phase, then the even cut decides.
    """
    cuts, others = _whole_cuts(own, total), _whole_cuts(other, total)
    stated = _sizes(own.block.get("stage_layers"), total)
    declared_pp = _stated(own.block, "pp")
    if cuts:
        most = max(cuts.values())
        usual = [cut for cut, count in cuts.items() if count == most]
        return min(
            usual,
            key=lambda cut: (
                cut != stated, len(cut) != declared_pp, -others[cut], cut != even_cut(total, len(cut)), cut
            ),
        )  # fmt: skip
    if stated is not None:
        return stated
    return _suggested(own, other, total)


def _whole_cuts(sources: _Sources, total: int) -> Counter[tuple[int, ...]]:
    """The cuts of the whole model that branches show, with the number of branches of each."""
    return Counter(branch.cut for branch in sources.branches if branch.cut is not None and sum(branch.cut) == total)


def _suggested(own: _Sources, other: _Sources, total: int) -> tuple[int, ...] | None:
    """The cut that the most remains of the graph suggest; of those the even one, where it is among them."""
    declared_pp = _stated(own.block, "pp")
    votes = Counter(cut for branch in own.branches for cut in _shared_out(own.branches, branch, total))
    votes = votes or Counter(cut for branch in own.branches for cut in _pieced(branch, total))
    votes.update(_whole_cuts(other, total))
    fitting = {cut: count for cut, count in votes.items() if declared_pp in (None, len(cut))}
    if not fitting or not own.branches:
        return None
    return min(fitting, key=lambda cut: (-fitting[cut], cut != even_cut(total, len(cut)), cut))


def _sizes(value: object, total: int) -> tuple[int, ...] | None:
    sizes = [as_int(size) for size in as_list(value)]
    whole = [size for size in sizes if size is not None and size >= 1]
    return tuple(whole) if whole and len(whole) == len(sizes) and sum(whole) == total else None


def _shared_out(branches: Sequence[PhaseDegrees], branch: PhaseDegrees, total: int) -> Iterator[tuple[int, ...]]:
    """The cut of a branch stretched over the model, where the branches share the layers out (rule DP003)."""
    spans = [[stage.layers for _, stage in numbered_stages(one.phase)] for one in branches]
    flat = sorted(span for stages in spans for span in stages if span is not None)
    whole = len(flat) == sum(map(len, spans)) and flat and flat[0][0] == 0 and flat[-1][1] == total - 1
    if len(spans) < 2 or not whole or any(after[0] != before[1] + 1 for before, after in pairwise(flat)):
        return
    sizes = [span[1] - span[0] + 1 for _, stage in numbered_stages(branch.phase) if (span := stage.layers) is not None]
    if all(size > 0 and size * total % sum(sizes) == 0 for size in sizes):
        yield tuple(size * total // sum(sizes) for size in sizes)


def _pieced(branch: PhaseDegrees, total: int) -> Iterator[tuple[int, ...]]:
    """The cuts that the first layers, and the last layers, of stages and of their blocks suggest."""
    stages = [stage for _, stage in numbered_stages(branch.phase)]
    for spans in ([_span(stage) for stage in stages], [stage.layers for stage in stages]):
        whole = [span for span in spans if span is not None]
        if not stages or len(whole) < len(stages):
            continue
        firsts = [0, *(first for first, _ in whole[1:]), total]
        ends = [0, *(last + 1 for _, last in whole[:-1]), total]
        for bounds in (firsts, ends):
            sizes = tuple(after - before for before, after in pairwise(bounds))
            if all(size >= 1 for size in sizes):
                yield sizes


def _span(stage: StageView) -> tuple[int, int] | None:
    """First and last layer of the stage's blocks."""
    layers = [block.layers for block in stage.blocks]
    known = [span for span in layers if span is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None
