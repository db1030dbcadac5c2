"""Judges degrees by every rule's limits before there is a graph.

A limit states which degrees it reads, so its verdict is computed once for each combination of their values: a space of
millions of combinations needs few verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

from ..plan.document import PhaseStrategy
from ..plan.placement import StageDegrees
from .base import Rule
from .legality import SPLIT_BY, Conditions, DegreeLimit, Fault, Pipeline, splits
from .registry import all_rules


class _Limit:
    """A limit of a rule, with its known faults by the values that it reads."""

    def __init__(self, rule: Rule, limit: DegreeLimit) -> None:
        self.rule, self.limit = rule, limit
        self.read: Callable[[StageDegrees], Any] = attrgetter(*limit.reads)
        self.known: dict[Any, tuple[Fault, ...]] = {}


class DegreeJudge:
    """Judges the degrees of stages, for any phase and number of devices.

    `accepted` are the rules whose faults are tolerated unless they are errors.
    """

    def __init__(self, conditions: Conditions, accepted: frozenset[str] = frozenset()) -> None:
        self.conditions, self.accepted = conditions, accepted
        # The number of degrees that each rule has refused.
        self.refused: Counter[str] = Counter()
        split = {name for name in SPLIT_BY if splits(conditions.architecture, name)}
        self._idle = SPLIT_BY.keys() - split
        self._limits = [_Limit(rule, limit) for rule, limit in _limits() if limit.reads[0] in split]

    def faults(self, degrees: StageDegrees) -> Iterator[tuple[Rule, Fault]]:
        """Every fault of `degrees`, in the order of the rules."""
        for _, rule, fault in self.faults_by_degree(degrees):
            yield rule, fault

    def faults_by_degree(self, degrees: StageDegrees) -> Iterator[tuple[str, Rule, Fault]]:
        """Every fault of `degrees` with the degree that its limit is on, and its rule."""
        for limit in self._limits:
            for fault in self._of(limit, degrees):
                yield limit.limit.reads[0], limit.rule, fault

    def warned(self, degrees: StageDegrees) -> frozenset[str]:
        """The rules that warn of `degrees` without refusing them."""
        return frozenset(rule.id for rule, fault in self.faults(degrees) if fault.is_proposed)

    def accepts(self, degrees: StageDegrees) -> bool:
        """Whether `degrees` may be proposed: no limit refuses them, and degrees that split nothing are 1."""
        return all(getattr(degrees, name) == 1 for name in self._idle) and self._pass(self._limits, degrees)

    def legal(self, name: str, candidates: Iterable[int], stage: StageDegrees) -> tuple[int, ...]:
        """The values of one degree that may be proposed in `stage`, judged by limits on this degree alone."""
        limits = self._that_read(name)
        usable = (1,) if name in self._idle else candidates
        return tuple(value for value in usable if self._pass(limits, stage._replace(**{name: value})))

    def together(self, *names: str) -> Callable[[StageDegrees], bool]:
        """A test whether degrees that are legal alone may be proposed together, by limits that read only `names`."""
        alone = [limit for name in names for limit in self._that_read(name)]
        limits = [limit for limit in self._that_read(*names) if limit not in alone]
        return lambda degrees: self._pass(limits, degrees)

    def _that_read(self, *names: str) -> list[_Limit]:
        """The limits that read no other degree than `names`."""
        others = {*StageDegrees._fields} - {*names, "phase", "devices"}
        return [limit for limit in self._limits if others.isdisjoint(limit.limit.reads)]

    def _pass(self, limits: Iterable[_Limit], degrees: StageDegrees) -> bool:
        for limit in limits:
            faults = self._of(limit, degrees)
            if faults and any(self._refuses(limit.rule, fault) for fault in faults):
                self.refused[limit.rule.id] += 1
                return False
        return True

    def _of(self, limit: _Limit, degrees: StageDegrees) -> tuple[Fault, ...]:
        key = limit.read(degrees)
        faults = limit.known.get(key)
        if faults is None:
            faults = limit.known[key] = tuple(limit.limit.of(self.conditions, degrees))
        return faults

    def _refuses(self, rule: Rule, fault: Fault) -> bool:
        return not fault.is_proposed and (fault.severity == "error" or rule.id not in self.accepted)


@cache
def _limits() -> tuple[tuple[Rule, DegreeLimit], ...]:
    return tuple((rule, limit) for rule in all_rules() for limit in rule.limits)


def refusing_pipeline(conditions: Conditions, pipeline: Pipeline) -> str | None:
    """The rule that refuses this pipeline; `None` if none does."""
    return next((name for name, faults in _judges("pipeline_faults") for _ in faults(conditions, pipeline)), None)


def refusing_pair(conditions: Conditions, prefill: PhaseStrategy, decode: PhaseStrategy) -> str | None:
    """The rule that refuses a replica with these degrees for its two phases; `None` if none does."""
    return next((name for name, faults in _judges("pair_faults") for _ in faults(conditions, prefill, decode)), None)


@cache
def _judges(field: str) -> tuple[tuple[str, Any], ...]:
    """The ids of the rules that have `field`, with its function."""
    return tuple((rule.id, faults) for rule in all_rules() if (faults := getattr(rule, field)) is not None)
