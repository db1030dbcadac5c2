"""The engine: what rules say of their own findings, then the whole difference between a document and its target.

A step is kept only if validation finds less afterwards, what comes first in a report before what may follow from it, so
that repair ends. Rules and targets say what to change; nothing here knows any rule.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..checkpoint import checkpoint
from ..plan.reader import ReadDocument, read_sound
from ..plan.view import PlanView
from ..rules.base import Violation
from ..rules.findings import Change
from ..rules.registry import all_rules, find_rule, rule_order
from ..validate import ValidationReport, validate_read
from .differences import differences
from .edits import Patched, compile_patch
from .fix import Fix, attributed, joined
from .result import AppliedFix
from .target import Target

# Families of rules by what must be right before the next can be judged; then all others, then what rests on estimates.
_TIERS = {"ST": 0, "CO": 1, "DP": 1, "PP": 1}
_OTHERS, _ESTIMATED = 2, 3
# Documents that are validated in search of the fewest fixes that do, and the nodes and edges of all of them.
MOST_TRIALS = 80
MOST_READ = 400_000


class State(Struct, frozen=True):
    """A document with what validation says of it."""

    read: ReadDocument
    report: ValidationReport

    @classmethod
    def of(cls, read: ReadDocument) -> State:
        """A document that was read, validated."""
        return cls(read, validate_read(read))

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
        return sorted(found, key=lambda one: (rule_order(one.rule), one.nodes, one.edges, one.message))


class Chosen(Struct, frozen=True):
    """Which fixes may be made: `safe_only` none that changes what was decided, `rules` those of named rules alone.

    `keep_strategy`: where the strategy block and the graph differ, the graph is rebuilt by the block.
    """

    safe_only: bool = False
    rules: frozenset[str] | None = None
    keep_strategy: bool = False

    @classmethod
    def of(cls, rules: Collection[str] | None, *, safe_only: bool, keep_strategy: bool = False) -> Chosen:
        """The choice of rules by their ids. Raises InputError: there is no such rule."""
        named = None if rules is None else frozenset(find_rule(name).id for name in rules)
        return cls(safe_only, named, keep_strategy)


ALL_FIXES = Chosen()


class Repair(Struct):
    """One repair of one document: its state, and the fixes that led to it in so many rounds."""

    state: State
    chosen: Chosen
    rounds: int = 0
    applied: list[AppliedFix] = field(default_factory=list[AppliedFix])

    @property
    def errors(self) -> list[Violation]:
        """The findings that are to be mended and still there."""
        rules = self.chosen.rules
        return [one for one in self.state.errors if rules is None or one.rule in rules]

    def mend(self) -> None:
        """Do what rules themselves say of their findings, one rule after another."""
        for rule in all_rules():
            if rule.mend is None:
                continue
            mends: dict[object, Change] = {}
            for found in [error for error in self.errors if error.rule == rule.id]:
                for change in rule.mend(self.state.view, found):
                    mends.setdefault(id(change) if change.action == "append" else change.path, change)
            self._make(joined(Fix(rule.id, (change,)) for change in mends.values()))

    def toward(self, target: Target | None) -> None:
        """Make of the document what `target` means and, where that does not do, what it needs of the target's writing.

        Where only some fixes are wanted, no more is made than what they need.
        """
        for strictly in (False, True):
            if target is None or not self.errors:
                return
            found = differences(self.state.view, target, strictly=strictly)
            fixes = attributed(self.state.view, target, found, self.state.errors)
            self._make(fixes, no_more_than_needed=strictly or self.chosen.rules is not None)
            self.mend()

    def withdraw_figures(self) -> None:
        """Take the stated figures away if nothing else is wrong: a plan without figures is judged by its graph."""
        if self.errors and all(error.path.startswith("/performance") for error in self.errors):
            self._make([Fix(self.errors[0].rule, (Change("remove", ("performance",)),))])

    def _make(self, fixes: Sequence[Fix], *, no_more_than_needed: bool = False) -> None:
        """Make those of `fixes` that may be made, if that helps."""
        checkpoint()
        may = [fix for fix in fixes if not (self.chosen.safe_only and fix.safety == "strategy")]
        if not may:
            return
        after = self._after(may)
        if no_more_than_needed or (self.chosen.safe_only and not after.report.valid):
            may, after = self._narrowed(sorted(may, key=lambda fix: fix.rule in (self.chosen.rules or ())), after)
        if self._left(after)[0] >= self._left(self.state)[0]:
            after.view.release()
            return
        self.applied += patches(self.state.document, self._by_rule(may))
        self.state.view.release()
        self.state = after
        self.rounds += 1

    def _after(self, fixes: Iterable[Fix]) -> State:
        """The document with all of `fixes` made, which is read and validated."""
        changes = [change for fix in self._by_rule(fixes) for change in fix.changes]
        patched = Patched(self.state.document)
        patched.apply(compile_patch(patched.document, changes))
        return State.of(read_sound(patched.document))

    def _by_rule(self, fixes: Iterable[Fix]) -> list[Fix]:
        """`fixes` by rule and kind; what is near to findings of others is changed for those that are to be mended."""
        rules = self.chosen.rules
        return joined(
            fix if rules is None or fix.rule in rules else replace(fix, rule=self.errors[0].rule) for fix in fixes
        )

    def _narrowed(self, fixes: list[Fix], after: State) -> tuple[list[Fix], State]:
        """`fixes`, which lead to `after`, without those that are not needed for it, found by halving."""
        size = len(after.view.nodes) + len(after.view.edges) + 1
        waiting, trials = _halves(fixes), min(MOST_TRIALS, MOST_READ // size)
        while waiting and trials > 0:
            chunk = waiting.pop()
            left_out = {id(fix) for fix in chunk}
            fewer = [fix for fix in fixes if id(fix) not in left_out]
            tried, trials = self._after(fewer), trials - 1
            if self._left(tried) <= self._left(after):
                fixes, tried, after = fewer, after, tried
            else:
                waiting += _halves(chunk)
            tried.view.release()
        return fixes, after

    def _left(self, after: State) -> tuple[tuple[int, ...], int]:
        """How much is found in each tier of rules, the smaller the better, and how much that was not asked for is gone.

        Where rules are named, what is mended of others counts as if it were still there.
        """
        before, found = (Counter(error.rule for error in state.errors) for state in (self.state, after))
        mended = 0
        if self.chosen.rules is not None:
            others = Counter({rule: count for rule, count in before.items() if rule not in self.chosen.rules})
            mended = (others - found).total()
            found |= others
        left = [0] * (_ESTIMATED + 1)
        for rule, count in found.items():
            left[_ESTIMATED if find_rule(rule).rests_on_estimate else _TIERS.get(rule[:2], _OTHERS)] += count
        return tuple(left), mended


def _begins(change: Change) -> bool:
    """Whether a change sets a whole list or block of the document."""
    return change.action == "set" and len(change.path) == 1


def patches(document: dict[str, Any], fixes: Iterable[Fix]) -> Iterator[AppliedFix]:
    """`fixes`, all told of `document`, as patches of which each begins where the one before ends."""
    patched, gone = Patched(document), dict[Any, list[int]]()
    # A list that one of them begins anew is begun before another adds to it.
    for fix in sorted(fixes, key=lambda fix: not any(_begins(change) for change in fix.changes)):
        patch = compile_patch(patched.document, [_moved(change, gone) for change in fix.changes])
        patched.apply(patch)
        for change in fix.changes:
            if change.action == "remove" and len(change.path) == 2 and isinstance(change.path[1], int):
                insort(gone.setdefault(change.path[0], []), change.path[1])
        yield AppliedFix(rule=fix.rule, description=fix.description, safety=fix.safety, patch=patch)


def _halves(fixes: list[Fix]) -> list[list[Fix]]:
    half = len(fixes) // 2
    return [fixes[half:], fixes[:half]] if half else []


def _moved(change: Change, gone: dict[Any, list[int]]) -> Change:
    """`change` of an element where it is now that those of places in `gone` are not there any more."""
    if len(change.path) < 2 or not isinstance(change.path[1], int):
        return change
    collection, place, *inside = change.path
    assert isinstance(place, int)
    return replace(change, path=(collection, place - bisect_left(gone.get(collection, []), place), *inside))
