"""Attributes claimed figures that are off to rules: one fault, one finding.

Figures follow from one another: a latency without its communication is too short, and its throughput too high. So
figures that a rule names exactly come first, then their consequences are left out, and the rest is PE006's. Every rule
of the family gets its faults here; nothing is judged if the graph itself is faulty.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from ...plan.performance import PerformanceEstimate
from ...plan.view import PlanView, as_list, as_mapping, as_str
from ..base import MAX_NAMES, Finding
from ..evaluation import evaluation_of
from .claims import (
    PARTS_OF,
    TOLERANCE,
    TOTAL_OF,
    Fault,
    Figure,
    claim_of,
    fields_of,
    figures,
    lacking_cache,
    lacking_latency,
    lacking_memory_term,
    lacking_throughput,
    near,
    phases_of,
    stages_in,
)
from .critical_path import PATH, left_out, scaled_by

_PHASE_OF = {
    "ttft_ms": "prefill", "prefill_ms": "prefill", "tpot_ms": "decode", "decode_ms": "decode",
    "end_to_end_ms": "end_to_end", "prefill": "prefill", "decode_step": "decode",
}  # fmt: skip
_EXPERT_STEPS = (".moe.router", ".moe.routing", ".moe.expert")
_LACKING = {"latency": lacking_latency, "memory": lacking_cache, "throughput": lacking_throughput}


def faults_of(view: PlanView, rule: str) -> tuple[Fault, ...]:
    """The faults of the plan's claims that `rule` reports."""
    if not claim_of(view) or not view.is_sound:
        return ()
    return tuple(fault for fault in view.once(faults_of, lambda: _all_faults(view)) if fault.rule == rule)


def _all_faults(view: PlanView) -> tuple[Fault, ...]:
    evaluation = evaluation_of(view)
    return () if evaluation is None else tuple(_Attribution(view, evaluation.estimate).faults())


def phase_of(figure: Figure) -> str:
    """The phase that a figure belongs to; `end_to_end` for those of both, "" for those of none."""
    if figure.place[0] == "latency":
        return _PHASE_OF.get(figure.place[1], "")
    if figure.place[0] in ("critical_path", "explanation"):
        return figure.place[1]
    return "end_to_end" if figure.place[0] in ("throughput", "cost") else ""


def is_total(figure: Figure) -> bool:
    """Whether the figure is a whole latency, not a part of one."""
    return figure.place[0] == "latency" and len(figure.place) == 2


def replicas_serving(view: PlanView, phase: str) -> int:
    """Replicas that serve a phase."""
    return len({id(branch.replica) for branch in phases_of(view, "decode" if phase == "end_to_end" else phase)})


def is_shared_out(view: PlanView, figure: Figure) -> bool:
    """Whether the claimed latency is the computed one divided by the replicas (DP004)."""
    count = replicas_serving(view, phase_of(figure)) if is_total(figure) else 1
    return count > 1 and figure.is_off and near(figure.claimed * count, figure.computed)


class _Attribution(Struct):
    """Finds the rule for each figure that is off."""

    view: PlanView
    estimate: PerformanceEstimate
    named: dict[Figure, str] = field(default_factory=dict[Figure, str])
    # The least share of each phase's time that a claim may have without what other rules report.
    floors: dict[str, float] = field(default_factory=dict[str, float])

    def faults(self) -> Iterator[Fault]:
        """All faults, grouped by rule and factor."""
        lost = list(left_out(self.view, self.estimate.critical_path))
        yield from lost
        off = [figure for figure in figures(self.view) if figure.is_off]
        for figure in off:
            rule = self._telling(figure)
            if rule:
                self.named[figure] = rule
        self._set_floors(lost_ms={fault.path: fault.computed for fault in lost})
        unexplained = [figure for figure in off if figure not in self.named and not self._follows(figure)]
        for figure in unexplained:
            rule = self._of_the_rest(figure, unexplained)
            if rule:
                self.named[figure] = rule
        yield from self._grouped()

    def _telling(self, figure: Figure) -> str:
        """The rule that names exactly this figure; "" if none does."""
        match figure.place:
            case ("latency", "prefill" | "decode_step", "communication_ms") if figure.claimed == 0.0:
                return "PE004"
            case ("latency", "decode_step", "memory_ms") if figure.claimed == 0.0:
                return "PE005"
            case ("latency", "prefill" | "decode_step", "bubble_ms") if self._stages(figure) > 1:
                return "PE009"
            case ("critical_path", phase, position, "ms"):
                return self._of_step(phase, int(position), figure)
            case ("explanation", _, "expert_imbalance"):
                return "PE008"
            case ("memory", *_, last) if last.startswith("kv_cache"):
                return "PE002"
            case _:
                pass
        if is_shared_out(self.view, figure):
            return "DP004"
        if self._is_staged(figure):
            return "PE009"
        return "PE005" if self._is_without_memory(figure) else ""

    def _is_without_memory(self, figure: Figure) -> bool:
        """Whether the time per token, claimed without parts, is the computed one without its memory term."""
        if figure.place != ("latency", "tpot_ms") or fields_of(
            as_mapping(claim_of(self.view)["latency"]).get("decode_step")
        ):
            return False
        return near(figure.claimed, self.estimate.latency.tpot_ms - self.estimate.latency.decode_step.memory_ms)

    def _of_step(self, phase: str, position: int, figure: Figure) -> str:
        item = as_mapping(as_list(as_mapping(claim_of(self.view).get("critical_path")).get(phase))[position])
        node = as_str(item.get("node")) or ""
        kinds = {step.node: step.kind for step in getattr(self.estimate.critical_path, phase)}
        if kinds.get(node) == "communication" and figure.claimed == 0.0:
            return "PE004"
        if node.endswith(_EXPERT_STEPS):
            return "PE008"
        return "PE009" if kinds.get(node) == "bubble" else ""

    def _stages(self, figure: Figure) -> int:
        phase = phase_of(figure)
        return stages_in(self.view, "decode" if phase == "end_to_end" else phase) if phase else 1

    def _is_staged(self, figure: Figure) -> bool:
        """Whether a latency is claimed as the computed one divided by the stages, or a request's rate times them."""
        stages = self._stages(figure)
        if stages < 2:
            return False
        if figure.place == ("throughput", "single_request_tokens_per_s"):
            return near(figure.claimed / stages, figure.computed)
        is_of_phase = is_total(figure) and phase_of(figure) != "end_to_end"
        return is_of_phase and near(figure.claimed * stages, figure.computed)

    def _set_floors(self, lost_ms: dict[str, float]) -> None:
        for phase, block in PARTS_OF.items():
            parts = getattr(self.estimate.latency, block)
            whole = parts.compute_ms + parts.memory_ms + parts.communication_ms + parts.bubble_ms
            missing = [
                f.computed - f.claimed for f in self.named if f.place[:2] == ("latency", block) and not is_total(f)
            ]
            steps = [f.computed - f.claimed for f in self.named if f.place[:2] == ("critical_path", phase)]
            if block == "decode_step" and lacking_memory_term(self.view):
                missing.append(parts.memory_ms)
            omitted = max(sum(missing), sum(steps) + lost_ms.get(f"{PATH}/{phase}", 0.0), 0.0)
            factors = [f.factor for f in self.named if is_total(f) and phase_of(f) == phase]
            self.floors[phase] = min([1.0 - min(omitted / whole, 1.0) if whole else 1.0, *factors])
        factors = [f.factor for f in self.named if is_total(f) and phase_of(f) == "end_to_end"]
        self.floors["end_to_end"] = min([self.floors["prefill"], self.floors["decode"], *factors])
        rates = [figure.factor for figure in self.named if figure.place[0] == "throughput"]
        if rates:
            self.floors["end_to_end"] = min(self.floors["end_to_end"], 1.0 / max(rates))

    def _follows(self, figure: Figure) -> bool:
        """Whether the figure is off only because of others that rules report."""
        if figure.place[0] == "memory":
            is_sum = figure.place[-1] in ("total_bytes", "max_concurrency")
            return is_sum and any(figure_named.place[0] == "memory" for figure_named in self.named)
        floor = self.floors.get(phase_of(figure), 1.0)
        if floor >= 1.0:
            return False
        if figure.place[0] == "explanation":
            return True
        low, high = floor * (1 - TOLERANCE), 1 + TOLERANCE
        if figure.place[0] == "throughput":
            return 1 / high <= figure.factor and figure.factor * low <= 1.0
        return low <= figure.factor <= high

    def _of_the_rest(self, figure: Figure, unexplained: list[Figure]) -> str:
        """PE001, PE006 or PE007; "" if it goes with another figure that is off."""
        match figure.place:
            case ("latency", "decode_step", _) if lacking_memory_term(self.view):
                return ""
            case ("latency", "prefill" | "decode_step" as block, _) if self._does_not_add_up(block):
                return "PE001"
            case ("throughput", "dp_scaled_tokens_per_s"):
                batched = _factor_of(unexplained, "batched_tokens_per_s")
                return "PE006" if batched is not None and near(figure.factor, batched) else "PE007"
            case ("throughput", "output_tokens_per_s_per_gpu"):
                scaled = _factor_of(unexplained, "dp_scaled_tokens_per_s")
                return "" if scaled is not None and near(figure.factor, scaled) else "PE006"
            case _:
                pass
        lacking = _LACKING.get(figure.place[0])
        is_whole = lacking is None or not lacking(self.view)
        # A latency without parts does not show what it leaves out, but may show what it was divided by.
        return "PE006" if is_whole or (is_total(figure) and self._scale(figure)) else ""

    def _does_not_add_up(self, block: str) -> bool:
        """Whether the parts of a phase do not add up, although its claimed total is right."""
        phase = "prefill" if block == "prefill" else "decode"
        totals = {TOTAL_OF[phase], "ttft_ms" if phase == "prefill" else "tpot_ms"}
        whole = [f for f in figures(self.view) if is_total(f) and f.place[1] in totals]
        parts = getattr(self.estimate.latency, block).model_dump()
        claimed = {f.place[2]: f.claimed for f in figures(self.view) if f.place[:2] == ("latency", block)}
        is_right = bool(whole) and not any(figure.is_off for figure in whole)
        return is_right and not near(sum({**parts, **claimed}.values()), sum(parts.values()))

    def _scale(self, figure: Figure) -> str:
        return scaled_by(self.view, figure, phase_of(figure)) or ""

    def _grouped(self) -> Iterator[Fault]:
        groups: dict[tuple[str, tuple[str, ...], int], list[Figure]] = {}
        for figure, rule in self.named.items():
            where = figure.place[:1] if rule == "PE006" else figure.place[:2]
            groups.setdefault((rule, where, _bucket(figure.factor)), []).append(figure)
        for (rule, _, _), (first, *others) in groups.items():
            why = self._scale(first) if rule == "PE006" and is_total(first) else ""
            yield Fault(rule, first.path, first.name, first.claimed, first.computed, why, tuple(others))


def _bucket(factor: float) -> int:
    """A number that is equal for factors that are about the same."""
    return round(min(factor, 1e6) / TOLERANCE / 2) if factor < 1 else 1_000 + round(min(factor, 1e6) * 10)


def _factor_of(figures_off: list[Figure], name: str) -> float | None:
    return next((figure.factor for figure in figures_off if figure.place == ("throughput", name)), None)


def finding_of(message_id: str, fault: Fault, says: str, remedy: str = "") -> Finding:
    """`fault` as a finding; `says` tells what is wrong with the claim."""
    others = f" (and {len(fault.also)} more alike)" if fault.also else ""
    everything = {fault.name: (fault.claimed, fault.computed)}
    everything |= {figure.name: (figure.claimed, figure.computed) for figure in fault.also[:MAX_NAMES]}
    return Finding(
        message_id,
        f"{fault.name} is claimed as {fault.claimed:.4g}{others}: {says}; computed: {fault.computed:.4g}",
        where=fault.path,
        value={name: claimed for name, (claimed, _) in everything.items()} if fault.also else fault.claimed,
        expected={name: computed for name, (_, computed) in everything.items()} if fault.also else fault.computed,
        remedy=remedy,
    )
