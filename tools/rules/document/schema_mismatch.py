"""ST001: values that break the format, and how to read those with only one possible meaning.

Numbers written as text, names in another case or by another usual word, a single device for a list of one. Ambiguous
and missing values are left alone.

The reader finds these faults while it reads (only it sees what was not expanded, duplicate keys and what the schema
refuses), so the check over the view adds nothing. Every other rule still runs on what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from ...plan.document import NODE_MODELS, Edge, Plan
from ...plan.element_reader import SchemaFault
from ...plan.view import PlanView, as_list, as_mapping
from ..base import Example, Finding, Rule, Violation, set_top
from ..findings import Change, Step
from .constraint_readings import written_constraints
from .readings import AS_IT_IS, MAX_WORD_CHARS, field_kind, fits, item_of, letters, members_of, only_reading

_NODE_WORDS = {
    "root": "RequestNode", "dpreplica": "ReplicaNode", "stage": "PipelineStageNode", "ppstage": "PipelineStageNode",
    "embed": "EmbeddingNode", "head": "LMHeadNode", "block": "LayerBlockNode", "layers": "LayerBlockNode",
    "attn": "AttentionNode", "selfattention": "AttentionNode", "mlp": "FFNNode", "feedforward": "FFNNode",
    "mixtureofexperts": "MoENode", "tpshard": "ShardNode", "gate": "RouterNode", "expertgroup": "ExpertNode",
    "kvcache": "KVCacheUpdateNode", "kvupdate": "KVCacheUpdateNode", "a2a": "AllToAllNode",
}  # fmt: skip
_IDS = frozenset({"id", "parent", "source", "target"})


def coercions(document: Mapping[str, Any]) -> Iterator[Change]:
    """The changes that replace values of `document` by their only possible meaning."""
    for name in Plan.model_fields:
        if name in document and name not in ("nodes", "edges"):
            yield from _changes((name,), document[name], field_kind(Plan, name))
    yield from _misplaced(document)
    for place, raw in enumerate(as_list(document.get("nodes"))):
        yield from _node(place, as_mapping(raw))
    for place, raw in enumerate(as_list(document.get("edges"))):
        if isinstance(raw, dict):
            yield from _changes(("edges", place), as_mapping(raw), Edge)  # pyright: ignore[reportUnknownArgumentType] - raw JSON


def _misplaced(document: Mapping[str, Any]) -> Iterator[Change]:
    """Constraints that stand beside the policy, moved into it."""
    stated, policy = document.get("constraints"), document.get("policy", {})
    if not stated or not isinstance(policy, dict) or "constraints" in policy:
        return
    path, constraints = ("policy", "constraints"), written_constraints(stated)
    yield Change("remove", ("constraints",))
    yield Change("set", path, constraints) if policy else Change("set", path[:1], {"constraints": constraints})


def _node(place: int, raw: Mapping[str, Any]) -> Iterator[Change]:
    written = raw.get("type")
    kind = _node_type(written) if isinstance(written, str) else None
    if kind is None:
        return
    if kind != written:
        yield Change("set", ("nodes", place, "type"), kind)
    yield from _changes(("nodes", place), {**raw, "type": kind}, NODE_MODELS[kind])


def _node_type(written: str) -> str | None:
    """The node type that a word means, in any case, with or without the ending `Node`; `None` if unknown."""
    if written in NODE_MODELS or len(written) > MAX_WORD_CHARS:
        return written if written in NODE_MODELS else None
    word = letters(written).removesuffix("node")
    return _node_words().get(word)


@cache
def _node_words() -> Mapping[str, str]:
    return {**_NODE_WORDS, **{name.removesuffix("Node").lower(): name for name in NODE_MODELS}}


def _changes(path: tuple[Step, ...], value: Any, kind: Any) -> Iterator[Change]:
    """Changes that make `value` fit `kind`; none if it does."""
    if fits(kind, value):
        return
    if path == ("policy", "constraints"):
        written = written_constraints(value)
        if written != value:
            yield Change("set", path, written)
        return
    model = _model_of(kind)
    if model is not None and isinstance(value, dict):
        yield from _members(path, as_mapping(value), model)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return
    item = item_of(kind)
    if item is not None and isinstance(value, list):
        for place, member in enumerate(as_list(value)):  # pyright: ignore[reportUnknownArgumentType] - raw JSON
            yield from _changes((*path, place), member, item)
        return
    read = only_reading(value, kind, is_id=path[-1] in _IDS)
    if read is not AS_IT_IS:
        yield Change("set", path, read)


def _members(path: tuple[Step, ...], value: Mapping[str, Any], model: type[BaseModel]) -> Iterator[Change]:
    fields = model.model_fields
    unused = {letters(name): name for name in fields if name not in value}
    for name, member in value.items():
        if name in fields:
            yield from _changes((*path, name), member, field_kind(model, name))
            continue
        meant = unused.pop(letters(name), None) if len(name) <= MAX_WORD_CHARS else None
        if meant is not None:
            read = only_reading(member, field_kind(model, meant), is_id=meant in _IDS)
            yield Change("remove", (*path, name))
            yield Change("set", (*path, meant), member if read is AS_IT_IS else read)


def _model_of(kind: Any) -> type[BaseModel] | None:
    models = [member for member in members_of(kind) if isinstance(member, type) and issubclass(member, BaseModel)]
    return models[0] if len(models) == 1 else None


def check(view: PlanView) -> tuple[Finding, ...]:
    """Nothing: what breaks the schema is not in the view."""
    del view
    return ()


def finding_of(fault: SchemaFault, nodes: tuple[str, ...]) -> Finding:
    """The finding of a fault of the reader, with the nodes at its place."""
    return Finding("breaks-schema", fault.message, fault.path, nodes, (), fault.value, fault.expected)


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Rewrite all values of the document that have only one possible meaning."""
    del violation
    yield from view.once(mend, lambda: tuple(coercions(view.raw)))


RULE = Rule(
    id="ST001",
    name="document that breaks the schema",
    requirement=(
        "The document matches the published JSON Schema: types, required fields, closed sets of node and edge types, "
        "no unknown field outside `model.config`."
    ),
    rationale="What a program cannot read as the format says, two programs will read in two ways.",
    source="000 §7, 002 §7",
    remedy="write it as `shardwright schema` says",
    check=check,
    bad=Example("dense-1", (set_top("/workload/concurrency", "four"),)),
    mend=mend,
)
