"""An example of a rule in words: the base plan and what is changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .text import value_text

if TYPE_CHECKING:
    from ...tools.rules.base import Edit, Example


def edit_facts(edit: Edit) -> dict[str, Any]:
    """`edit` as JSON can hold it, without the fields that it does not use."""
    from ...tools.rules.base import plain

    return {key: plain(value) for key, value in asdict(edit).items() if value != ""}


def edit_text(edit: Mapping[str, Any]) -> str:
    """One edit (as `edit_facts` gives it) as an instruction."""
    action, name, place = str(edit["action"]), value_text(edit.get("id", "")), value_text(edit.get("field", ""))
    value = value_text(edit.get("value"), 200)
    return {
        "add_node": f"add the node {value}",
        "remove_node": f"remove the node {name} and what hangs below it",
        "set": f"set {place} of node {name} to {value}",
        "add_edge": f"add the edge {value}",
        "remove_edge": f"remove the edge {value}",
        "set_top": f"set {place} to {value}",
        "evaluate": "write the estimate of the plan so far into performance",
        "scale": f"multiply {place} by {value}",
    }[action]


def example_text(example: Example) -> str:
    """`example` in one line."""
    if not example.edits:
        return f"the base plan “{example.base}” as it is"
    return f"the base plan “{example.base}”: {'; '.join(edit_text(edit_facts(edit)) for edit in example.edits)}"
