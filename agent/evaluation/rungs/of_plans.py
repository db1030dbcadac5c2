"""Rungs about a proposal at one moment, lowest first: each is one question about it, marked at every stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ....tools.plan.describe import describe
from ....tools.plan.document import Strategy
from ..figures import regret_or_why
from ..isomorphism import same_dag
from ..marks import Mark, Subject
from ..posed import PosedCase, right_documents


class PlanRung(Struct, frozen=True):
    """A rung of cases that want a plan; `has_golden`: only of those with a right answer."""

    name: str
    question: str
    judge: Callable[[PosedCase, Subject], Mark | None]
    has_golden: bool = False

    def mark(self, posed: PosedCase, subject: Subject) -> Mark | None:
        """The mark of a proposal; `None` if the rung does not apply to the case."""
        if posed.case.expect != "plan" or (self.has_golden and not posed.case.goldens):
            return None
        return self.judge(posed, subject)


def _parses(posed: PosedCase, subject: Subject) -> Mark:
    return Mark(passed=subject.is_read, why="" if subject.is_read else subject.refusal or "no proposal was found in it")


def _schema(posed: PosedCase, subject: Subject) -> Mark:
    if subject.document is None:
        return Mark(passed=False, why=subject.refusal or "there is no document")
    broken = "ST001" in subject.rules
    return Mark(passed=not broken, why="ST001: it breaks the schema" if broken else "")


def _rules(posed: PosedCase, subject: Subject) -> Mark:
    why = subject.refusal or "there is no document" if subject.document is None else ", ".join(subject.rules)
    return Mark(passed=subject.is_valid, value=float(len(subject.rules)), why="" if subject.is_valid else why)


def _equivalent(posed: PosedCase, subject: Subject) -> Mark:
    if not posed.right:
        return Mark(passed=False, why="there is no answer that could be compared")
    right = list(right_documents(posed))
    if not right:
        return Mark(passed=False, why=f"no golden is a valid plan: {posed.right[0].fault}")
    if subject.document is None:
        return Mark(passed=False, why="there is no document")
    for place, answer in enumerate(right):
        assert answer.document is not None
        if same_dag(subject.document, answer.document):
            return Mark(passed=True, why="" if place == 0 else f"variant {place}")
    return Mark(passed=False, why="its DAG is none of the goldens'")


def _strategy(posed: PosedCase, subject: Subject) -> Mark:
    golden = [answer.strategy for answer in posed.right if answer.strategy is not None]
    if not golden:
        return Mark(passed=False, why="there is no answer, or no golden, that could be compared")
    if subject.strategy is None:
        return Mark(passed=False, why="it states no whole strategy")
    if any(same_degrees(subject.strategy, strategy) for strategy in golden):
        return Mark(passed=True)
    architecture = None if posed.question is None else posed.question.request.architecture
    has_ffn = None if architecture is None else architecture.has_split_ffn
    answered, right = (describe(strategy, has_split_ffn=has_ffn) for strategy in (subject.strategy, golden[0]))
    return Mark(passed=False, why=f"{answered}, the golden is {right}")


def same_degrees(strategy: Strategy, golden: Strategy) -> bool:
    """Whether both have the same degrees; if the golden states no cut of layers, any cut is as good."""
    cuts = {phase.stage_layers for phase in (golden.prefill, golden.decode)} != {None}
    return _degrees(strategy, with_cuts=cuts) == _degrees(golden, with_cuts=cuts)


def _degrees(strategy: Strategy, *, with_cuts: bool) -> dict[str, Any]:
    """Every degree of `strategy` above one, with its cut of the layers if that counts."""
    left_out = None if with_cuts else {"stage_layers"}
    degrees: dict[str, Any] = {
        name: {
            key: value
            for key, value in phase.model_dump(exclude_none=True, exclude=left_out).items()
            if value != 1 or key == "replicas"
        }
        for name, phase in (("prefill", strategy.prefill), ("decode", strategy.decode))
    }
    return {**degrees, "dp": strategy.dp, "gpus": strategy.gpu_count}


def _regret(posed: PosedCase, subject: Subject) -> Mark | None:
    """By the performance model, each plan at its best load."""
    if posed.question is None:
        return Mark(passed=False, why="there is no answer that could be compared")
    goldens = [answer.strategy for answer in right_documents(posed) if answer.strategy is not None]
    if not goldens:
        return Mark(passed=False, why=f"no golden is a valid plan: {posed.right[0].fault}")
    if not subject.is_valid or subject.strategy is None:
        return Mark(passed=False, why="it is no valid plan")
    regret = regret_or_why(posed.question, subject.strategy, goldens[0])
    if regret is None:
        return None
    if isinstance(regret, str):
        return Mark(passed=False, why=regret)
    value = None if regret == float("inf") else regret
    if regret <= posed.case.regret_pct:
        return Mark(passed=True, value=value)
    # An admissible variant is right; a plan that is only as good is not. The figure is still against the golden.
    for place, variant in enumerate(goldens[1:], start=1):
        if same_degrees(subject.strategy, variant):
            return Mark(passed=True, value=value, why=f"variant {place}")
    worse = "it misses a limit that the golden holds" if value is None else f"{value:.1f}% worse than the golden"
    return Mark(passed=False, value=value, why=worse)


PLAN_RUNGS = (
    PlanRung("parses", "is there a proposal in it?", _parses),
    PlanRung("schema", "does it match the JSON Schema?", _schema),
    PlanRung("rules", "does it keep every hard rule?", _rules),
    PlanRung("equivalent", "is its DAG isomorphic to a golden's?", _equivalent, has_golden=True),
    PlanRung("strategy", "has it the strategy of a golden?", _strategy, has_golden=True),
    PlanRung("regret", "is it not worse than a golden, by the performance model?", _regret, has_golden=True),
)
