"""Finds a document of our format: as it stands, inside another object, or with its graph in other containers.

Such a document is read as what it is: a proposal in another form keeps only what is known of many forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ...checkpoint import checked
from ...input.shapes import is_object
from ...input.strict_json import parse
from ...input.strict_values import JsonError
from ...plan.document import FORMAT, NODE_MODELS, Plan
from ...plan.elements import as_list, as_mapping, as_str

# What a plan comes in has few members, and a plan is not far inside it.
_MOST_AROUND = 3
_MOST_MEMBERS = 64
_GRAPH = frozenset({"nodes", "edges"})
_BLOCKS = Plan.model_fields.keys() - {"format", "version"}


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether a document is in our format, perhaps damaged: it says so, or most of its nodes have our types.

    Not if nodes contain others or edges are texts, which our format does not have.
    """
    nodes, edges = document.get("nodes"), as_list(document.get("edges"))
    listed = [as_mapping(node) for node in checked(as_list(nodes))]
    if any("children" in node for node in listed) or isinstance(document.get("edges"), str | dict):
        return False
    if edges and all(isinstance(edge, str) for edge in edges):
        return False
    if says_ours(document):
        return not is_object(nodes)
    return 2 * sum(as_str(node.get("type")) in NODE_MODELS and "id" in node for node in listed) > len(listed)


def says_ours(document: Mapping[str, Any]) -> bool:
    """Whether a document says that it is in our format."""
    return document.get("format") == FORMAT


def own_header(value: object) -> dict[str, Any]:
    """The blocks beside the graph of a document that says it is ours, whatever its graph is."""
    stated = as_mapping(value)
    names = Plan.model_fields.keys() - _GRAPH if says_ours(stated) else ()
    return {name: stated[name] for name in stated if name in names}


def own_document(value: object) -> Mapping[str, Any] | None:
    """The document of our format that `value` is (then itself, if nothing in it is in another container) or holds."""
    listed = _with_lists(value) if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownArgumentType]
    return listed if listed is None or is_ours(listed) else _held(listed, _MOST_AROUND)


def _held(around: Mapping[str, Any], levels: int) -> Mapping[str, Any] | None:
    """The document inside `around`: what it calls its plan, else the only one; none that lacks a block beside it."""
    held: list[Mapping[str, Any]] = []
    for name, member in islice(around.items(), _MOST_MEMBERS):
        inner = _with_lists(as_mapping(_parsed(member)))
        if (says_ours(inner) or "strategy" in inner) and is_ours(inner):
            document = inner
        else:
            document = _held(inner, levels - 1) if levels > 1 else None
        if document is None or _BLOCKS & (around.keys() - document.keys()):
            continue
        if name == "plan":
            return document
        held.append(document)
    return held[0] if len(held) == 1 else None


def _with_lists(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """`document` with its nodes and edges in lists; itself if they are."""
    changed = {name: _listed(name, document[name]) for name in _GRAPH if isinstance(document.get(name), dict | str)}
    return {**document, **changed} if changed else document


def _listed(name: str, written: Any) -> Any:
    """Nodes or edges as a list: of an object's members, each under its id, or what a text holds as JSON."""
    elements = _parsed(written)
    if not is_object(elements):
        return elements
    members = {key: as_mapping(member) for key, member in elements.items()}
    if name == "nodes":
        is_keyed = all("type" in member for member in members.values())
        return [{"id": key, **member} for key, member in members.items()] if is_keyed else elements
    return [*members.values()] if all("source" in member for member in members.values()) else elements


def _parsed(value: object) -> object:
    """What a text holds as JSON; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return parse(value, "")
    except JsonError:
        return value
