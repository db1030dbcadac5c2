"""`import`: what runs today, launch commands or a manifest, as a plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...tools.plan.reader import MAX_DOCUMENT_BYTES
from ..agent import Agent
from ..import_api import Imported, import_plan
from .asking import Setting
from .operation import WIDTH, Operation

Text = Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)]


class ImportQuestion(Setting):
    """Launch commands or a manifest, and what these do not say."""

    source: Text = Field(description="A launch command, a script or a manifest, as text.")
    files: dict[str, Text] = Field(
        default_factory=dict[str, str], description="Texts of files that the commands name, by their names."
    )


def _run(question: ImportQuestion, agent: Agent | None) -> Imported:
    del agent
    return import_plan(
        question.source,
        model=question.model,
        hardware=question.hardware,
        workload=question.workload,
        files=question.files,
        **question.arguments(),
    )


def _text(found: Imported) -> str:
    from ..report.importing import render_import

    return render_import(found, width=WIDTH)


IMPORT = Operation(
    name="import",
    summary="What runs today, a command or a manifest, as a plan.",
    description=(
        "A launch command of vLLM, SGLang or TensorRT-LLM, a script, or a manifest (Kubernetes, docker-compose, "
        "Dynamo, Ray Serve) as a plan, judged and estimated as it runs. Say the hardware where the text does not."
    ),
    asked=ImportQuestion,
    answers=(Imported,),
    run=_run,
    text=_text,
    is_long=True,
)
