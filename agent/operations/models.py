"""`models`: the catalogue of models, or one by name or config."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ...tools.catalog.models import all_models, load_model
from ..agent import Agent
from ..facts import ModelFacts, ModelList, model_facts
from ..report.catalogues import render_model, render_models
from .operation import WIDTH, Operation, Question


class ModelsQuestion(Question):
    """Which model; all where none is named."""

    name: Annotated[str, Field(max_length=300)] | dict[str, Any] | None = Field(
        None, description="A name, an id on the Hugging Face Hub, or the object of a config.json."
    )


def _run(question: ModelsQuestion, agent: Agent | None) -> ModelList | ModelFacts:
    del agent
    if question.name is None:
        return ModelList(models=tuple(map(model_facts, all_models())))
    return model_facts(load_model(question.name), with_config=True)


def _text(found: ModelList | ModelFacts) -> str:
    if isinstance(found, ModelFacts):
        return render_model(found, width=WIDTH)
    return render_models(found.models, width=WIDTH)


MODELS = Operation(
    name="models",
    summary="The catalogue of models, or one of them.",
    description="Every known model, or one by name or config: layers, attention, parameters, KV cache per token.",
    asked=ModelsQuestion,
    answers=(ModelList, ModelFacts),
    run=_run,
    text=_text,
)
