"""A persona without knowledge: it draws strategies at random, and learns from feedback alone.

Each level of feedback tells it more or less, so that the value of a level can be measured without a model: it takes
over degrees that a patch sets, keeps to values that findings call legal, avoids the value of a degree that a code is
about, does not repeat a rejected draw, and without feedback only draws again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from ...model.client import ModelClient
from ...model.messages import ModelRequest, Reply
from ..posed import PosedCase
from ..solver import Persona
from .careless import chance_of
from .feedback import Feedback, last_feedback
from .speaker import Speaker, submits

DEGREES = ("dp", "pp", "tp", "ep", "sp")
_VALUES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32)
# The degrees that a family's rules are about; memory is about all that split the weights.
_OF_FAMILY = {
    "DP": ("dp",),
    "PP": ("pp",),
    "TP": ("tp",),
    "EP": ("ep",),
    "SP": ("sp",),
    "GP": ("dp", "pp", "tp"),
    "ME": ("tp", "pp", "ep"),
}
_DIVISOR = re.compile(r"\bdivisor of (\d{1,9})\b")
_GPUS = re.compile(r"the hardware has ([\d,]{1,12})")
_INVENTORY = re.compile(r"^(\d{1,6}) × (\d{1,6})$")
_PATCHED = re.compile(r"/strategy/(?:(?:prefill|decode)/)?(dp|pp|tp|ep|sp)")
_MOST_DRAWS = 200

Degrees = dict[str, int]


class Student(Persona, frozen=True):
    """Draws strategies, and learns from feedback."""

    name: str = "student"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that starts to learn in this case."""
        assert found.question is not None
        pupil = _Pupil(found.question.request.facts.gpus, chance_of(self.name, found, epoch))
        return Speaker(self.name, pupil.answer)


class _Pupil:
    """The draws of one run, and what is known to be wrong."""

    def __init__(self, gpus: int, chance: Random) -> None:
        self._chance = chance
        self._values = [value for value in _VALUES if value <= max(2, gpus)]
        self._last: Degrees = {}
        self._tried: list[Degrees] = []
        # Conditions on every further draw, from the feedback.
        self._laws: list[Callable[[Degrees], bool]] = []

    def answer(self, request: ModelRequest) -> Reply:
        """The next strategy."""
        heard = last_feedback(request)
        drawn = self._last = self._next(heard)
        self._tried.append(drawn)
        phase = {name: drawn[name] for name in ("pp", "tp", "ep")}
        strategy = {"dp": drawn["dp"], "prefill": {**phase, "sp": drawn["sp"]}, "decode": phase}
        return submits(request, strategy=strategy)

    def _next(self, heard: Feedback | None) -> Degrees:
        if heard is None or not heard.is_rejected or not self._last:
            return self._draw(DEGREES)
        if heard.patch:
            return {**self._last, **dict(_patched(heard.patch))}
        if heard.findings or heard.message:
            return self._by_findings(heard)
        if heard.rules:
            return self._by_codes(heard)
        return self._draw(DEGREES, lambda drawn: drawn not in self._tried)

    def _by_codes(self, heard: Feedback) -> Degrees:
        """Draw other values of the degrees that the rules are about."""
        last = self._last
        about = [_OF_FAMILY.get(family, ()) for family in heard.families]
        self._laws += [_is_not(names[0], last[names[0]]) for names in about if len(names) == 1]
        named = [name for names in about for name in names] or list(DEGREES)
        return self._draw(named, lambda drawn: drawn not in self._tried and any(drawn[n] != last[n] for n in named))

    def _by_findings(self, heard: Feedback) -> Degrees:
        """Draw values that the findings on the last ones call legal."""
        named: list[str] = []
        for finding in heard.findings:
            degrees = list(_named(finding))
            named += degrees
            divisor = _DIVISOR.search(str(finding.get("expected", "")))
            for name in degrees if divisor is not None else ():
                self._laws.append(_divides(name, int(divisor[1]) if divisor is not None else 1))
            if (inventory := _INVENTORY.match(str(finding.get("expected", "")))) is not None:
                self._laws.append(_fits(int(inventory[1]) * int(inventory[2])))
            if str(finding.get("rule", "")).startswith("ME"):
                self._laws.append(_splits_more(dict(self._last)))
        if (most := _GPUS.search(heard.message)) is not None:
            self._laws.append(_fits(int(most[1].replace(",", ""))))
            named += ["dp", "pp", "tp", "ep", "sp"]
        return self._draw(named or DEGREES, lambda drawn: drawn not in self._tried)

    def _draw(self, names: Sequence[str], is_wanted: Callable[[Degrees], bool] = lambda drawn: True) -> Degrees:
        """Random values for `names`, the others as before; for all degrees if nothing keeps the conditions."""
        for attempt in range(_MOST_DRAWS):
            open_names = names if attempt < _MOST_DRAWS // 2 else DEGREES
            drawn = {
                name: self._chance.choice(self._values)
                if name in open_names or name not in self._last
                else self._last[name]
                for name in DEGREES
            }
            if is_wanted(drawn) and all(law(drawn) for law in self._laws):
                return drawn
        return {name: self._chance.choice(self._values) for name in DEGREES}


def _patched(patch: tuple[Mapping[str, Any], ...]) -> Iterator[tuple[str, int]]:
    """The degrees that a patch sets."""
    for operation in patch:
        place, value = _PATCHED.fullmatch(str(operation.get("path", ""))), operation.get("value")
        if place is not None and type(value) is int:
            yield place[1], value


def _named(finding: Mapping[str, Any]) -> Iterator[str]:
    """The degrees of a finding: those in its value, else those of its rule."""
    value = finding.get("value")
    in_value = [name for name in DEGREES if isinstance(value, Mapping) and name in value]
    yield from in_value or _OF_FAMILY.get(str(finding.get("rule", ""))[:2], ())


def _divides(name: str, size: int) -> Callable[[Degrees], bool]:
    return lambda drawn: size % drawn[name] == 0


def _is_not(name: str, value: int) -> Callable[[Degrees], bool]:
    return lambda drawn: drawn[name] != value


def _fits(gpus: int) -> Callable[[Degrees], bool]:
    return lambda drawn: drawn["dp"] * drawn["pp"] * max(drawn["tp"] * drawn["sp"], drawn["ep"]) <= gpus


def _splits_more(last: Degrees) -> Callable[[Degrees], bool]:
    return lambda drawn: drawn["tp"] * drawn["pp"] > last["tp"] * last["pp"]
