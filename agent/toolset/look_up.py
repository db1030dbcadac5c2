"""`look_up`: what the package knows of a model, an accelerator, a rule, or splitting in general. It reads no file that
a model names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from ...tools.catalog.hardware import find_accelerator
from ...tools.catalog.models import find_model
from ..facts import model_facts
from .passages_text import passages_told, section_told
from .rule_text import rule_told
from .tool import Answer, Arguments, Bench, Tool


class LookUpArguments(Arguments):
    """What is looked up."""

    kind: Literal["model", "accelerator", "rule", "section", "question"]
    name: str = Field(description="a name or id; for `question` the question", max_length=2_000)


# Sources of figures, and what no split depends on.
_LEFT_OUT_OF_MODEL = {"config", "source", "confidence", "notes"}
_LEFT_OUT_OF_ACCELERATOR = {
    "source", "price_source", "notes", "confidence", "tdp_w", "multiprocessors", "l2_bytes", "ridge_flop_per_byte",
    "host_pcie_gb_s_unidirectional", "host_link_gb_s_unidirectional", "memory_type", "form_factor", "names", "brands",
    "kernels_like", "kernels_like_reason",
}  # fmt: skip


def _model(name: str) -> Answer:
    facts: dict[str, Any] = model_facts(find_model(name)).model_dump(
        mode="json", exclude_none=True, exclude=_LEFT_OUT_OF_MODEL
    )
    return Answer({field: value for field, value in facts.items() if value not in ([], "")})


def _accelerator(name: str) -> Answer:
    return Answer(find_accelerator(name).model_dump(mode="json", exclude_none=True, exclude=_LEFT_OUT_OF_ACCELERATOR))


_WAYS: dict[str, Callable[[str], Answer]] = {
    "model": _model,
    "accelerator": _accelerator,
    "rule": rule_told,
    "section": section_told,
    "question": passages_told,
}


def _run(bench: Bench, arguments: LookUpArguments) -> Answer:
    del bench
    return _WAYS[arguments.kind](arguments.name)


LOOK_UP = Tool(
    name="look_up",
    description=(
        "Facts of a model or an accelerator; a rule with an example; a section, or passages that answer a question on "
        "splitting models or on writing DAG documents."
    ),
    arguments=LookUpArguments,
    run=_run,
)
