"""`hardware`: the catalogue of accelerators, or one of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.hardware import all_accelerators, find_accelerator
from ..agent import Agent
from ..facts import AcceleratorList
from ..report.catalogues import render_accelerator, render_accelerators
from .operation import WIDTH, Operation, Question


class HardwareQuestion(Question):
    """Which accelerator; all where none is named."""

    name: Annotated[str, Field(max_length=300)] | None = Field(None, description="A name, such as h100-sxm.")


def _run(question: HardwareQuestion, agent: Agent | None) -> AcceleratorList | Accelerator:
    del agent
    if question.name is None:
        return AcceleratorList(accelerators=all_accelerators())
    return find_accelerator(question.name)


def _text(found: AcceleratorList | Accelerator) -> str:
    if isinstance(found, AcceleratorList):
        return render_accelerators(found.accelerators, width=WIDTH)
    return render_accelerator(found, width=WIDTH)


HARDWARE = Operation(
    name="hardware",
    summary="The catalogue of accelerators, or one of them.",
    description="Every known accelerator, or one by name: rates, memory, links, price, each with its source.",
    asked=HardwareQuestion,
    answers=(AcceleratorList, Accelerator),
    run=_run,
    text=_text,
)
