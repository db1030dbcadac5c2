"""Reads the strategy that an author decided on: the degrees of both phases, and replicas.

What is not stated is completed as serving engines would, and noted. Legality is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..catalog.architecture import Architecture
from ..input.bounds import DEGREE
from ..plan.degrees import DEGREE_NAMES, root_replicas
from ..plan.document import PHASES, Phase, PhaseStrategy, Strategy
from ..plan.placement import StageDegrees, attention_width, gpu_count, own_cut, phase_width
from ..plan.schema import shown
from ..plan.view import PlanView, as_int, as_list
from ..rules.judge import DegreeJudge
from ..rules.legality import RELAXATION_OF, Conditions, splits
from ..rules.shown_faults import conditions_of
from ..rules.tensor_parallel.uneven_split import divides
from .author_devices import ReplicaDevices
from .branch_places import declared_replicas
from .placing import MOST_DEVICES
from .settled import PhaseClaims, claims_of
from .settled_cut import settled_cut

_PAIRS: tuple[tuple[Phase, Phase], ...] = (("prefill", "decode"), ("decode", "prefill"))
_MOST = int(DEGREE.most)
# No model is split over more devices than this.
_MOST_TRIED = 4096


class Notes(Struct):
    """What was completed because strategy and graph leave it open, in words, and what is missing."""

    completed: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])

    def complete(self, what: str, value: object, source: str) -> None:
        """Note that `what` was left open, and the value and source that complete it."""
        self.completed.append(f"{what} is {f'{value}'[:200]} ({source})")

    def lack(self, what: str) -> None:
        """Note that `what` is stated nowhere."""
        self.missing.append(what)


def read_strategy(
    view: PlanView,
    architecture: Architecture,
    devices: tuple[ReplicaDevices, ...],
    notes: Notes,
    *,
    keep_strategy: bool = False,
) -> Strategy | None:
    """The degrees of both phases and the replicas; `None` if neither strategy nor graph states a degree.

    `keep_strategy`: the strategy block wins over the graph.
    """
    phases = _phases(view, architecture, notes, keep_strategy=keep_strategy)
    if not phases:
        return None
    counts = _sides(view, phases, devices, keep_strategy=keep_strategy)
    if counts is not None:
        sides = {phase: phases[phase].model_copy(update={"replicas": counts[phase]}) for phase in PHASES}
        strategy = Strategy(dp=sum(counts.values()), gpu_count=1, prefill=sides["prefill"], decode=sides["decode"])
        words = f"{counts['prefill']} prefill and {counts['decode']} decode replicas"
        notes.complete("strategy", words, "replicas apart")
    else:
        strategy = Strategy(dp=1, gpu_count=1, prefill=phases["prefill"], decode=phases["decode"])
        strategy = strategy.model_copy(update={"dp": _dp(view, gpu_count(strategy), keep_strategy=keep_strategy)})
    return strategy.model_copy(update={"gpu_count": gpu_count(strategy)})


def _phases(
    view: PlanView, architecture: Architecture, notes: Notes, *, keep_strategy: bool
) -> dict[Phase, PhaseStrategy]:
    """The degrees of both phases; a phase without any takes the other's."""
    by_phase: dict[Phase, PhaseStrategy] = {}
    claims = {phase: claims_of(view, phase, keep_strategy=keep_strategy) for phase in PHASES}
    conditions = replace(conditions_of(view) or Conditions(architecture), architecture=architecture)
    for phase, other in _PAIRS:
        if not claims[phase].are_none:
            read = _read(claims[phase], claims[other], conditions, notes)
            devices = read.ep * (read.tp_expert or 1)
            if "tp_in_expert" not in view.relaxations and read.ep < devices <= architecture.num_experts:
                # Experts that may not be split are placed whole on as many devices (rule TP006).
                read = read.model_copy(update={"ep": devices, "tp_expert": None})
            by_phase[phase] = read
    if not by_phase:
        stated = view.raw.get("strategy")
        notes.lack(f"strategy ({shown(stated)}: no degree of a phase in it)" if stated else "strategy")
        return by_phase
    for phase, other in _PAIRS:
        if phase not in by_phase:
            by_phase[phase] = _taken_over(by_phase[other], phase, architecture)
            notes.complete(f"strategy.{phase}", "as the other phase", f"nothing is said of {phase}")
    return by_phase


def _taken_over(degrees: PhaseStrategy, phase: Phase, architecture: Architecture) -> PhaseStrategy:
    """`degrees` for the other phase: ranks along the sequence become tensor ranks where that is legal."""
    along = degrees.kv_sp if phase == "prefill" else degrees.sp
    tp = degrees.tp * (along or 1)
    tensor = {"tp": tp} if divides(architecture, "tp", tp) else {}
    return degrees.model_copy(update={"sp": 1, "kv_sp": None, "sp_kind": None, **tensor})


def _read(claims: PhaseClaims, other: PhaseClaims, conditions: Conditions, notes: Notes) -> PhaseStrategy:
    architecture = conditions.architecture
    degrees: dict[str, Any] = {}
    for name in DEGREE_NAMES:
        value = claims.settled(name, other) if splits(architecture, name) else 1
        if value is not None and (value > 1 or name not in RELAXATION_OF):
            degrees[name] = value
    cut = settled_cut(claims, other, architecture.num_layers)
    shown_pp = max((len(branch.phase.stages) for branch in claims.branches), default=1)
    degrees["pp"] = len(cut) if cut is not None else claims.declared("pp") or shown_pp
    if cut is not None:
        degrees["stage_layers"] = own_cut(cut)
    if degrees.get("sp", 1) > 1:
        degrees["sp_kind"] = claims.exchange
    return _completed(claims, degrees, conditions, notes)


def _completed(claims: PhaseClaims, degrees: dict[str, Any], conditions: Conditions, notes: Notes) -> PhaseStrategy:
    """The degrees with what nobody states: the FFN has attention's TP as far as that divides, EP the stage's width.

    Products of stated degrees are cut off at the format's bound, where they are illegal anyway.
    """
    architecture = conditions.architecture
    attention = PhaseStrategy.model_validate({name: degrees[name] for name in degrees if name not in ("ep", "tp_ffn")})
    if "tp_ffn" not in degrees and architecture.has_split_ffn:
        along = attention.tp * attention.sp * (attention.kv_sp or 1)
        parts = (tp for tp in range(1, min(along, _MOST_TRIED) + 1) if along % tp == 0)
        legal = DegreeJudge(conditions).legal("tp_ffn", parts, StageDegrees(phase=claims.phase))
        # If attention's degree is illegal too, the same was meant for both.
        degrees["tp_ffn"] = max(legal) if divides(architecture, "tp", attention.tp) else min(along, _MOST)
        notes.complete(f"strategy.{claims.phase}.tp_ffn", degrees["tp_ffn"], "not said: as attention")
    if "ep" not in degrees and architecture.is_moe:
        width = max(attention_width(attention), degrees.get("tp_ffn", 1))
        degrees["ep"] = min(max(1, width // (attention.tp_expert or 1)), _MOST)
        notes.complete(f"strategy.{claims.phase}.ep", degrees["ep"], "not said: all devices of a stage")
    return PhaseStrategy.model_validate(degrees)


def _sides(
    view: PlanView,
    phases: Mapping[Phase, PhaseStrategy],
    devices: tuple[ReplicaDevices, ...],
    *,
    keep_strategy: bool,
) -> dict[Phase, int] | None:
    """Replicas of each phase if prefill and decode are apart; `None` if replicas serve both.

    More than the graph shows are accepted if the declared `dp` and GPU count agree with them; for a phase that it does
    not show, if both phases' replicas are declared or `dp` does not contradict them.
    """
    declared = declared_replicas(view)
    if keep_strategy and len(declared) == len(PHASES):
        return declared
    # A phase without any stage shows no replicas.
    shown: dict[Phase, int] = {phase: sum(replica.staged == [phase] for replica in devices) for phase in PHASES}
    stated = as_int(view.strategy.get("dp")) or 0
    if declared == shown and stated in (0, sum(declared.values())):
        return declared
    agreeing = list(_agreeing_counts(view, phases, shown, declared))
    # Whether a replica serves both phases; a phase that lost its replica does not count.
    served = {(branch.replica.position, branch.phase) for branch in view.phases if branch.replica is not None}
    serves_both = len(served) > len({position for position, _ in served})
    if len(agreeing) == 1 and not serves_both:
        return agreeing[0]
    if any(len(replica.phases) == 2 for replica in devices):
        return None
    counts: dict[Phase, int] = {phase: shown[phase] or declared.get(phase, 0) for phase in PHASES}
    if declared:
        counts = {phase: count or max(0, stated - sum(counts.values())) for phase, count in counts.items()}
    agrees = len(declared) == len(PHASES) or (declared and stated in (0, sum(counts.values())))
    return counts if all(counts.values()) and (agrees or all(shown.values())) else None


def _agreeing_counts(
    view: PlanView, phases: Mapping[Phase, PhaseStrategy], shown: Mapping[Phase, int], declared: Mapping[Phase, int]
) -> Iterator[dict[Phase, int]]:
    """Replicas of each phase, no fewer than are shown, that agree with the declared `dp` and GPU count.

    If none are declared, some must be shown, and the GPU count must not fit replicas that serve both phases.
    """
    dp, gpus = as_int(view.strategy.get("dp")) or 0, as_int(view.strategy.get("gpu_count"))
    widths = [phase_width(phases[phase]) for phase in PHASES]
    if not declared and (gpus == dp * max(widths) or not any(shown.values())):
        return
    for prefill in range(1, min(dp, MOST_DEVICES)):
        counts: dict[Phase, int] = {"prefill": prefill, "decode": dp - prefill}
        is_kept = all(counts[phase] >= shown[phase] for phase in PHASES) and counts == {**counts, **declared}
        if is_kept and gpus == prefill * widths[0] + (dp - prefill) * widths[1]:
            yield counts


def _dp(view: PlanView, width: int, *, keep_strategy: bool) -> int:
    """The graph's replicas, or the declared ones if the graph shows fewer and the GPU count agrees."""
    declared, shown = as_int(view.strategy.get("dp")), len(root_replicas(view))
    if declared is not None and DEGREE.hold(declared):
        if declared == len(view.replicas) or keep_strategy:
            return declared
        agrees = as_int(view.strategy.get("gpu_count")) in (None, declared * width)
        # A construction may name a fan-out that a graph of one replica does not have.
        fans_out = len(view.replicas) < 2 and "dp_fan_out" in as_list(view.raw.get("construction"))
        if declared > shown and (shown == 0 or agrees or fans_out):
            return declared
    return max(1, shown)
