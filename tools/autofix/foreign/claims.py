"""The claims that a walk through a foreign proposal collects, of the whole plan and of its parts.

`Claims` is also the interface of the walk for the readers of parts. A claim is a field with a value. Two claims that
differ leave the field unset: which of them is meant is not guessed. Nothing is completed here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ...input.bounds import DEGREE
from ...input.shapes import is_list, is_object
from ...plan.document import PHASES
from .figures import Place, places_of, whole_number
from .lexicon import phase_of, words_of
from .nodes import NamedEdge
from .notes import Notes, shortened
from .scope import Item, Scope
from .words import Degrees, Words, number_of

# The format's own bound on a degree.
MOST_DEGREE = int(DEGREE.most)
# Devices that a document may name (a short text may mean any number): hundreds at each operator of each layer.
MOST_PLACES = 100_000
OPERATOR_DEGREES = {
    "AttentionNode": {"tp": "tp", "dp": "attention_dp", "sp": "sp"},
    "FFNNode": {"tp": "tp_ffn"},
    "MoENode": {"ep": "ep", "tp": "tp_expert"},
}


class Claims(ABC):
    """The claims of a walk: `facts` of the whole plan, `items` the nodes without a parent, `edges` between names."""

    def __init__(self, notes: Notes, *, is_cut: bool = False) -> None:
        self.notes = notes
        # Whether the text breaks off; then nothing is counted, since there may have been more.
        self.is_cut = is_cut
        self.facts = Facts(notes)
        self.items: list[Item] = []
        self.edges: list[NamedEdge] = []
        self.words = Words()
        self._places = 0

    @abstractmethod
    def walk(self, value: object, scope: Scope) -> None:
        """Claim what `value` says."""

    @abstractmethod
    def member(self, key: str, value: Any, scope: Scope) -> None:
        """Claim what the member `key` of the object at `scope` says."""

    @abstractmethod
    def unknown(self, key: str, concept: str | None, value: Any, scope: Scope) -> None:
        """Claim what can still be read from a word or number whose key means nothing in its place."""

    def unclear(self, what: str, value: object, scope: Scope, field: str | None = None) -> None:
        """Note that `value`, which replaces the braces in `what`, was left out."""
        self.notes.unclear(what.format(repr(shortened(value))), scope.where, field)

    def places_of(self, value: object) -> list[Place] | None:
        """The devices that `value` names; `None` if it names none, or the document names too many."""
        if self._places > MOST_PLACES:
            return None
        places = places_of(value)
        self._places += len(places or ())
        if self._places <= MOST_PLACES:
            return places
        self.notes.unclear(f"more than {MOST_PLACES:,} devices, however often one is named", "/")
        return None

    def degrees_text(self, text: str, scope: Scope) -> None:
        """Claim the degrees that a text states; note a text that states none with certainty."""
        degrees = self.words.degrees(text)
        if degrees is None:
            self.unclear("{} states no parallel degrees for certain", text, scope, "strategy")
        self.claim_degrees(degrees or {}, scope)

    def degree(self, name: str, value: Any, scope: Scope) -> None:
        """Claim one degree: a number, a text, one for each phase, or an object that holds it."""
        if is_object(value):
            self._degree_object(name, value, scope)
            return
        if is_list(value):
            numbers = {whole_number(item) for item in value}
            value = numbers.pop() if len(numbers) == 1 else None
        number = whole_number(value)
        if number is None and isinstance(value, str):
            number = number_of(value)
        if number is not None and 1 <= number <= MOST_DEGREE:
            self.claim_degree(name, number, scope)
        elif number is None and isinstance(value, str) and self.words.degrees(value) is not None:
            self.degrees_text(value, scope)
        else:
            if value not in (False, 0):
                self.unclear(f"{{}} is no degree of {name}", value, scope, "strategy")
            if type(value) is int and -MOST_DEGREE <= value < 0 and scope.operator is None:
                self.facts.claim(f"{scope.phase_or_any}.as_stated.{name}", value, scope.where)

    def _degree_object(self, name: str, value: dict[str, Any], scope: Scope) -> None:
        """ "tensor_parallel": {"tp_size": 2}, or {"prefill": 4, "decode": 8}."""
        for key, member in list(value.items())[:50]:
            phase, inner = phase_of(key), scope.inside(key)
            if phase is not None:
                self.degree(name, member, inner.but(phase=phase))
            elif words_of(key) in ("size", "degree", "value", "ways", "n", "count", "world size"):
                self.degree(name, member, inner)
            elif words_of(key) != "enabled":
                self.member(key, member, scope)

    def claim_degrees(self, degrees: Degrees, scope: Scope) -> None:
        """Claim degrees by phase, including lists of layers by stage."""
        for phase, of_phase in degrees.items():
            inner = scope.but(phase=phase or scope.phase)
            for name, value in of_phase.items():
                if isinstance(value, int):
                    self.claim_degree(name, value, inner)
                else:
                    self.facts.claim(f"{inner.phase_or_any}.{name}", value, scope.where)

    def claim_degree(self, name: str, number: int, scope: Scope) -> None:
        """Claim a degree for the phase of its scope, under its name for the scope's operator."""
        if name == "cp":
            self.undefined(name, number, scope)
            return
        if scope.operator is not None:
            named = OPERATOR_DEGREES[scope.operator].get(name)
            if named is None:
                self.notes.unclear(f"{name} {number} does not go with this operator", scope.where)
                return
            if named == "tp":
                self.facts.claim("attention_only", True, scope.where, weak=True)
            name = named
        self.facts.claim(f"{scope.phase_or_any}.{name}", number, scope.where)

    def undefined(self, name: str, number: int, scope: Scope) -> None:
        """Claim a dimension that is none of the five, so that a rule can report it."""
        if number > 1:
            self.notes.unclear(f"{name} {number}: no dimension but DP, PP, SP, EP and TP is known", scope.where)
            self.facts.claim(f"{scope.phase_or_any}.as_stated.{name}", number, scope.where)


class _Claim(Struct):
    """A value with the place that stated it first; a `weak` one only follows from other statements."""

    value: Any
    where: str
    weak: bool = False
    disputed: bool = False


class Facts:
    """The claims of one proposal by field. Degrees are `<phase>.<degree>`, with phase `any` if none was named."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._claims: dict[str, _Claim] = {}

    def claim(self, field: str, value: Any, where: str, *, weak: bool = False) -> None:
        """Record that `field` is `value`; a weak claim counts only if no other was made."""
        known = self._claims.get(field)
        if known is None or (known.weak and not weak and known.value != value):
            self._claims[field] = _Claim(value, where, weak)
        elif not weak and not known.disputed and known.value != value:
            message = f"{field} is {known.value} at {known.where} and {value} here: neither was taken"
            self.notes.unclear(message, where, block_of(field))
            self._claims[field] = _Claim(None, known.where, disputed=True)

    def get(self, field: str) -> Any:
        """The value of `field`; `None` if it was not claimed or is disputed."""
        known = self._claims.get(field)
        return None if known is None else known.value

    def has(self, field: str) -> bool:
        """Whether `field` was claimed, disputed or not."""
        return field in self._claims

    def is_stated(self, field: str) -> bool:
        """Whether `field` was stated explicitly, and not only by a weak claim, without dispute."""
        known = self._claims.get(field)
        return known is not None and not known.weak and not known.disputed

    def says_degrees(self) -> bool:
        """Whether any parallel degree was claimed."""
        return any(block_of(field) == "strategy" for field in self._claims)

    def where(self, field: str) -> str:
        """The place that stated `field` first; the root if none did."""
        return self._claims[field].where if field in self._claims else "/"

    def put(self, scope: str, **values: Any) -> None:
        """Set fields of `scope` that follow from other claims."""
        for name, value in values.items():
            field = f"{scope}.{name}"
            self._claims[field] = _Claim(value, self.where(field))

    def of(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """The undisputed claims below `prefix`, by their name without it."""
        for field, known in list(self._claims.items()):
            if field.startswith(f"{prefix}.") and not known.disputed:
                yield field.removeprefix(f"{prefix}."), known.value


def block_of(field: str) -> str:
    """The part of a plan that a claim belongs to: degrees to `strategy`, `accelerator` to the hardware."""
    if field == "accelerator":
        return "hardware.accelerator"
    return "strategy" if field.partition(".")[0] in ("any", *PHASES) else field
