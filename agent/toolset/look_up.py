"""`look_up`: what the package knows of a model, an accelerator, a rule, or splitting in general. It reads no file that
a model names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ...tools.catalog.hardware import find_accelerator
from ...tools.catalog.models import find_model
from ...tools.rules.base import Rule
from ...tools.rules.examples import apply
from ...tools.rules.registry import find_rule
from ...tools.validate import validate
from ..facts import model_facts
from ..loop.feedback import finding
from ..report.edits import example_text
from .tool import Answer, Arguments, Bench, Tool

if TYPE_CHECKING:
    from ...knowledge.section import Section

# Most passages of an answer, and tokens of all; the first is whole unless it alone is longer.
_MOST_PASSAGES = 3
_MOST_TOKENS = 600
_MOST_NAMED = 6


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


def _rule(name: str) -> Answer:
    """The rule with an id.

    Raises:
        UnknownNameError: no such rule; the message names the nearest.
    """
    rule = find_rule(name[:40])
    return Answer(
        {
            "rule": rule.id,
            "offence": rule.name,
            "severity": rule.severity,
            "requirement": rule.requirement,
            "why": rule.rationale,
            "source": rule.source,
            "remedy": rule.remedy,
            "repair": rule.fix,
            "bad_example": _bad_example(rule),
        }
    )


def _bad_example(rule: Rule) -> dict[str, Any]:
    """Edits of a small plan that break the rule, and the finding in it."""
    fault = next((violation for violation in validate(apply(rule.bad)).violations if violation.rule == rule.id), None)
    content: dict[str, Any] = {"made_of": example_text(rule.bad)}
    return content if fault is None else {**content, "found": finding(fault)}


def _section(name: str) -> Answer:
    """The section with an id.

    Raises:
        UnknownNameError: no such section.
    """
    # Imported on use: the base is read then.
    from ...knowledge.index import knowledge

    return _passages([knowledge().section(name[:200])])


def _answers(question: str) -> Answer:
    """The passages that answer a question, in English or Chinese."""
    from ...knowledge.search import search_sections

    result = search_sections(question, _MOST_PASSAGES + _MOST_NAMED)
    if result.hits:
        return _passages([hit.section for hit in result.hits])
    nearest = [_named(section) for section in result.nearest]
    return Answer({"message": "the knowledge base does not speak of this", "nearest": nearest}, "infeasible")


def _passages(sections: Sequence[Section]) -> Answer:
    """The first of `sections` within the token limit, the others by name."""
    passages: list[dict[str, Any]] = []
    remaining_tokens = _MOST_TOKENS
    for section in sections[:_MOST_PASSAGES]:
        if passages and section.tokens > remaining_tokens:
            break
        remaining_tokens -= section.tokens
        passages.append({**_named(section), "rules": list(section.rules), "text": section.text})
    more = [_named(section) for section in sections[len(passages) : len(passages) + _MOST_NAMED]]
    return Answer({"passages": passages} | ({"more": more} if more else {}))


def _named(section: Section) -> dict[str, Any]:
    return {"section": section.id, "citation": section.citation}


_WAYS: dict[str, Callable[[str], Answer]] = {
    "model": _model,
    "accelerator": _accelerator,
    "rule": _rule,
    "section": _section,
    "question": _answers,
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
