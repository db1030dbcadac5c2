"""`show`: a plan document as a page, a picture, a graph for other programs, or a list."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...tools.draw.dot import dot
from ...tools.draw.mermaid import mermaid
from ...tools.draw.outline import outline
from ...tools.draw.svg import svg
from ...tools.errors import InputError
from ...tools.plan.document import Phase
from ...tools.plan.performance import Frozen
from ...tools.plan.reader import ReadDocument, read_document
from ...tools.show.page import page
from ..agent import Agent
from ..languages.of_text import Language
from ..languages.say import picture_labels
from .operation import Document, Operation, Question, plan_text

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


def _run(question: ShowQuestion, agent: Agent | None) -> Drawn:
    del agent
    read = read_document(plan_text(question.plan))
    if read.raw is None:
        raise InputError(f"plan: {'; '.join(fault.message for fault in read.faults)}")
    return Drawn(form=question.form, text=_drawn(read, question))


def _drawn(read: ReadDocument, question: ShowQuestion) -> str:
    if question.form == "html":
        return page(read, question.phase, picture_labels(question.language))
    write = {"svg": svg, "mermaid": mermaid, "dot": dot, "text": outline}[question.form]
    return write(read.raw, phase=question.phase)


def _text(drawn: Drawn) -> str:
    return drawn.text


SHOW = Operation(
    name="show",
    summary="A picture of a plan document.",
    description="A plan document drawn: an interactive page, an SVG, a Mermaid flowchart, DOT, or a list.",
    asked=ShowQuestion,
    answers=(Drawn,),
    run=_run,
    text=_text,
    is_long=True,
)
