"""Degrees by the name of their axis, and lengths by the name of their end, as objects that name neither as a key.

`{"axis": "tensor", "degree": 8}`, `{"shape": [2, 8], "axes": ["pipeline", "tensor"]}`; below a key that speaks of
lengths `{"prompt": 4096, "generate": 64}`. What is no such object is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...shapes import is_list
from .figures import whole_number
from .lexicon import DEGREE_NAMES, concept_of, words_of

_AXES = {
    "tensor": "tp", "model": "tp", "pipeline": "pp", "pipe": "pp", "stage": "pp", "expert": "ep", "experts": "ep",
    "data": "dp", "replica": "dp", "sequence": "sp", "seq": "sp",
}  # fmt: skip
_AXIS = ("axis", "dim", "dimension", "axis name", "kind", "type", "name", "strategy", "method", "parallelism")
_SIZE = ("degree", "size", "value", "ways", "world size", "count", "n", "devices", "group size")
_ALL_AXES = ("axes", "axis names", "dims", "dim names", "mesh axes", "mesh dim names", "dimension names", "names")
_ALL_SIZES = ("shape", "mesh shape", "sizes", "dims", "dimensions", "axis sizes", "degrees")
_LENGTHS = ("seq len", "seq lens", "sequence length", "sequence lengths", "lengths", "length", "tokens",
            "token lengths", "token counts", "context lengths", "sequence")  # fmt: skip
_ENDS = {
    "input_tokens": ("input", "in", "prompt", "prefill", "context", "输入"),
    "output_tokens": ("output", "out", "generate", "generated", "generation", "decode", "completion", "输出"),
}


def axis_of(words: object) -> str | None:
    """The degree that an axis has by this name: `tensor`, `tensor_parallel`, `TP`."""
    if not isinstance(words, str) or len(words) > 60:
        return None
    concept = concept_of(words)
    return _AXES.get(words_of(words)) or (concept if concept in DEGREE_NAMES else None)


def degrees_by_axis(members: dict[str, Any]) -> tuple[dict[str, int], dict[str, Any]] | None:
    """The degrees that an object states by their axes, and what else it holds; `None` where it is no such object."""
    if not 2 <= len(members) <= 12:
        return None
    axes, sizes = _first(members, _ALL_AXES, is_list), _first(members, _ALL_SIZES, is_list)
    if axes is not None and sizes is not None and axes != sizes:
        named, numbers = members[axes], members[sizes]
    else:
        axes, sizes = _first(members, _AXIS, axis_of), _first(members, _SIZE, whole_number)
        if axes is None or sizes is None:
            return None
        named, numbers = [members[axes]], [members[sizes]]
    pairs = zip(map(axis_of, named[:8]), map(whole_number, numbers[:8]), strict=False)
    degrees = {axis: size for axis, size in pairs if axis and size}
    if len(degrees) != len(named) or len(degrees) != len(numbers):
        return None
    return degrees, {key: value for key, value in members.items() if key not in (axes, sizes)}


def _first(members: dict[str, Any], names: tuple[str, ...], fits: Callable[[Any], object]) -> str | None:
    """The key of the first of `names` whose value fits."""
    keys = {words_of(str(key)): str(key) for key in members}
    return next((keys[name] for name in names if name in keys and fits(members.get(keys[name]))), None)


def lengths_of(key: str, members: dict[str, Any]) -> dict[str, Any]:
    """Input and output tokens that the object at `key` states; nothing where it states anything else."""
    if words_of(key) not in _LENGTHS or not 1 <= len(members) <= 2:
        return {}
    ends = {words_of(str(name)): value for name, value in members.items()}
    lengths = {field: ends[name] for field, names in _ENDS.items() for name in names if name in ends}
    return lengths if len(lengths) == len(members) else {}
