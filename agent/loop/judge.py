"""The judge: turns any proposal into a judgement. It is the only way from a model's words to a plan.

Read → pin the request → validate → repair → validate again → estimate. A plan stands only if validation accepts exactly
that document and it answers the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from ...tools.autofix.autofix import Reading, autofix_read, read_anything, read_text_anyhow
from ...tools.autofix.result import AppliedFix, Infeasible, Replanning
from ...tools.errors import InputError
from ...tools.performance.estimate import estimate
from ...tools.plan.canonical import content_hash
from ...tools.plan.document import PHASES, Plan, Strategy
from ...tools.plan.placement import is_disaggregated
from ...tools.plan.plan_size import excess_of
from ...tools.plan.reader import ReadDocument, read_document
from ...tools.plan.view import as_mapping
from ...tools.rules.base import Violation
from ...tools.validate import validate
from ..planning.keeping import keeps
from ..stated.strategy import read_block
from .declared import as_stated, unassumed
from .desk import Desk, Maker, Standing
from .places import parents_first, right_already
from .question import Question
from .strategy_findings import StrategyFault, strategy_faults

# A block with all of these in both phases has nothing to fill in.
_DEGREES = {"pp", "sp", "ep", "tp", "tp_ffn"}

# `valid` as proposed; `repaired` with every decision kept; `replanned` with decisions changed; `invalid` if no repair
# gave a plan; `unread` if there was no proposal to judge.
Verdict = Literal["valid", "repaired", "replanned", "invalid", "unread"]


class Judgement(Struct, frozen=True):
    """The tools' judgement of one proposal. `violations` are of the proposal before any repair, structure first and
    from the root downwards, `strategy_faults` of a strategy without a graph; `right` is the part without faults.

    `contradictions` are fields that it stated otherwise than the request (they were corrected), `unkept` a demand of
    the person that it misses, `is_behind` that the built-in plan is better, `notes` how it was read and completed,
    `refusal` why it could not be judged. `standing` is the valid plan that it led to, `starts_on` the engines that
    start a repaired one, `rationale` the model's reason.
    """

    verdict: Verdict
    handle: str | None = None
    content_hash: str = ""
    violations: tuple[Violation, ...] = ()
    right: str | None = None
    contradictions: tuple[str, ...] = ()
    strategy_faults: tuple[StrategyFault, ...] = ()
    unkept: str | None = None
    is_behind: bool = False
    notes: tuple[str, ...] = ()
    fixes: tuple[AppliedFix, ...] = ()
    unfixed: tuple[str, ...] = ()
    replanned: Replanning | None = None
    infeasible: Infeasible | None = None
    refusal: str | None = None
    standing: Standing | None = None
    starts_on: tuple[str, ...] = ()
    rationale: str | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the rules that the proposal breaks as errors, each once, in the order of the report."""
        broken = self.strategy_faults or (violation for violation in self.violations if violation.severity == "error")
        return tuple(dict.fromkeys(fault.rule for fault in broken))

    @property
    def is_ambiguous(self) -> bool:
        """Whether its stated number of GPUs differs from its degrees': either may be meant."""
        return any(fault.field == "gpu_count" for fault in self.strategy_faults)

    @property
    def is_acceptable(self) -> bool:
        """Whether the run may end with its plan: valid, as demanded, no better one known, no decision changed."""
        is_wanted = self.unkept is None and not self.is_behind and not self.is_ambiguous
        return self.standing is not None and self.verdict in ("valid", "repaired") and is_wanted


def judge_text(desk: Desk, text: str, *, repairs: bool = True) -> Judgement:
    """Judge a proposal inside a text, in any form."""
    return _judge(desk, read_text_anyhow(text), repairs=repairs)


def judge_document(desk: Desk, document: Mapping[str, Any], *, repairs: bool = True) -> Judgement:
    """Judge a proposal that is an object, in our format or another."""
    return _judge(desk, read_anything(document), repairs=repairs)


def judge_handle(desk: Desk, handle: str, *, repairs: bool = True) -> Judgement:
    """Judge a document of the desk, whoever made it.

    Raises:
        InputError: no such handle.
    """
    return _judge_pinned(desk, desk.get(handle), repairs=repairs, maker=desk.makers[handle])


def _judge(desk: Desk, reading: Reading, *, repairs: bool) -> Judgement:
    raw = reading.read.raw
    if raw is None or not any(raw.get(name) for name in ("strategy", "nodes", "edges")):
        return Judgement("unread", notes=reading.notes, refusal="no strategy and no DAG was found in it")
    try:
        check_written_out(reading.read)
    except InputError as error:
        return Judgement("invalid", notes=reading.notes, refusal=str(error))
    raw = desk.hidden(raw)
    contradictions = desk.question.contradictions(raw)
    document, refusal, faults = raw, None, ()
    try:
        proposed = unassumed(raw, reading.assumed)
        strategy = _stated(desk, proposed)
        if strategy is not None:
            faults = strategy_faults(desk.question, as_mapping(proposed.get("strategy")), strategy)
            document = _built(desk, proposed, strategy)
    except InputError as error:
        # Without a graph this is all; findings of the missing graph would hide it.
        refusal = str(error)
    judged = _judge_pinned(desk, document, repairs=repairs, notes=reading.notes, contradictions=contradictions)
    rationale = reading.rationale and desk.redact(reading.rationale)
    return replace(judged, refusal=judged.refusal or refusal, strategy_faults=faults, rationale=rationale)


def check_written_out(read: ReadDocument) -> None:
    """Refuse a document whose compact form cannot be expanded in part: the rest is not what was meant.

    Raises:
        InputError: part of its compact form cannot be expanded.
    """
    if read.unexpanded:
        first = read.unexpanded[0]
        expected = f" ({first.expected})" if first.expected else ""
        raise InputError(f"{first.path}: {first.message}{expected}")


def _stated(desk: Desk, raw: Mapping[str, Any]) -> Strategy | None:
    """The strategy of a proposal that leaves its graph to the builder; `None` if it has a graph or no strategy.

    Raises:
        InputError: the strategy is larger than anything that can be laid out.
    """
    return None if raw.get("nodes") or raw.get("edges") else strategy_of(desk, as_mapping(raw.get("strategy")))


def _built(desk: Desk, raw: Mapping[str, Any], strategy: Strategy) -> dict[str, Any]:
    """The whole document of a proposal read as `strategy`.

    Raises:
        InputError: nothing can be built of it.
    """
    workload = raw.get("workload")
    concurrency = workload.get("concurrency") if isinstance(workload, Mapping) else None
    document = desk.question.document_of(strategy, concurrency if type(concurrency) is int else None, raw)
    return {**document, "strategy": as_stated(document["strategy"], as_mapping(raw.get("strategy")))}


def strategy_of(desk: Desk, block: Mapping[str, Any]) -> Strategy | None:
    """A strategy block, completed as an engineer would; `None` if it states no degree.

    Raises:
        InputError: it is larger than anything that can be laid out.
    """
    if all(as_mapping(block.get(phase)).keys() >= _DEGREES for phase in PHASES):
        try:
            return Strategy.model_validate(block)
        except ValidationError:
            pass
    return read_block(block, desk.question.request.architecture, desk.question.request.hardware)


def _judge_pinned(
    desk: Desk,
    raw: Mapping[str, Any],
    *,
    repairs: bool,
    notes: tuple[str, ...] = (),
    contradictions: tuple[str, ...] = (),
    maker: Maker = "model",
) -> Judgement:
    hashed = ""
    try:
        check_size(desk, raw)
        document = desk.question.pinned(raw)
        hashed = content_hash(document)
        handle = desk.put(document)
    except InputError as error:
        return Judgement("invalid", content_hash=hashed, contradictions=contradictions, notes=notes, refusal=str(error))
    report = validate(document)
    unstartable = desk.question.unstartable(document) if report.valid else ()
    judged = Judgement(
        verdict="invalid",
        handle=handle,
        content_hash=hashed,
        violations=parents_first((*report.violations, *unstartable), document),
        right=right_already(report.violations, document),
        contradictions=contradictions,
        notes=notes,
    )
    if unstartable:
        return judged
    if report.valid:
        standing = stand(desk, document, handle, maker)
        return replace(
            judged,
            verdict="valid" if standing else "invalid",
            unkept=_unkept_of(desk, standing),
            is_behind=standing is not None and desk.is_behind(standing),
            standing=standing,
        )
    return _repaired(desk, document, judged) if repairs else judged


def check_size(desk: Desk, document: Mapping[str, Any]) -> None:
    """Refuse a document larger than any plan for this hardware, before a judgement takes minutes.

    Raises:
        InputError: the document has more nodes or edges than any such plan.
    """
    excess = excess_of(document)
    if excess is not None:
        raise InputError(f"the document has {excess.message}")


def _repaired(desk: Desk, document: Mapping[str, Any], judged: Judgement) -> Judgement:
    """The judgement of a faulty document, with auto-fix's result."""
    fixed = autofix_read(Reading(read_document(document)))
    standing, refusal = None, None
    changed = fixed.replanned is not None or any(fix.safety == "strategy" for fix in fixed.fixes)
    maker: Maker = "replan" if changed else "repair"
    if fixed.valid and fixed.document is not None:
        mended = desk.question.pinned(fixed.document)
        try:
            standing = stand(desk, mended, desk.put(mended, maker), maker)
            refusal = _unstartable(desk, mended) if standing is None else None
        except InputError as error:
            refusal = str(error)
    return replace(
        judged,
        verdict="invalid" if standing is None else "replanned" if changed else "repaired",
        unkept=_unkept_of(desk, standing),
        is_behind=standing is not None and desk.is_behind(standing),
        notes=(*judged.notes, *fixed.notes),
        fixes=fixed.fixes,
        unfixed=fixed.unfixed,
        replanned=fixed.replanned,
        infeasible=fixed.infeasible,
        refusal=refusal,
        standing=standing,
        starts_on=() if standing is None else desk.question.starts_on(standing.plan),
    )


def _unstartable(desk: Desk, document: Mapping[str, Any]) -> str | None:
    """Why the assumed engine cannot start a repaired plan; `None` if it can."""
    why = desk.question.unstartable(document)
    return f"what repair gives cannot be started: {why[0].rule} {why[0].message}" if why else None


def stand(desk: Desk, document: Mapping[str, Any], handle: str, maker: Maker = "model") -> Standing | None:
    """Let `document` stand as a plan if it validates and answers the question; else `None`."""
    question = desk.question
    if not question.answers(document) or not validate(document).valid or question.unstartable(document):
        return None
    plan = Plan.model_validate(document)
    figures = estimate(plan, question.intent.usd_per_gpu_hour, question.intent.calibration)
    compared = question.against(plan, figures)
    standing = Standing(handle, plan, figures, maker, compared, is_kept=_unkept(question, plan.strategy) is None)
    desk.stand(standing)
    return standing


def _unkept_of(desk: Desk, standing: Standing | None) -> str | None:
    return None if standing is None else _unkept(desk.question, standing.plan.strategy)


def _unkept(question: Question, strategy: Strategy) -> str | None:
    """The demand of the person that the strategy misses and the built-in plan meets."""
    intent, possible = question.intent, question.reference_plan.strategy
    apart = intent.disaggregated
    if apart is not None and is_disaggregated(possible) == apart != is_disaggregated(strategy):
        wanted = "disaggregated: the phases on devices of their own" if apart else "the phases on the same devices"
        return f"the request wants {wanted}, and a valid plan like that exists"
    stated = intent.strategy
    if stated is not None and keeps(possible, stated) and not keeps(strategy, stated):
        return "the request states degrees that this plan does not have, and a valid plan with them exists"
    return None
