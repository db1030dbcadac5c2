"""Degrees by the name of their axis, and lengths by the name of their end, as objects that name neither as a key.

`{"axis": "tensor", "degree": 8}`, `{"shape": [2, 8], "axes": ["pipeline", "tensor"]}`; below a key that speaks of
lengths `{"prompt": 4096, "generate": 64}`. What is no such object is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .figures import whole_number
from .lexicon import DEGREE_NAMES, concept_of, words_of
from .shapes import is_list

_AXES = {
    "tensor": "tp", "model": "tp", "pipeline": "pp", "pipe": "pp", "stage": "pp", "expert": "ep", "experts": "ep",
    "data": "dp", "replica": "dp", "sequence": "sp", "seq": "sp",
}  # fmt: skip
_NAMED = ("axis", "dim", "dimension", "axis name", "kind", "type", "name", "strategy", "method", "parallelism")
_SIZED = ("degree", "size", "value", "ways", "world size", "count", "n", "devices", "group size")
_ALL_AXES = ("axes", "axis names", "dims", "dim names", "mesh axes", "mesh dim names", "dimension names", "names")
_SHAPES = ("shape", "mesh shape", "sizes", "dims", "dimensions", "axis sizes", "degrees")
_LENGTHS = ("seq len", "seq lens", "sequence length", "sequence lengths", "lengths", "length", "tokens",
            "token lengths", "token counts", "context lengths", "sequence")  # fmt: skip
_ENDS = {
    "input_tokens": ("input", "in", "prompt", "prefill", "context", "输入"),
    "output_tokens": (
        "output",
        "out",
        "generate",
        "generated",
        "generation",
        "decode",
        "completion",
        "输出",
    ),
}


def axis_of(words: object) -> str | None:
    """The degree that an axis has by this name: `tensor`, `tensor_parallel`, `TP`."""
    if not isinstance(words, str) or len(words) > 60:
        return None
    plain = words_of(words)
    concept = concept_of(words)
    return _AXES.get(plain) or (concept if concept in DEGREE_NAMES else None)


@dataclass(frozen=True, slots=True)
class AxisDegrees:
    """Degrees by their axes, and what else the object holds."""

    degrees: dict[str, int]
    rest: dict[str, Any]


def degrees_by_axis(members: dict[str, Any]) -> AxisDegrees | None:
    """The degrees that an object states by their axes; `None` where it is none such."""
    if not 2 <= len(members) <= 12:
        return None
    keys = {words_of(str(key)): str(key) for key in members}
    axes = next((keys[name] for name in _ALL_AXES if name in keys and is_list(members.get(keys[name]))), None)
    sizes = next((keys[name] for name in _SHAPES if name in keys and is_list(members.get(keys[name]))), None)
    if axes is not None and sizes is not None and axes != sizes:
        named = [axis_of(axis) for axis in members[axes][:8]]
        numbers = [whole_number(size) for size in members[sizes][:8]]
        found = {axis: size for axis, size in zip(named, numbers, strict=False) if axis and size}
        is_whole = len(found) == len(members[axes]) == len(members[sizes])
        return _with_rest(found, members, axes, sizes) if is_whole else None
    axis = next((keys[name] for name in _NAMED if name in keys and axis_of(members.get(keys[name]))), None)
    size = next((keys[name] for name in _SIZED if name in keys and whole_number(members.get(keys[name]))), None)
    if axis is None or size is None:
        return None
    return _with_rest({str(axis_of(members[axis])): whole_number(members[size]) or 1}, members, axis, size)


def _with_rest(degrees: dict[str, int], members: dict[str, Any], *read: str) -> AxisDegrees:
    return AxisDegrees(degrees, {key: value for key, value in members.items() if key not in read})


def lengths_of(key: str, members: dict[str, Any]) -> dict[str, Any]:
    """Input and output tokens that the object at `key` states; nothing where it states anything else."""
    if words_of(key) not in _LENGTHS or not 1 <= len(members) <= 2:
        return {}
    ends = {words_of(str(name)): value for name, value in members.items()}
    found = {field: ends[name] for field, names in _ENDS.items() for name in names if name in ends}
    return found if len(found) == len(members) else {}
