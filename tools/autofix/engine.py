"""The engine: fixes of all findings are made in rounds until none is left, or none helps any more.

A round is kept only where it brings the plan nearer to validity (`potential.py`: structure before meaning), so that
it ends; what does not help is undone, tried with fewer fixes, then in a wider scope. Rules and scopes say what to
change; nothing here knows any rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..checkpoint import checked, checkpoint
from ..plan.reader import ReadDocument, read_sound
from ..plan.schema import MAX_FAULTS
from ..plan.view import PlanView
from ..rules.base import Violation
from ..rules.edits import Change
from ..rules.registry import find_rule, rule_order
from ..validate import MAX_FINDINGS_OF_A_RULE, ValidationReport, validate_read
from .differences import differences
from .edits import Patch, Patched, compile_patch
from .fix import OWN, Fix
from .narrowing import narrowed
from .potential import counts_of, weighed
from .result import AppliedFix
from .same_round import Frame, Touched
from .scopes import DOCUMENT, GRAPH, Claims
from .target import Target

# Nodes and edges that are read again in search of the narrowest scope that helps, before all that a scope could be
# widened to is mended; and those that a certificate goes through, fix by fix, before fixes of one kind are made and
# told as one.
MOST_READ = 120_000
MOST_TOLD = 1_000_000
# Findings of a rule beyond which there may be more than are listed, where that is not what holds for all.
_LISTED = {"ST001": MAX_FAULTS}


@dataclass(frozen=True)
class State:
    """A document with what validation says of it."""

    read: ReadDocument
    report: ValidationReport

    @property
    def document(self) -> dict[str, Any]:
        """The JSON object."""
        return self.read.raw or {}

    @property
    def view(self) -> PlanView:
        """The document as rules read it."""
        return self.read.view

    @property
    def errors(self) -> list[Violation]:
        """The findings that make the plan invalid, in an order that is not that of the document."""
        found = [violation for violation in self.report.violations if violation.severity == "error"]
        return sorted(found, key=_by_names)


def _size(state: State) -> int:
    """Nodes and edges."""
    return len(state.view.nodes) + len(state.view.edges)


def _joined(fixes: Sequence[Fix]) -> list[Fix]:
    """`fixes` with those of one rule and scope as one."""
    kinds: dict[tuple[str, int], list[Fix]] = {}
    for fix in fixes:
        kinds.setdefault((fix.violation.rule, fix.level), []).append(fix)
    return [
        replace(alike[0], changes=tuple(change for fix in alike for change in fix.changes)) for alike in kinds.values()
    ]


def state_of(document: dict[str, Any]) -> State:
    """`document`, read and validated."""
    read = read_sound(document)
    return State(read, validate_read(read))


@dataclass
class Repair:
    """One repair of one document: its state, and the fixes that led to it.

    `safe_only`: fixes that change what the author decided are not made; `rules`: only findings of these are mended,
    where they are named.
    """

    state: State
    safe_only: bool = False
    rules: frozenset[str] | None = None
    rounds: int = 0
    applied: list[AppliedFix] = field(default_factory=list[AppliedFix])
    # How wide a scope was tried in vain for findings of a rule, since the last change that helped.
    _tried: dict[str, int] = field(default_factory=dict[str, int])
    # Whether fixes are narrowed to what the named rules' findings need.
    _narrows: bool = False
    # The scope that is taken at once where looking for the narrowest is too much to read.
    _widest: int = GRAPH
    # Rules that have more findings than are listed: what is listed is no place to begin at.
    _crowded: set[str] = field(default_factory=set[str])
    # Nodes and edges that were read again so far, and told of.
    _read: int = 0
    _told: int = 0

    @property
    def errors(self) -> list[Violation]:
        """The findings that are to be mended and still there."""
        return [one for one in self.state.errors if self.rules is None or one.rule in self.rules]

    def toward(self, target: Target | None, *, as_a_whole: bool = False) -> None:
        """Make fixes that bring the document nearer to `target`, until it is valid or none helps.

        Of a target that is to be had `as_a_whole` nothing is left out: a new strategy is one decision.
        """
        self._narrows = self.rules is not None and not as_a_whole
        self._widest = DOCUMENT if as_a_whole else GRAPH
        self._tried.clear()
        while self.errors:
            checkpoint()
            fixes = self._fixes(target)
            if not fixes:
                return
            self._make_some(fixes)

    def make(self, fix: Fix) -> bool:
        """Make `fix` if it helps."""
        return self._try([fix])

    def _make_some(self, fixes: Sequence[Fix]) -> None:
        """Make all of `fixes`; where that does not help, half of them, down to one, which then did not help.

        What did not help for one finding of a rule is not tried for its others either.
        """
        while not self._try(fixes):
            if len(fixes) == 1:
                rule, level = fixes[0].violation.rule, fixes[0].level
                self._tried[rule] = max(self._tried.get(rule, OWN), level)
                return
            fixes = fixes[: (len(fixes) + 1) // 2]

    def _try(self, fixes: Sequence[Fix]) -> bool:
        after, made = self._made(fixes)
        if not self._helps(after):
            after.view.release()
            return False
        if self._narrows and self._mends_others(after):
            after.view.release()
            after, made = self._made(narrowed(fixes, partial(self._left_of_others, counts=counts_of(after.report))))
        self.state.view.release()
        self.state = after
        self.rounds += 1
        self.applied += made
        self._told += len(made) * _size(after)
        self._tried.clear()
        return True

    def _helps(self, after: State) -> bool:
        """Whether the plan is nearer to validity; where rules are named, without what is mended of others."""
        before, found = counts_of(self.state.report), counts_of(after.report)
        if self.rules is not None:
            found |= Counter({rule: count for rule, count in before.items() if rule not in self.rules})
        return weighed(found) < weighed(before)

    def _mends_others(self, after: State) -> bool:
        """Whether findings of rules that were not asked for are gone."""
        gone = counts_of(self.state.report) - counts_of(after.report)
        return any(rule not in (self.rules or ()) for rule in gone)

    def _left_of_others(self, fixes: Sequence[Fix], counts: Counter[str]) -> int | None:
        """How many findings `fixes` leave to other rules; `None` where they do not what led to `counts`."""
        after, _ = self._made(fixes)
        found, before = counts_of(after.report), counts_of(self.state.report)
        after.view.release()
        rules = self.rules or ()
        if any(found[rule] > counts[rule] for rule in rules) or not found <= (counts | before):
            return None
        return sum(count for rule, count in (found & before).items() if rule not in rules)

    def _made(self, fixes: Sequence[Fix]) -> tuple[State, list[AppliedFix]]:
        """The document as it is after `fixes`, and these as they are told."""
        patched, made = Patched(self.state.document), list[AppliedFix]()
        frame = Frame()
        for fix in checked(fixes, 1):
            patch = compile_patch(patched.document, frame.moved(fix.changes))
            patched.apply(patch)
            frame.note(fix.changes)
            made.append(_applied(fix, patch))
        after = state_of(patched.document)
        self._read += _size(after)
        return after, made

    def _fixes(self, target: Target | None) -> list[Fix]:
        """A fix for every finding that has one, each change in the first fix that claims it."""
        found: list[Fix] = []
        used = Touched()
        listed = Counter(violation.rule for violation in self.errors)
        self._crowded = {rule for rule, times in listed.items() if times >= _LISTED.get(rule, MAX_FINDINGS_OF_A_RULE)}
        claims = _LazyClaims(self.state.view, target)
        # The first of the fixes may add all that the target has.
        added = 0 if target is None else len(target.nodes) + len(target.edges)
        least = self._widest if self._read + added > MOST_READ else 0
        for violation in checked(self.errors, 1):
            fix = self._fix(violation, claims, least)
            if fix is None:
                continue
            own = [change for change in fix.changes if change not in used]
            if own:
                found.append(replace(fix, changes=tuple(own)))
                used.add(own)
            if fix.is_wide:
                # Nothing is left for others.
                break
        size = _size(self.state) + added
        return _joined(found) if self._told + len(found) * size > MOST_TOLD else found

    def _fix(self, violation: Violation, claims: _LazyClaims, least: int) -> Fix | None:
        """The fix of the narrowest scope from `least` on not tried in vain; `None` where another has claimed it."""
        start = self._tried.get(violation.rule, OWN - 1) + 1
        mend = find_rule(violation.rule).mend
        if start == OWN and mend is not None:
            fix = Fix(violation, tuple(mend(self.state.view, violation)), OWN)
            if self._may(fix):
                return fix
        if violation.rule in self._crowded:
            least = max(least, GRAPH)
        for level in range(max(start, least), 2 * (DOCUMENT + 1)):
            changes = claims.at(violation, level)
            if changes is None:
                return None
            fix = Fix(violation, tuple(changes), level)
            if self._may(fix):
                return fix
        return None

    def _may(self, fix: Fix) -> bool:
        return bool(fix.changes) and not (self.safe_only and fix.safety == "strategy")


class _LazyClaims:
    """Claims on the differences from a target: in meaning first, and after all scopes of these in writing too."""

    def __init__(self, view: PlanView, target: Target | None) -> None:
        self.view, self.target = view, target
        self._known: dict[bool, Claims] = {}
        self._claimed: set[tuple[object, ...]] = set()

    def at(self, violation: Violation, level: int) -> Iterable[Change] | None:
        """What the finding claims at the level; `None` where another finding has claimed the same."""
        if self.target is None:
            return ()
        scope, strictly = level % (DOCUMENT + 1), level > DOCUMENT
        if strictly not in self._known:
            found = differences(self.view, self.target, strictly=strictly)
            self._known[strictly] = Claims(self.view, self.target, found)
        claims = self._known[strictly]
        claim = claims.at(violation, scope)
        if claim.key is not None and (strictly, claim.key) in self._claimed:
            return None
        changes = [claims.changes[place] for place in claim.places()]
        if claim.key is not None and changes:
            self._claimed.add((strictly, claim.key))
        return changes


def _by_names(violation: Violation) -> tuple[object, ...]:
    return rule_order(violation.rule), violation.nodes, violation.edges, violation.message


def _applied(fix: Fix, patch: Patch) -> AppliedFix:
    return AppliedFix(rule=fix.violation.rule, description=fix.description, safety=fix.safety, patch=patch)
