"""`look_up_model`: what the catalogue knows of a model. It reads no file: a name is a name."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.catalog.models import find_model
from ..facts import model_facts
from .tool import Answer, Arguments, Bench, Tool


class ModelArguments(Arguments):
    """Which model."""

    name: str = Field(description="name of a model, such as Llama-3.1-70B")


# Where a figure comes from, and what no split depends on.
_LEFT_OUT = {"config", "source", "confidence", "notes"}


def _run(bench: Bench, arguments: ModelArguments) -> Answer:
    del bench
    found = model_facts(find_model(arguments.name))
    told: dict[str, Any] = found.model_dump(mode="json", exclude_none=True, exclude=_LEFT_OUT)
    return Answer({name: value for name, value in told.items() if value not in ([], "")})


LOOK_UP_MODEL = Tool(
    name="look_up_model",
    description="Facts of a model of the catalogue: layers, heads, experts, parameters, KV cache per token.",
    arguments=ModelArguments,
    run=_run,
)
