"""ST001: values that break the format, and how to read those with only one possible meaning.

Numbers written as text, names in another case or by another usual word, a single device for a list of one. Ambiguous
and missing values are left alone.

The reader finds these faults while it reads (only it sees what was not expanded, duplicate keys and what the schema
refuses), so the check over the view adds nothing. Every other rule still runs on what was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from ...plan.document import NODE_MODELS, Edge, Plan
from ...plan.element_reader import SchemaFault
from ...plan.view import PlanView, as_list, as_mapping
from ..base import Example, Finding, Rule, Violation, set_top
from ..findings import Change, Step

_NODE_WORDS = {
    "root": "RequestNode", "dpreplica": "ReplicaNode", "stage": "PipelineStageNode", "ppstage": "PipelineStageNode",
    "embed": "EmbeddingNode", "head": "LMHeadNode", "block": "LayerBlockNode", "layers": "LayerBlockNode",
    "attn": "AttentionNode", "selfattention": "AttentionNode", "mlp": "FFNNode", "feedforward": "FFNNode",
    "mixtureofexperts": "MoENode", "tpshard": "ShardNode", "gate": "RouterNode", "expertgroup": "ExpertNode",
    "kvcache": "KVCacheUpdateNode", "kvupdate": "KVCacheUpdateNode", "a2a": "AllToAllNode",
}  # fmt: skip
_WORDS = {
    "sync": "synchronization", "synchronisation": "synchronization", "pp": "pipeline", "pipe": "pipeline",
    "dataflow": "data", "kv": "kv_cache", "kvcache": "kv_cache", "activation": "activations", "token": "tokens",
    "prefilling": "prefill", "decoding": "decode", "bfloat16": "bf16", "float16": "fp16", "half": "fp16",
    "float32": "fp32", "float8": "fp8", "fp8e4m3": "fp8",
}  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}(?:\.0{1,6})?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?")
_DEVICE = re.compile(r"n(?:ode)?[ _-]?([0-9]{1,9})[ .:/_-]{0,2}g(?:pu)?[ _-]?([0-9]{1,9})")
_MAX_WORD_CHARS = 60
_IDS = frozenset({"id", "parent", "source", "target"})
# Stands for a value that has no other reading.
_AS_IT_IS: Any = object()


def coercions(document: Mapping[str, Any]) -> Iterator[Change]:
    """The changes that replace values of `document` by their only possible meaning."""
    for name in Plan.model_fields:
        if name in document and name not in ("nodes", "edges"):
            yield from _changes((name,), document[name], _kind(Plan, name))
    for place, raw in enumerate(as_list(document.get("nodes"))):
        yield from _node(place, as_mapping(raw))
    for place, raw in enumerate(as_list(document.get("edges"))):
        if isinstance(raw, dict):
            yield from _changes(("edges", place), as_mapping(raw), Edge)  # pyright: ignore[reportUnknownArgumentType] - raw JSON


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
    if written in NODE_MODELS or len(written) > _MAX_WORD_CHARS:
        return written if written in NODE_MODELS else None
    word = _letters(written).removesuffix("node")
    return _node_words().get(word)


@cache
def _node_words() -> Mapping[str, str]:
    return {**_NODE_WORDS, **{name.removesuffix("Node").lower(): name for name in NODE_MODELS}}


def _letters(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum())


def _changes(path: tuple[Step, ...], value: Any, kind: Any) -> Iterator[Change]:
    """Changes that make `value` fit `kind`; none if it does."""
    if _fits(kind, value):
        return
    model = _model_of(kind)
    if model is not None and isinstance(value, dict):
        yield from _members(path, as_mapping(value), model)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return
    item = _item_of(kind)
    if item is not None and isinstance(value, list):
        for place, member in enumerate(as_list(value)):  # pyright: ignore[reportUnknownArgumentType] - raw JSON
            yield from _changes((*path, place), member, item)
        return
    read = _read(value, kind, is_id=path[-1] in _IDS)
    if read is not _AS_IT_IS:
        yield Change("set", path, read)


def _members(path: tuple[Step, ...], value: Mapping[str, Any], model: type[BaseModel]) -> Iterator[Change]:
    fields = model.model_fields
    unused = {_letters(name): name for name in fields if name not in value}
    for name, member in value.items():
        if name in fields:
            yield from _changes((*path, name), member, _kind(model, name))
            continue
        meant = unused.pop(_letters(name), None) if len(name) <= _MAX_WORD_CHARS else None
        if meant is not None:
            read = _read(member, _kind(model, meant), is_id=meant in _IDS)
            yield Change("remove", (*path, name))
            yield Change("set", (*path, meant), member if read is _AS_IT_IS else read)


@cache
def _kind(model: type[BaseModel], name: str) -> Any:
    """The kind of a field, with its bounds: the same object at every call."""
    return model.model_fields[name].rebuild_annotation()


# By identity, since kinds with bounds cannot be compared; the kinds are held by the models.
_ADAPTERS: dict[int, tuple[Any, TypeAdapter[Any]]] = {}


def _fits(kind: Any, value: Any) -> bool:
    if id(kind) not in _ADAPTERS:
        _ADAPTERS[id(kind)] = kind, TypeAdapter(kind)
    try:
        _ADAPTERS[id(kind)][1].validate_python(value)
    except ValidationError:
        return False
    return True


def _members_of(kind: Any) -> tuple[Any, ...]:
    """The members of a union; `kind` itself if it is none."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _model_of(kind: Any) -> type[BaseModel] | None:
    models = [member for member in _members_of(kind) if isinstance(member, type) and issubclass(member, BaseModel)]
    return models[0] if len(models) == 1 else None


def _item_of(kind: Any) -> Any:
    """The kind of the members of a list; `None` if `kind` is no list of one kind."""
    for member in _members_of(kind):
        while get_origin(member) is Annotated:
            member = get_args(member)[0]
        if get_origin(member) is tuple and len(set(get_args(member)) - {...}) == 1:
            return get_args(member)[0]
    return None


def _read(value: Any, kind: Any, *, is_id: bool) -> Any:
    """The only meaning of `value` as `kind`; `_AS_IT_IS` if it has none or several."""
    fitting = [reading for reading in _readings(value, kind, is_id=is_id) if _fits(kind, reading)]
    return fitting[0] if fitting and all(read == fitting[0] for read in fitting) else _AS_IT_IS


def _readings(value: Any, kind: Any, *, is_id: bool) -> Iterator[Any]:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        yield int(value)
    if isinstance(value, int) and not isinstance(value, bool) and is_id:
        yield str(value)
    if isinstance(value, str):
        yield from _texts(value.strip(), kind)
        if _item_of(kind) is not None:
            yield [value.strip()]
            yield from ([read] for read in _texts(value.strip(), _item_of(kind)))


def _texts(text: str, kind: Any) -> Iterator[Any]:
    if len(text) > _MAX_WORD_CHARS:
        return
    if _INTEGER.fullmatch(text):
        yield int(float(text)) if "." in text else int(text)
    elif _NUMBER.fullmatch(text):
        yield float(text)
    elif text.isalpha():
        yield from _spelled(text)
    device = _DEVICE.fullmatch(text.lower())
    if device:
        yield f"n{int(device[1])}.g{int(device[2])}"
    word = _letters(text)
    for member in _members_of(kind):
        for name in get_args(member) if get_origin(member) is Literal else ():
            if isinstance(name, str) and (_letters(name) == word or _WORDS.get(word) == name):
                yield name


def _spelled(word: str) -> Iterator[int]:
    """The whole number that a word spells out: "two"."""
    # Imported only for faulty values, since the reader of numbers takes long to load.
    from ...language.quantities import read_whole

    number = read_whole(word.lower())
    if number is not None:
        yield number


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
