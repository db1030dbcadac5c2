"""A case made concrete: its question, and the right plans. Nothing is proposed here.

A request in words decides the question, as for any user; a case about a base plan asks what that plan answers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from ...tools.calibration.custom import CustomCalibration
from ...tools.errors import InputError
from ...tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    Plan,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ...tools.rules.examples import base_plan, edited
from ..intent.intent import HardwareChoice, Intent, ModelChoice
from ..loop.question import Question, ask
from ..results import PlanResult
from ..stated.request import intent_of
from .case import Case, Golden
from .golden import golden_strategy
from .judged import CacheKey, errors_of


class RightAnswer(Struct, frozen=True):
    """A golden with its plan; `fault` says why it has none, or why it is no valid plan."""

    golden: Golden
    strategy: Strategy | None = None
    document: Mapping[str, Any] | None = None
    fault: str | None = None


class PosedCase(Struct, frozen=True):
    """A case with its question. Exactly one of `refusal`, `infeasible` and `question` is there;
    of a reading none is.

    `refusal` is the one line that a request which cannot be read is answered with; `infeasible` the built-in proposer's
    answer where there is no plan; `proposal` what is proposed first, as a text, and `broken` its document where it is
    an edited plan.
    """

    case: Case
    intent: Intent | None = None
    refusal: str | None = None
    infeasible: PlanResult | None = None
    question: Question | None = None
    right: tuple[RightAnswer, ...] = ()
    proposal: str | None = None
    broken: Mapping[str, Any] | None = None


def pose(case: Case) -> PosedCase:
    """`case` with its question and its right answers.

    Raises:
        InputError: the case names an unknown base plan or node.
    """
    if case.expect == "reading":
        return PosedCase(case)
    try:
        intent = intent_of(case.request) if case.request is not None else _intent_of_document(_asking(case))
        # Cases of one family ask the same, and the search takes the time.
        question = _question(CacheKey(intent, intent.model_dump_json()))
    except InputError as error:
        if case.request is None and case.asks == "base":
            raise
        return PosedCase(case, refusal=str(error), broken=_broken(case, ()) if case.request is None else None)
    if isinstance(question, PlanResult):
        return PosedCase(case, intent, infeasible=question, broken=_broken(case, ()))
    right = tuple(_right_answer(golden, question) for golden in case.goldens)
    broken = _broken(case, right)
    text = case.proposal.text if case.proposal is not None else None
    return PosedCase(case, intent, question=question, right=right, proposal=text, broken=broken)


def with_calibration(posed: PosedCase, calibration: CustomCalibration) -> Question:
    """The question of `posed` with the built-in proposer's answer by other constants than those that judge it.

    Raises:
        InputError: there is no plan by them.
    """
    assert posed.intent is not None
    question = ask(posed.intent.model_copy(update={"calibration": calibration}), with_hint=False)
    if isinstance(question, PlanResult):
        raise InputError("there is no plan by the proposer's own calibration")
    return question


@lru_cache(maxsize=64)
def _question(intent: CacheKey) -> Question | PlanResult:
    """The question of an intent, or the result if there is no plan."""
    # The gain of a relaxation is not marked, and takes as long as the answer.
    return ask(intent.value, with_hint=False)


def _asking(case: Case) -> Mapping[str, Any]:
    """The document whose header is the question of a case without words."""
    proposal = case.proposal
    if case.asks == "proposal" and proposal is not None and proposal.base is not None:
        return edited(base_plan(proposal.base), proposal.edits)
    return base_plan(case.base or "")


def _intent_of_document(document: Mapping[str, Any]) -> Intent:
    """The intent that a plan answers, by its header.

    Raises:
        InputError: the header is not of the form.
    """
    try:
        model = ModelBlock.model_validate(document["model"])
        hardware = HardwareBlock.model_validate(document["hardware"])
        policy = PolicyBlock.model_validate(document.get("policy") or {})
        serving = document.get("serving")
        return Intent(
            model=ModelChoice(name=model.name, config=model.config, source="base plan"),
            hardware=HardwareChoice(
                accelerator=hardware.accelerator,
                nodes=hardware.nodes,
                gpus_per_node=hardware.gpus_per_node,
                intra_node_bw_gb_s=hardware.intra_node_bw_gb_s,
                inter_node_bw_gb_s=hardware.inter_node_bw_gb_s,
            ),
            workload=WorkloadBlock.model_validate(document["workload"]),
            concurrency_open=False,
            precision=PrecisionBlock.model_validate(document["precision"]),
            relaxations=policy.relaxations,
            memory_utilization=policy.memory_utilization,
            disaggregated=_is_apart(document),
            serving=None if serving is None else ServingBlock.model_validate(serving),
        )
    except (ValidationError, KeyError) as error:
        raise InputError(f"the header of the proposal is no question: {' '.join(str(error).split())[:200]}") from None


def _is_apart(document: Mapping[str, Any]) -> bool:
    """Whether a document states replicas for each phase."""
    strategy = document.get("strategy")
    phases = [strategy.get(name) for name in ("prefill", "decode")] if isinstance(strategy, Mapping) else []
    return any(isinstance(phase, Mapping) and phase.get("replicas") is not None for phase in phases)


def _right_answer(golden: Golden, question: Question) -> RightAnswer:
    """The plan of `golden` for `question`."""
    try:
        if golden.base is not None:
            plan = Plan.model_validate(base_plan(golden.base))
            strategy, document = plan.strategy, plan.model_dump(mode="json")
        else:
            strategy = golden_strategy(golden.strategy, question)
            document = question.document_of(strategy)
    except (InputError, ValueError) as error:
        return RightAnswer(golden, fault=" ".join(str(error).split())[:300])
    errors = errors_of(document)
    fault = f"it breaks {errors[0].rule}: {errors[0].message}" if errors else None
    return RightAnswer(golden, strategy, document, fault)


def _broken(case: Case, right: tuple[RightAnswer, ...]) -> Mapping[str, Any] | None:
    """The document of a proposal that is an edited plan."""
    proposal = case.proposal
    if proposal is None or not proposal.edits:
        return None
    if proposal.base is not None:
        return edited(base_plan(proposal.base), proposal.edits)
    sound = right[0].document if right else None
    if sound is None:
        raise InputError(f"case {case.id}: its first golden has no plan that could be edited")
    return edited(copy.deepcopy(dict(sound)), proposal.edits)


def right_documents(posed: PosedCase) -> Iterator[RightAnswer]:
    """The right answers that are valid plans."""
    return (answer for answer in posed.right if answer.document is not None and answer.fault is None)
