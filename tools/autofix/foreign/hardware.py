"""Reads the hardware of a foreign proposal (accelerators, counts), and degrees and lengths that are no keys.

These are `{"axis": "tensor", "degree": 8}`, `{"shape": [2, 8], "axes": ["pipeline", "tensor"]}`, and below a key for
lengths `{"prompt": 4096, "generate": 64}`. Other objects are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...catalog.hardware import find_accelerator
from ...errors import InputError
from ...input.bounds import DEGREE
from ...input.shapes import is_list, is_object
from .claims import Claims
from .figures import whole_number
from .items import ItemReader
from .lexicon import DEGREE_NAMES, concept_of, words_of
from .scope import Scope
from .words import HardwareWords

_COUNTS = ("count", "num", "number", "quantity", "total")
HARDWARE = ("hardware", "accelerator", "node_count", "gpus_per_node", "gpu_total", "devices")


class HardwareReader:
    """Reads the hardware of one proposal for its walk."""

    def __init__(self, claims: Claims, items: ItemReader) -> None:
        self._claims, self._items = claims, items

    def takes_member(self, concept: str | None, value: Any, scope: Scope) -> bool:
        """Read a member of an object that describes hardware; return whether it was understood."""
        if concept in ("type", "id", "model", "accelerator") and isinstance(value, str):
            self._accelerator(value, scope, must=concept != "id")
        elif concept in ("gpu_total", "devices", "accelerator") and whole_number(value) is not None:
            self._count("gpus_per_node" if scope.is_node else "total", value, scope)
        elif concept in ("node_count", "nodes") and is_list(value) and value:
            self._claims.facts.claim("nodes", len(value), scope.where)
            self._claims.walk(value, scope.but(is_node=True))
        elif concept is None and words_of(scope.key) in _COUNTS:
            self._count("total", value, scope)
        elif concept is None and words_of(scope.key) == "per node":
            self._count("gpus_per_node", value, scope)
        else:
            return False
        return True

    def read(self, concept: str, value: Any, scope: Scope) -> None:
        """Read the value of a concept in `HARDWARE`, wherever it occurs."""
        if concept == "gpu_total" and isinstance(value, str) and self._claims.words.hardware(value).accelerator:
            concept = "hardware"
        if is_object(value) and concept not in ("node_count", "gpus_per_node"):
            self._claims.walk(value, scope.but(hardware=True))
        elif isinstance(value, str) and concept in ("hardware", "accelerator"):
            self._accelerator(value, scope, must=True)
        elif concept in ("node_count", "gpus_per_node"):
            self._count("nodes" if concept == "node_count" else concept, value, scope)
        elif whole_number(value) is not None and not is_list(value):
            if concept != "gpu_total":
                self._claims.unclear("{} is a count of devices or the number of one", value, scope)
            elif scope.phase is None:
                self._count("total", value, scope)
        elif self._claims.places_of(value) is None:
            self._claims.unknown(concept, concept, value, scope)
        else:
            self._items.take_devices(value, scope)

    def _count(self, field: str, value: Any, scope: Scope) -> None:
        number = whole_number(value)
        if number is None or not DEGREE.hold(number):
            self._claims.unclear("{} is no count", value, scope)
        elif scope.phase is None:
            self._claims.facts.claim(field, number, scope.where)

    def _accelerator(self, text: str, scope: Scope, *, must: bool) -> None:
        """Claim an accelerator by name, with the counts beside it; `must`: note a name that is unknown."""
        words = self._claims.words.hardware(text)
        if words.accelerator is None:
            try:
                words = HardwareWords(find_accelerator(text).id)
            except InputError as error:
                if must:
                    self._claims.notes.unclear(words.problem or str(error), scope.where, "hardware.accelerator")
                return
        self._claims.facts.claim("accelerator", words.accelerator, scope.where)
        for field, number in words.counts.items():
            self._claims.facts.claim(field, number, scope.where)


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
    """The degree that the name of an axis means: `tensor`, `tensor_parallel`, `TP`; `None` if unknown."""
    if not isinstance(words, str) or len(words) > 60:
        return None
    concept = concept_of(words)
    return _AXES.get(words_of(words)) or (concept if concept in DEGREE_NAMES else None)


def degrees_by_axis(members: dict[str, Any]) -> tuple[dict[str, int], dict[str, Any]] | None:
    """The degrees that an object states by axis, and its other members; `None` if it is no such object."""
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
    """Input and output tokens that the object at `key` states; empty if it states anything else."""
    if words_of(key) not in _LENGTHS or not 1 <= len(members) <= 2:
        return {}
    ends = {words_of(str(name)): value for name, value in members.items()}
    lengths = {field: ends[name] for field, names in _ENDS.items() for name in names if name in ends}
    return lengths if len(lengths) == len(members) else {}
