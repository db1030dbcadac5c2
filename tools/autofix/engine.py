"""The repair engine: fixes that rules propose, then the whole difference between a document and its target.

A step is kept only if validation finds less afterwards, with errors that cause others weighing more, so repair ends.
Rules and targets say what to change; nothing here knows any rule.
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

# Tiers of rules: each can only be judged once those before it hold. Then all others, then those on estimates.
_TIERS = {"ST": 0, "CO": 1, "DP": 1, "PP": 1}
_OTHERS, _ESTIMATED = 2, 3
# Where a document speaks of its graph: an error there that is local, or that no node shares, is none of the graph.
_ABOUT_GRAPH = ("/strategy/", "/construction", "/reasoning", "/performance")
# Documents that are validated to find the fewest fixes that are needed, and the nodes and edges of all of them.
MOST_TRIALS = 80
MOST_READ = 400_000


class State(Struct, frozen=True):
    """A document and its validation report."""

    read: ReadDocument
    report: ValidationReport

    @classmethod
    def of(cls, read: ReadDocument) -> State:
        """Validate a document that was read."""
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
        """The errors of the report, sorted so that the document's order does not matter."""
        errors = [violation for violation in self.report.violations if violation.severity == "error"]
        return sorted(errors, key=lambda error: (rule_order(error.rule), error.nodes, error.edges, error.message))

    @property
    def has_sound_graph(self) -> bool:
        """Whether nothing is wrong but what the document says of its graph."""
        return all(
            error.path.startswith(_ABOUT_GRAPH) and (error.fix == "local" or not error.nodes) for error in self.errors
        )


class Chosen(Struct, frozen=True):
    """Which fixes may be made: `safe_only` none that changes a decision, `rules` only those of the named rules.

    `keep_strategy`: if the strategy block and the graph differ, the graph is rebuilt from the block.
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
    """The repair of one document: its state, the fixes that led to it, and the number of rounds."""

    state: State
    chosen: Chosen
    rounds: int = 0
    applied: list[AppliedFix] = field(default_factory=list[AppliedFix])

    @property
    def errors(self) -> list[Violation]:
        """The remaining errors of the rules that were chosen."""
        rules = self.chosen.rules
        return [error for error in self.state.errors if rules is None or error.rule in rules]

    def mend(self) -> None:
        """Make the changes that rules propose for their findings, rule by rule."""
        for rule in all_rules():
            if rule.mend is None:
                continue
            mends: dict[object, Change] = {}
            for violation in [error for error in self.errors if error.rule == rule.id]:
                for change in rule.mend(self.state.view, violation):
                    mends.setdefault(id(change) if change.action == "append" else change.path, change)
            self._apply(joined(Fix(rule.id, (change,)) for change in mends.values()))

    def toward(self, target: Target | None) -> None:
        """Change the document to mean what `target` means and, if errors remain, to be written as it is where needed.

        With chosen rules, only the fixes that these need are made.
        """
        for strictly in (False, True):
            if target is None or not self.errors:
                return
            changes = differences(self.state.view, target, strictly=strictly)
            fixes = attributed(self.state.view, target, changes, self.state.errors)
            self._apply(fixes, no_more_than_needed=strictly or self.chosen.rules is not None)
            self.mend()

    def withdraw_figures(self) -> None:
        """Remove the stated figures if nothing else is wrong; a plan need not claim any."""
        if self.errors and all(error.path.startswith("/performance") for error in self.errors):
            self._apply([Fix(self.errors[0].rule, (Change("remove", ("performance",)),))])

    def _apply(self, fixes: Sequence[Fix], *, no_more_than_needed: bool = False) -> None:
        """Make the fixes that are allowed, if fewer errors remain with them."""
        checkpoint()
        usable = [fix for fix in fixes if not (self.chosen.safe_only and fix.safety == "strategy")]
        if not usable:
            return
        after = self._after(usable)
        if no_more_than_needed or (self.chosen.safe_only and not after.report.valid):
            usable, after = self._narrowed(sorted(usable, key=lambda fix: fix.rule in (self.chosen.rules or ())), after)
        if self._remaining(after)[0] >= self._remaining(self.state)[0]:
            after.view.release()
            return
        self.applied += patches(self.state.document, self._by_rule(usable))
        self.state.view.release()
        self.state = after
        self.rounds += 1

    def _after(self, fixes: Iterable[Fix]) -> State:
        """The document with all of `fixes` made, read and validated."""
        changes = [change for fix in self._by_rule(fixes) for change in fix.changes]
        patched = Patched(self.state.document)
        patched.apply(compile_patch(patched.document, changes))
        return State.of(read_sound(patched.document))

    def _by_rule(self, fixes: Iterable[Fix]) -> list[Fix]:
        """`fixes` merged by rule and safety; with chosen rules, those of other rules count for the first error."""
        rules = self.chosen.rules
        return joined(
            fix if rules is None or fix.rule in rules else replace(fix, rule=self.errors[0].rule) for fix in fixes
        )

    def _narrowed(self, fixes: list[Fix], after: State) -> tuple[list[Fix], State]:
        """`fixes`, which lead to `after`, without those that are not needed, by halving; and the state they lead to."""
        size = len(after.view.nodes) + len(after.view.edges) + 1
        waiting, trials = _halves(fixes), min(MOST_TRIALS, MOST_READ // size)
        while waiting and trials > 0:
            chunk = waiting.pop()
            left_out = {id(fix) for fix in chunk}
            fewer = [fix for fix in fixes if id(fix) not in left_out]
            trial, trials = self._after(fewer), trials - 1
            if self._remaining(trial) <= self._remaining(after):
                fixes, trial, after = fewer, after, trial
            else:
                waiting += _halves(chunk)
            trial.view.release()
        return fixes, after

    def _remaining(self, after: State) -> tuple[tuple[int, ...], int]:
        """Errors in each tier of rules, and how many errors of rules that were not chosen are gone: less is better.

        With chosen rules, mended errors of others count as if they were still there.
        """
        before, counts = (Counter(error.rule for error in state.errors) for state in (self.state, after))
        mended = 0
        if self.chosen.rules is not None:
            others = Counter({rule: count for rule, count in before.items() if rule not in self.chosen.rules})
            mended = (others - counts).total()
            counts |= others
        by_tier = [0] * (_ESTIMATED + 1)
        # Of many faults of the format not all are listed.
        by_tier[0] = after.read.refusals
        for rule, count in counts.items():
            by_tier[_ESTIMATED if find_rule(rule).rests_on_estimate else _TIERS.get(rule[:2], _OTHERS)] += count
        return tuple(by_tier), mended


def _begins(change: Change) -> bool:
    """Whether a change sets a whole list or block of the document."""
    return change.action == "set" and len(change.path) == 1


def patches(document: dict[str, Any], fixes: Iterable[Fix]) -> Iterator[AppliedFix]:
    """`fixes`, whose paths are all those of `document`, as patches to be applied one after the other."""
    patched, gone = Patched(document), dict[Any, list[int]]()
    # A fix that begins a list comes before others that add to it.
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
    """`change` with the place of its element after those at the places `gone` were removed."""
    if len(change.path) < 2 or not isinstance(change.path[1], int):
        return change
    collection, place, *inside = change.path
    assert isinstance(place, int)
    return replace(change, path=(collection, place - bisect_left(gone.get(collection, []), place), *inside))
