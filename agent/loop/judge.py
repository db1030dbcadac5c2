"""The judge: any proposal in, a judgement out. It is the only way from a model's words to a plan.

Read → put under what was asked → validate → repair → validate again → estimate. Whatever a model wrote, a plan stands
only if validation of exactly that document said so and it answers the question that was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from ...tools.autofix.autofix import autofix_read
from ...tools.autofix.reading import Reading, read_anything, read_text_anyhow
from ...tools.autofix.result import AppliedFix, FixResult, Infeasible, Replanning
from ...tools.errors import InputError
from ...tools.language.said import StatedStrategy
from ...tools.performance.estimate import estimate
from ...tools.plan.canonical import content_hash
from ...tools.plan.document import PHASES, Plan, Strategy
from ...tools.plan.placement import gpu_count, is_disaggregated
from ...tools.plan.plan_size import excess_of
from ...tools.plan.reader import ReadDocument, read_document
from ...tools.plan.view import as_mapping
from ...tools.rules.base import Violation
from ...tools.validate import validate
from ..keeping import keeps
from ..stated_strategy import build_stated, read_block, read_strategy
from .declared import as_stated, unassumed
from .desk import Desk, Standing
from .places import parents_first, right_already
from .question import Question

# A strategy that takes more than so many times the hardware is not laid out: its document would be all fault.
MOST_TIMES_HARDWARE = 2

# A block that states all of these in both phases leaves nothing to be filled in.
_DEGREES = {"pp", "sp", "ep", "tp", "tp_ffn"}

# `valid` as it stood; `repaired` with every decision kept; `replanned` with decisions changed; `invalid` where no
# repair gave a plan; `unread` where there was no proposal to judge.
Verdict = Literal["valid", "repaired", "replanned", "invalid", "unread"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the tools say of one proposal. `violations` are those of the proposal as it stood, before any repair,
    structure first and from the root downwards; `right` says what of it has no fault.

    `contradictions` are fields of the request that it stated otherwise (they were put right), `unkept` what the person
    asked for and it does not have, `notes` how it was read and completed, `refusal` why it could not be judged.
    `standing` is the valid plan that it led to, `rationale` what the model said for it.
    """

    verdict: Verdict
    handle: str | None = None
    content_hash: str = ""
    violations: tuple[Violation, ...] = ()
    right: str | None = None
    contradictions: tuple[str, ...] = ()
    unkept: str | None = None
    notes: tuple[str, ...] = ()
    fixes: tuple[AppliedFix, ...] = ()
    unfixed: tuple[str, ...] = ()
    replanned: Replanning | None = None
    infeasible: Infeasible | None = None
    refusal: str | None = None
    standing: Standing | None = None
    rationale: str | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the rules that the proposal broke as errors, each once, in the order of the report."""
        return tuple(dict.fromkeys(one.rule for one in self.violations if one.severity == "error"))

    @property
    def is_acceptable(self) -> bool:
        """Whether the run may end with its plan: valid, and every decision the model's own and as the person asked."""
        return self.standing is not None and self.verdict in ("valid", "repaired") and self.unkept is None


def judge_text(desk: Desk, text: str, *, repairs: bool = True) -> Judgement:
    """Judge a proposal inside a text, in whatever form it has there."""
    return _judge(desk, read_text_anyhow(text), repairs=repairs)


def judge_document(desk: Desk, document: Mapping[str, Any], *, repairs: bool = True) -> Judgement:
    """Judge a proposal that is an object, of the format or of any other."""
    return _judge(desk, read_anything(document), repairs=repairs)


def judge_strategy(
    desk: Desk, stated: StatedStrategy, *, concurrency: int | None = None, repairs: bool = True
) -> Judgement:
    """Judge the plan that the builder writes for a strategy, as it was stated: nothing illegal is mended on the way."""
    try:
        document = stated_document(desk, stated, concurrency)
    except InputError as error:
        return Judgement("invalid", refusal=str(error))
    return _judge_pinned(desk, document, repairs=repairs)


def stated_document(desk: Desk, stated: StatedStrategy, concurrency: int | None = None) -> dict[str, Any]:
    """The document that the builder writes for a strategy as it was stated, what was left open filled in.

    Raises:
        InputError: nothing can be built of it.
    """
    request = desk.question.request
    return strategy_document(desk, read_strategy(stated, request.architecture, request.hardware), concurrency)


def strategy_document(desk: Desk, strategy: Strategy, concurrency: int | None = None) -> dict[str, Any]:
    """The document that the builder writes for `strategy`, which may break rules.

    Raises:
        InputError: nothing can be built of it.
    """
    question = desk.question
    needed, there = gpu_count(strategy), question.request.facts.gpus
    if needed > MOST_TIMES_HARDWARE * there:
        raise InputError(f"GP004: the strategy needs {needed:,} GPUs, the hardware has {there:,}")
    chosen = concurrency if concurrency and question.intent.concurrency_open else question.concurrency_of(strategy)
    built = build_stated(question.build_request(strategy, chosen), question.request.architecture)
    return built.model_dump(mode="json")


def _judge(desk: Desk, reading: Reading, *, repairs: bool) -> Judgement:
    raw = reading.read.raw
    if raw is None or not any(raw.get(name) for name in ("strategy", "nodes", "edges")):
        return Judgement("unread", notes=reading.notes, refusal="no strategy and no DAG was found in it")
    try:
        check_written_out(reading.read)
    except InputError as error:
        return Judgement("invalid", notes=reading.notes, refusal=str(error))
    raw = desk.hidden(raw)
    said = desk.question.contradictions(raw)
    document, refusal = raw, None
    try:
        document = _built(desk, unassumed(raw, reading.assumed)) or raw
    except InputError as error:
        refusal = str(error)
    judged = _judge_pinned(desk, document, repairs=repairs, notes=reading.notes, contradictions=said)
    # Without a graph that is all there is to say; findings of the missing graph would hide it.
    return judged if refusal is None else replace(judged, refusal=judged.refusal or refusal)


def check_written_out(read: ReadDocument) -> None:
    """Refuse a document part of which stands for nothing: what is left of it is not what was meant.

    Raises:
        InputError: part of its compact form cannot be written out.
    """
    if read.unexpanded:
        first = read.unexpanded[0]
        expected = f" ({first.expected})" if first.expected else ""
        raise InputError(f"{first.path}: {first.message}{expected}")


def _built(desk: Desk, raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """The whole document of a proposal that states its strategy and leaves the graph to the builder; else `None`.

    Raises:
        InputError: the strategy is larger than anything that can be laid out.
    """
    if raw.get("nodes") or raw.get("edges"):
        return None
    workload, block = raw.get("workload"), as_mapping(raw.get("strategy"))
    own = workload.get("concurrency") if isinstance(workload, Mapping) else None
    strategy = strategy_of(desk, block)
    if strategy is None:
        return None
    document = strategy_document(desk, strategy, own if type(own) is int else None)
    return {**document, "strategy": as_stated(document["strategy"], block)}


def strategy_of(desk: Desk, block: Mapping[str, Any]) -> Strategy | None:
    """A strategy block, whole, or in part and then filled in as an engineer would; `None` where it says no degree.

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
        standing = stand(desk, document, handle, is_repaired=False)
        verdict = "valid" if standing else "invalid"
        return replace(judged, verdict=verdict, unkept=_unkept_of(desk, standing), standing=standing)
    return _repaired(desk, document, judged) if repairs else judged


def check_size(desk: Desk, document: Mapping[str, Any]) -> None:
    """Refuse what no plan for this hardware holds, before a judgement of it takes minutes.

    Raises:
        InputError: the document has more nodes or edges than that.
    """
    excess = excess_of(document)
    if excess is not None:
        raise InputError(f"the document has {excess}")


def _repaired(desk: Desk, document: Mapping[str, Any], judged: Judgement) -> Judgement:
    """The judgement of a faulty document, with what auto-fix makes of it."""
    fixed = autofix_read(Reading(read_document(document)))
    standing, refusal = None, None
    if fixed.valid and fixed.document is not None:
        mended = desk.question.pinned(fixed.document)
        try:
            standing = stand(desk, mended, desk.put(mended), is_repaired=True)
            refusal = _unstartable(desk, mended) if standing is None else None
        except InputError as error:
            refusal = str(error)
    return replace(
        judged,
        verdict=_verdict(fixed, standing),
        unkept=_unkept_of(desk, standing),
        notes=(*judged.notes, *fixed.notes),
        fixes=fixed.fixes,
        unfixed=fixed.unfixed,
        replanned=fixed.replanned,
        infeasible=fixed.infeasible,
        refusal=refusal,
        standing=standing,
    )


def _unstartable(desk: Desk, document: Mapping[str, Any]) -> str | None:
    """Why the assumed engine cannot start a plan that a repair gave."""
    why = desk.question.unstartable(document)
    return f"what repair gives cannot be started: {why[0].rule} {why[0].message}" if why else None


def _verdict(fixed: FixResult, standing: Standing | None) -> Verdict:
    if standing is None:
        return "invalid"
    changed = fixed.replanned is not None or any(one.safety == "strategy" for one in fixed.fixes)
    return "replanned" if changed else "repaired"


def stand(desk: Desk, document: Mapping[str, Any], handle: str, *, is_repaired: bool) -> Standing | None:
    """Let `document` stand as a plan, if validation of it says so now and it answers the question; else `None`."""
    question = desk.question
    if not question.answers(document) or not validate(document).valid or question.unstartable(document):
        return None
    plan = Plan.model_validate(document)
    figures = estimate(plan, question.intent.usd_per_gpu_hour, question.intent.calibration)
    standing = Standing(handle, plan, figures, is_repaired, is_kept=_unkept(question, plan.strategy) is None)
    desk.stand(standing)
    return standing


def _unkept_of(desk: Desk, standing: Standing | None) -> str | None:
    return None if standing is None else _unkept(desk.question, standing.plan.strategy)


def _unkept(question: Question, strategy: Strategy) -> str | None:
    """What the person asked for and the strategy does not have, where a valid plan has it: the built-in one."""
    intent, possible = question.intent, question.reference_plan.strategy
    apart = intent.disaggregated
    if apart is not None and is_disaggregated(possible) == apart != is_disaggregated(strategy):
        wanted = "disaggregated: the phases on devices of their own" if apart else "the phases on the same devices"
        return f"the request wants {wanted}, and a valid plan like that exists"
    stated = intent.strategy
    if stated is not None and keeps(possible, stated) and not keeps(strategy, stated):
        return "the request states degrees that this plan does not have, and a valid plan with them exists"
    return None
