"""The strategy that an author decided on: the degrees of both phases, and replicas.

What nobody says is completed as serving engines would, and noted. Whether it is legal is not asked here.
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
from ..plan.view import PlanView, as_int, as_list, as_mapping
from ..rules.judge import DegreeJudge
from ..rules.legality import RELAXATION_OF, Conditions, splits
from ..rules.shown_faults import conditions_of
from ..rules.tensor_parallel.uneven_split import divides
from .author_devices import ReplicaDevices
from .placing import MOST_DEVICES
from .settled import PhaseClaims, claims_of
from .settled_cut import settled_cut

_PAIRS: tuple[tuple[Phase, Phase], ...] = (("prefill", "decode"), ("decode", "prefill"))
_MOST = int(DEGREE.most)
# Beyond this no width of a model is split.
_MOST_TRIED = 4096


class Notes(Struct):
    """What of an intent was taken from elsewhere than strategy and graph, in words, and what is nowhere to be read."""

    completed: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])

    def complete(self, what: str, value: object, source: str) -> None:
        """Remember that `what` was left open, and what it was taken for."""
        self.completed.append(f"{what} is {f'{value}'[:200]} ({source})")

    def lack(self, what: str) -> None:
        """Remember that `what` is nowhere to be read."""
        self.missing.append(what)


def read_strategy(
    view: PlanView,
    architecture: Architecture,
    devices: tuple[ReplicaDevices, ...],
    notes: Notes,
    *,
    keep_strategy: bool = False,
) -> Strategy | None:
    """Both phases with the number of replicas; `None` where neither strategy nor graph says a degree.

    `keep_strategy`: what the strategy block states holds whatever the graph shows.
    """
    phases = _phases(view, architecture, notes, keep_strategy=keep_strategy)
    if not phases:
        return None
    counts = _sides(view, phases, devices, keep_strategy=keep_strategy)
    if counts is not None:
        sides = {phase: phases[phase].model_copy(update={"replicas": counts[phase]}) for phase in PHASES}
        found = Strategy(dp=sum(counts.values()), gpu_count=1, prefill=sides["prefill"], decode=sides["decode"])
        words = f"{counts['prefill']} prefill and {counts['decode']} decode replicas"
        notes.complete("strategy", words, "replicas apart")
    else:
        found = Strategy(dp=1, gpu_count=1, prefill=phases["prefill"], decode=phases["decode"])
        found = found.model_copy(update={"dp": _dp(view, gpu_count(found), keep_strategy=keep_strategy)})
    return found.model_copy(update={"gpu_count": gpu_count(found)})


def _phases(
    view: PlanView, architecture: Architecture, notes: Notes, *, keep_strategy: bool
) -> dict[Phase, PhaseStrategy]:
    """The degrees of both phases; a phase of which nothing is said takes the other's."""
    found: dict[Phase, PhaseStrategy] = {}
    claims = {phase: claims_of(view, phase, keep_strategy=keep_strategy) for phase in PHASES}
    conditions = replace(conditions_of(view) or Conditions(architecture), architecture=architecture)
    for phase, other in _PAIRS:
        if not claims[phase].are_none:
            read = _read(claims[phase], claims[other], conditions, notes)
            devices = read.ep * (read.tp_expert or 1)
            if "tp_in_expert" not in view.relaxations and read.ep < devices <= architecture.num_experts:
                # Experts that may not be split are whole on as many devices (rule TP006).
                read = read.model_copy(update={"ep": devices, "tp_expert": None})
            found[phase] = read
    if not found:
        given = view.raw.get("strategy")
        notes.lack(f"strategy ({shown(given)}: no degree of a phase in it)" if given else "strategy")
        return found
    for phase, other in _PAIRS:
        if phase not in found:
            found[phase] = _taken_over(found[other], phase, architecture)
            notes.complete(f"strategy.{phase}", "as the other phase", f"nothing is said of {phase}")
    return found


def _taken_over(degrees: PhaseStrategy, phase: Phase, architecture: Architecture) -> PhaseStrategy:
    """`degrees` for the other phase: ranks along the sequence become tensor ranks where that is legal."""
    along = degrees.kv_sp if phase == "prefill" else degrees.sp
    tp = degrees.tp * (along or 1)
    tensor = {"tp": tp} if divides(architecture, "tp", tp) else {}
    return degrees.model_copy(update={"sp": 1, "kv_sp": None, "sp_kind": None, **tensor})


def _read(own: PhaseClaims, other: PhaseClaims, conditions: Conditions, notes: Notes) -> PhaseStrategy:
    architecture = conditions.architecture
    degrees: dict[str, Any] = {}
    for name in DEGREE_NAMES:
        value = own.settled(name, other) if splits(architecture, name) else 1
        if value is not None and (value > 1 or name not in RELAXATION_OF):
            degrees[name] = value
    cut = settled_cut(own, other, architecture.num_layers)
    shown_pp = max((len(branch.phase.stages) for branch in own.branches), default=1)
    degrees["pp"] = len(cut) if cut is not None else own.declared("pp") or shown_pp
    if cut is not None:
        degrees["stage_layers"] = own_cut(cut)
    if degrees.get("sp", 1) > 1:
        degrees["sp_kind"] = own.exchange
    return _completed(own, degrees, conditions, notes)


def _completed(own: PhaseClaims, degrees: dict[str, Any], conditions: Conditions, notes: Notes) -> PhaseStrategy:
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
        notes.complete(f"strategy.{own.phase}.tp_ffn", degrees["tp_ffn"], "not said: as attention")
    if "ep" not in degrees and architecture.is_moe:
        width = max(attention_width(attention), degrees.get("tp_ffn", 1))
        degrees["ep"] = min(max(1, width // (attention.tp_expert or 1)), _MOST)
        notes.complete(f"strategy.{own.phase}.ep", degrees["ep"], "not said: all devices of a stage")
    return PhaseStrategy.model_validate(degrees)


def _sides(
    view: PlanView,
    phases: Mapping[Phase, PhaseStrategy],
    devices: tuple[ReplicaDevices, ...],
    *,
    keep_strategy: bool,
) -> dict[Phase, int] | None:
    """Replicas of each kind where prefill and decode are apart; `None` where replicas serve both.

    More than the graph has are believed where the declared `dp` and GPU count agree with them, those of a kind of which
    it has none where both kinds are declared or `dp` is not another number.
    """
    declared: dict[Phase, int] = {}
    for phase in PHASES:
        count = as_int(as_mapping(view.strategy.get(phase)).get("replicas"))
        if count is not None and 1 <= count <= MOST_DEVICES:
            declared[phase] = count
    if keep_strategy and len(declared) == len(PHASES):
        return declared
    # A phase of which no stage is left shows nothing.
    shown: dict[Phase, int] = {phase: sum(replica.staged == [phase] for replica in devices) for phase in PHASES}
    stated = as_int(view.strategy.get("dp")) or 0
    if declared == shown and stated in (0, sum(declared.values())):
        return declared
    believed = list(_agreeing_counts(view, phases, shown, declared))
    # Both phases hang below one replica; a phase that lost its replica shows nothing.
    served = {(branch.replica.position, branch.phase) for branch in view.phases if branch.replica is not None}
    serves_both = len(served) > len({position for position, _ in served})
    if len(believed) == 1 and not serves_both:
        return believed[0]
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
    """Replicas of each kind, no fewer than are shown, that agree with the declared `dp` and GPU count.

    Where none are declared, some must be shown, and the GPU count not be that of replicas that serve both phases.
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
    """Replicas: those of the graph, or the declared ones where there are fewer and the GPU count agrees with these."""
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
