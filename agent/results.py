"""What a planning run gives back. `model_dump(mode="json")` of `PlanResult` is what `plan --format json` prints."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from ..tools.displayed import Displayed, named
from ..tools.frozen import Frozen, Sparse
from ..tools.plan.document import Plan, Relaxation, Strategy
from ..tools.plan.performance import PerformanceEstimate
from ..tools.rules.base import Violation
from ..tools.search.candidate import Candidate
from ..tools.search.day import OverDay
from .intent.intent import Assumption, Intent
from .runs.spent import Spent


class Alternative(Sparse):
    """A strategy that was considered and not chosen, and why (`reason` carries the number that decided).

    `rule` is the rule that decided; absent where the objective alone did.
    """

    strategy: Strategy
    summary: str
    reason: str
    rule: str | None = None
    gpus: int
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    output_tokens_per_s_per_gpu: float | None = None
    memory_per_gpu_bytes: int | None = None
    concurrency: int | None = None


class ComparedStrategy(Sparse):
    """One of several strategies that the request weighs, as it stands: figures under the load of the plan, or why none.

    `rule` is the rule that it breaks or that decided against it; `needs` the relaxations that it would take.
    """

    summary: str
    reason: str
    rule: str | None = None
    needs: tuple[Relaxation, ...] = ()
    gpus: int | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    output_tokens_per_s: float | None = None
    memory_per_gpu_bytes: int | None = None


class ComparedStrategies(Sparse):
    """The strategies that the request weighs against each other, in its order; which of them is ahead, and how surely.

    `left_out` counts those that were too many to be looked at; `experts` says how those are taken that leave them open,
    `hardware` on which of several kinds all are judged.
    """

    strategies: tuple[ComparedStrategy, ...]
    verdict: str | None = None
    experts: str | None = None
    hardware: str | None = None
    left_out: int = 0


class StatedStrategyVerdict(Frozen):
    """A strategy that the request stated, judged as it stands: its violations, and its estimate where it has one.

    `why_not_built` says why no document could be built from it at all.
    """

    summary: str
    valid: bool
    findings: tuple[Violation, ...]
    estimate: PerformanceEstimate | None = None
    why_not_built: str | None = None


class AppliedFix(Frozen):
    """One fix: its rule, what it did, and the RFC 6902 patch."""

    rule: str
    description: str
    patch: tuple[dict[str, Any], ...] = ()


class Asked(Sparse):
    """Which language model was asked, how its run ended, and whose plan it is."""

    model: str
    status: str
    plan_from: str
    proposals: int


# Whose plan the answer is, if not the model's, or the model did not answer.
AUTHORS = {
    "model": "model's last valid one",
    "model_repaired": "model's last valid one, repaired",
    "auto_fix": "one that auto-fix made of the model's last proposal",
    "builtin": "built-in proposer's",
}

_UNANSWERED = {
    "tokens_spent": "the tokens allowed left no room for a request",
    "cost_spent": "the money allowed left no room for a request",
}


class ModelUse(Spent, Asked):
    """What a language model did for a plan, and what it took; `transcript_failure`: why the transcript is not whole."""

    fault: str | None = None
    transcript: str | None = None
    transcript_failure: str | None = None

    @property
    def silence(self) -> str | None:
        """Why a model that was to be asked gave no answer, or none any more, and whose plan it is; `None`: it did."""
        if self.status == "infeasible" or (self.turns and self.status != "endpoint_failed"):
            return None
        limit = _UNANSWERED.get(self.status, "the time allowed was over")
        why = self.fault or f"{limit} before it {'answered' if self.requests else 'was asked'}"
        return f"{self.model}: {why}; the plan is the {AUTHORS[self.plan_from]}"


class PlanReport(Frozen):
    """How the plan came about. `model_use` is null where no language model was asked.

    `hint`: what a relaxation would gain. `explanation` holds it too. `on_fewer`: what fewer of the GPUs that were named
    would do; `on_more`: what holds more requests at once than the plan, where their number was left open, or that
    the plan takes little more than the stated rate, and what more GPUs would do.
    `with_engine`: what naming the engine that is only assumed, or allowing attention DP, would give, where that is less
    hardware or a far better plan.
    `why_not_kept`: why the plan has not the degrees that were asked for.
    """

    proposer: str
    rounds: int = 1
    fixes: tuple[AppliedFix, ...] = ()
    violations_seen: dict[str, int] = Field(default_factory=dict[str, int])
    alternatives: tuple[Alternative, ...] = ()
    explanation: str
    hint: str | None = None
    on_fewer: str | None = None
    on_more: str | None = None
    with_engine: str | None = None
    why_not_kept: str | None = None
    # What the person would have to allow, and its gain, as a language model asked the search.
    would_need: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    readings: tuple[str, ...] = ()
    # Words that sound like a demand and were not understood.
    not_acted_on: tuple[str, ...] = ()
    # The trace that was planned for, described in a line; a second line says what part of it the plan is for.
    trace: str | None = None
    # Work that was left out since the time limit of the search was over.
    left_out: tuple[str, ...] = ()
    stated: StatedStrategyVerdict | None = None
    compared: ComparedStrategies | None = None
    # Strategies that were screened, and of them those that were simulated; pruned ones were not screened.
    evaluated: int = 0
    timed: int = 0
    rejected: dict[str, int] = Field(default_factory=dict[str, int])
    pruned: dict[str, int] = Field(default_factory=dict[str, int])
    limits_met: bool = True
    limits: tuple[str, ...] = ()
    model_use: ModelUse | None = None


class Needs(Sparse):
    """The least hardware of the same kind that would do, in place of the `instead_of` GPUs that were asked for."""

    gpus: int | None = None
    nodes: int | None = None
    accelerator: str | None = None
    instead_of: int | None = None
    note: str | None = None


class Infeasible(Sparse):
    """Why no plan exists: the hard rule that binds, by how much, the least hardware that would do, the closest plan."""

    reason: str
    rule: str
    shortfall_bytes: int | None = None
    needs: Needs
    closest: Candidate | None = None
    # The plan with what the engine does by itself or can be set to do (rules.md R15).
    with_engine: str | None = None
    # Other number formats on this hardware and other cards of that number that would do, with the plan on each.
    other_ways: tuple[str, ...] = ()
    # Other number formats in which some of the limits that are missed would hold on this hardware, and not all.
    nearer: tuple[str, ...] = ()
    # That limits on percentiles are missed only while all users start at once, and what a steady rate would have.
    at_start: str | None = None


class PlanResult(Displayed, Frozen):
    """A plan with its estimate, or the exact reason why there is none (`plan` is then null)."""

    plan: Plan | None
    valid: bool
    estimate: PerformanceEstimate | None = None
    report: PlanReport | None = None
    infeasible: Infeasible | None = None
    # Replicas hour by hour, where a rate curve was asked for.
    over_day: OverDay | None = None
    intent: Intent | None = Field(default=None, exclude=True)

    @model_serializer(mode="wrap")
    def _drop_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None or name == "plan"}

    def one_line(self) -> str:
        """The plan with its latency and throughput, or why there is none."""
        if self.plan is None:
            return f"no plan: {named(self.infeasible.reason) if self.infeasible is not None else 'none was found'}"
        figures = "" if self.estimate is None else f", {self.estimate.one_line()}"
        return f"{self.plan.one_line()}{figures}"

    @property
    def exit_status(self) -> Literal[0, 1]:
        """0: a valid plan; 1: the answer is no."""
        return 0 if self.valid else 1
