"""Values drawn from the JSON Schema of a tool's arguments, as a model with constrained decoding may write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from shardwright.tools.rules.registry import all_rules

from .benches import FAULTY, GOOD, ILLEGAL

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
# Texts that mean something to a tool, besides arbitrary ones.
TELLING = st.sampled_from(
    [
        GOOD, ILLEGAL, FAULTY, "d9", "Qwen3-8B", "h100-sxm", "EP 怎么用", "TP across nodes", all_rules()[0].id, "id",
        "TP005", "/strategy/gpu_count", "/nodes/0", "/nodes/-", "/edges/0", "", "/", "r0.prefill.s0.b0.attn", "devices",
    ]
)  # fmt: skip
HANDLES = st.sampled_from([GOOD, ILLEGAL, FAULTY])
SMALL_DEGREES = st.sampled_from([1, 2, 3, 4])


def from_schema(schema: dict[str, Any], root: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """Values that `schema` allows; a schema without a type allows any."""
    root = root or schema
    if "$ref" in schema:
        return from_schema(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root)
    if "anyOf" in schema:
        return _choice([from_schema(branch, root) for branch in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _choice([from_schema({**schema, "type": name}, root) for name in kind])
    if kind == "object":
        if "properties" not in schema:
            return st.dictionaries(st.sampled_from(["strategy", "nodes", "edges", "x"]), JSON, max_size=3)
        return st.fixed_dictionaries({name: _field(part, root) for name, part in schema["properties"].items()})
    if kind == "array":
        return st.lists(from_schema(schema["items"], root), min_size=schema.get("minItems", 0), max_size=3)
    if kind == "integer":
        low, high = schema.get("minimum", -9), schema.get("maximum", 9)
        return st.integers(low, high) | SMALL_DEGREES.filter(lambda value: low <= value <= high)
    by_kind = {"string": TELLING | st.text(max_size=30), "number": st.floats(-9, 9), "null": st.none()}
    return {**by_kind, "boolean": st.booleans(), None: JSON}[kind]


def _choice(choices: list[st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of `choices`, the last (null if optional) twice as often, since most tools want one of several fields."""
    return st.integers(0, len(choices)).flatmap(lambda place: choices[min(place, len(choices) - 1)])


def _field(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    values = from_schema(schema, root)
    is_handle = schema.get("type") == "string" and "handle" in schema.get("description", "")
    return HANDLES | values if is_handle else values
