"""Every node type of the plan document: where it hangs, what it carries, what it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from ...tools.plan import document
from ...tools.rules.tree import PARENTS
from .markdown import plain, table
from .types import field_text

if TYPE_CHECKING:
    from pydantic import BaseModel

_COMMON = {"id", "type", "parent"}


def node_models() -> tuple[type[BaseModel], ...]:
    """The model of each node type, in the order of the format."""
    union, *_ = get_args(document.Node)
    return get_args(union)


def _own_fields(model: type[BaseModel]) -> str:
    fields = [field_text(name, field) for name, field in model.model_fields.items() if name not in _COMMON]
    return "; ".join(fields) or "—"


def generate() -> str:
    """The table of node types."""
    rows: list[tuple[str, str, str, str]] = []
    for model in node_models():
        name = model.__name__
        below = ", ".join(parent.removesuffix("Node") for parent in PARENTS if parent in PARENTS[name]) or "— (root)"
        meaning = plain((model.__doc__ or "").strip().split("\n")[0].rstrip("."))
        rows.append((f"`{name}`", below, _own_fields(model), meaning))
    return "\n".join(table(("type", "parent", "own fields (? optional)", "stands for"), rows))
