"""Operations on a plan document: `validate`, `fix` (of any proposal), `estimate`, `export` and `show`."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field

from ...tools.autofix.autofix import Chosen, read_anything, read_text_anyhow
from ...tools.autofix.result import FixResult
from ...tools.draw.dot import dot
from ...tools.draw.mermaid import mermaid
from ...tools.draw.outline import outline
from ...tools.draw.svg import svg
from ...tools.errors import InputError
from ...tools.export.export import export
from ...tools.export.result import Export, TargetName
from ...tools.frozen import Frozen
from ...tools.language.request import MAX_REQUEST_CHARACTERS
from ...tools.performance.estimate import estimate
from ...tools.plan.document import Phase
from ...tools.plan.performance import PerformanceEstimate
from ...tools.plan.reader import MAX_DOCUMENT_BYTES, ReadDocument, read_document
from ...tools.show.page import page
from ...tools.validate import ValidationReport, validate
from ..fix_api import fixed
from ..languages.of_text import Language
from ..languages.say import picture_labels
from ..report.estimate import render_estimate
from ..report.export import render_export
from ..report.fix import render_fix
from ..report.validation import render_validation
from .asking import Traced
from .operation import WIDTH, Document, Operation, Question, TakesPlan, plan_text


class ValidateQuestion(Question):
    """A plan document to check."""

    plan: Document


def _validate(question: ValidateQuestion) -> ValidationReport:
    return validate(plan_text(question.plan))


VALIDATE = Operation(
    name="validate",
    summary="Check a plan document against all hard rules.",
    description="Every violation with its rule, place, what stands there, what would pass, and how to mend it.",
    asked=ValidateQuestion,
    answers=(ValidationReport,),
    run=_validate,
    text=partial(render_validation, title="the plan", width=WIDTH),
)


class FixQuestion(Question):
    """A proposal, and how far it may be changed."""

    proposal: Annotated[dict[str, Any] | Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)], TakesPlan()] = Field(
        description="A plan document, or any text with a proposal in it (prose, sloppy JSON, a layout in words)."
    )
    request: Annotated[str, Field(max_length=MAX_REQUEST_CHARACTERS)] | None = Field(
        None, description="What was asked, in words, for what the proposal leaves out: model, hardware, load."
    )
    safe_only: bool = Field(False, description="Make only fixes that keep what the author decided.")
    keep_strategy: bool = Field(False, description="Where strategy and graph differ, rebuild the graph.")
    rules: list[str] | None = Field(None, max_length=200, description="Mend only what these rules find.")


def _fix(question: FixQuestion) -> FixResult:
    proposal = question.proposal
    if isinstance(proposal, str) and not proposal.strip():
        raise InputError("proposal: empty; give a plan document, or a text with a proposal in it")
    reading = read_text_anyhow(proposal) if isinstance(proposal, str) else read_anything(proposal)
    chosen = Chosen.of(question.rules or None, safe_only=question.safe_only, keep_strategy=question.keep_strategy)
    return fixed(reading, question.request, chosen)


FIX = Operation(
    name="fix",
    summary="Repair a proposal until it keeps every rule.",
    description=(
        "A valid plan of a broken one or of any proposal: what the author decided is kept as far as rules allow, and "
        "every change is listed with its rule and JSON Patch."
    ),
    asked=FixQuestion,
    answers=(FixResult,),
    run=_fix,
    text=partial(render_fix, title="the proposal", width=WIDTH),
    is_long=True,
)


class EstimateQuestion(Traced):
    """A plan document to estimate, valid or not."""

    plan: Document
    usd_per_gpu_hour: float | None = Field(None, gt=0, description="Price, for the cost per million tokens.")
    workload: dict[str, Any] | None = Field(
        None, description="Fields of the load in place of the plan's, such as {'concurrency': 64}."
    )


def _estimate(question: EstimateQuestion) -> PerformanceEstimate:
    plan, price = plan_text(question.plan), question.usd_per_gpu_hour
    return estimate(plan, price, trace=question.read_trace(), workload=question.workload)


ESTIMATE = Operation(
    name="estimate",
    summary="Latency, throughput and memory of a plan document.",
    description="TTFT, TPOT, throughput with measured ranges, where the time goes, memory of each GPU, critical path.",
    asked=EstimateQuestion,
    answers=(PerformanceEstimate,),
    run=_estimate,
    text=partial(render_estimate, title="Estimate", width=WIDTH),
    is_long=True,
)


class ExportQuestion(Question):
    """A plan document, and what is to run it."""

    plan: Document
    to: TargetName = Field(description="An engine, or a form that runs the plan's engine.")


def _export(question: ExportQuestion) -> Export:
    return export(plan_text(question.plan), question.to)


def _export_text(exported: Export) -> str:
    return render_export(exported, title="the plan", width=WIDTH) if exported.text is None else exported.text


EXPORT = Operation(
    name="export",
    summary="What starts the servers of a plan document.",
    description="The launch script or manifest of a plan, or why the engine cannot run it and the nearest plan it can.",
    asked=ExportQuestion,
    answers=(Export,),
    run=_export,
    text=_export_text,
    is_long=True,
)

Form = Literal["html", "svg", "mermaid", "dot", "text"]


class ShowQuestion(Question):
    """A plan document to draw, broken or not."""

    plan: Document
    form: Form = Field("svg", description="html: a page that needs nothing else; text: a list of what is in it.")
    phase: Phase | None = Field(None, description="Only this phase.")
    language: Language = Field("en", description="Of the labels of html.")


class Drawn(Frozen):
    """A picture as text of its form."""

    form: Form
    text: str


def _show(question: ShowQuestion) -> Drawn:
    read = read_document(plan_text(question.plan))
    if read.raw is None:
        raise InputError(f"plan: {'; '.join(fault.message for fault in read.faults)}")
    return Drawn(form=question.form, text=_drawn(read, question))


def _drawn(read: ReadDocument, question: ShowQuestion) -> str:
    if question.form == "html":
        return page(read, question.phase, picture_labels(question.language))
    write = {"svg": svg, "mermaid": mermaid, "dot": dot, "text": outline}[question.form]
    return write(read.raw, phase=question.phase)


SHOW = Operation(
    name="show",
    summary="A picture of a plan document.",
    description="A plan document drawn: an interactive page, an SVG, a Mermaid flowchart, DOT, or a list.",
    asked=ShowQuestion,
    answers=(Drawn,),
    run=_show,
    text=attrgetter("text"),
    is_long=True,
)
