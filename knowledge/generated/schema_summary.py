"""The fields of a plan document outside the graph, block by block; the JSON Schema says the same in full."""

from __future__ import annotations

from textwrap import fill
from typing import get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ...tools.plan.document import Edge, PhaseStrategy, Plan, ReasoningStep
from .types import field_text

_WIDTH = 140
# Shown on their own lines after the block that holds them; nodes have a table of their own.
_PARTS: dict[str, tuple[str, type[BaseModel]]] = {
    "reasoning": ("each step", ReasoningStep),
    "strategy": ("each of prefill and decode", PhaseStrategy),
    "edges": ("each edge", Edge),
}


def generate() -> str:
    """One line for each field of the document."""
    lines: list[str] = []
    for name, field in Plan.model_fields.items():
        block = _block(field)
        mark = "" if field.is_required() else "?"
        if name == "nodes":
            lines.append(f"- `{name}`: list of nodes, each with `id`, `type`, `parent` and the fields of its type")
        elif name == "performance":
            lines.append(f"- `{name}`{mark}: a claimed estimate; leave it out, the tools compute it")
        elif block is not None:
            lines.append(f"- `{name}`{mark}: {_fields(block)}")
        elif name in _PARTS:
            lines.append(f"- `{name}`{mark}: a list")
        else:
            lines.append(f"- {field_text(name, field)}")
        if name in _PARTS:
            what, part = _PARTS[name]
            lines.append(f"  - {what}: {_fields(part)}")
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    indent = " " * (line.index("- ") + 2)
    return fill(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _block(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that holds one object, `None` where it does not."""
    for option in (field.annotation, *get_args(field.annotation)):
        if isinstance(option, type) and get_origin(option) is None and issubclass(option, BaseModel):
            return option if get_origin(field.annotation) is not tuple else None
    return None


def _fields(model: type[BaseModel]) -> str:
    parts = {PhaseStrategy: "(below)"}
    shown: list[str] = []
    for name, field in model.model_fields.items():
        below = parts.get(field.annotation) if isinstance(field.annotation, type) else None
        shown.append(f"`{name}`: {below}" if below else field_text(name, field))
    return "; ".join(shown)
