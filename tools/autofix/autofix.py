"""Auto-fix: a document goes in, a validated plan that keeps what its author decided comes out, or what remains and why.

First what rules say of their own findings, then the difference to the plan that the author's own decisions make. Where
that cannot do, the nearest legal strategy takes their place. It never raises whatever the document holds, and calls
valid only what validation did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError
from ..plan.collector import collector_paused
from ..plan.document import Plan
from ..rules.registry import find_rule
from ..validate import validate_read
from .engine import Repair, State, state_of
from .intent import PlanDefaults, PlanIntent, read_intent
from .reading import Reading, read_anything
from .result import FixResult, Infeasible, Replanning, Withheld, strategy_changes
from .target import Target, reference_for, target_of

__all__ = ["FixResult", "PlanDefaults", "autofix", "autofix_read"]


def autofix(
    document: Mapping[str, Any] | str | Path | Plan,
    *,
    request: PlanDefaults | None = None,
    safe_only: bool = False,
    keep_strategy: bool = False,
    rules: Collection[str] | None = None,
) -> FixResult:
    """Mend a plan, or a proposal in any other form: an object, a text, the path of a file, or a `Plan`.

    `request` stands in for what the document leaves out; with `safe_only` nothing that the author decided is changed;
    with `keep_strategy` the graph is rebuilt where the strategy block says otherwise; of `rules`, where they are named,
    only the findings are mended.

    Raises:
        InputError: the file cannot be opened or is too large. Whatever a document holds is answered, never raised.
    """
    with collector_paused():
        reading = read_anything(document)
        return autofix_read(
            reading, request=request, chosen=Chosen.of(rules, safe_only=safe_only, keep_strategy=keep_strategy)
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which fixes may be made: `safe_only` none that changes what was decided, `rules` those of named rules alone.

    `keep_strategy`: where the strategy block and the graph differ, the graph is rebuilt by the block.
    """

    safe_only: bool = False
    rules: frozenset[str] | None = None
    keep_strategy: bool = False

    @classmethod
    def of(cls, rules: Collection[str] | None, *, safe_only: bool, keep_strategy: bool = False) -> Chosen:
        """The choice of rules by their ids.

        Raises:
            InputError: there is no such rule.
        """
        named = None if rules is None else frozenset(find_rule(name).id for name in rules)
        return cls(safe_only, named, keep_strategy)


def autofix_read(reading: Reading, *, request: PlanDefaults | None = None, chosen: Chosen = Chosen()) -> FixResult:
    """Mend a document that was read already; its view is of no use afterwards. The notes of the reading are told on."""
    read = reading.read
    repair = Repair(State(read, validate_read(read)), chosen.safe_only, chosen.rules)
    session = _Session(repair, request, reading.doubts, keep_strategy=chosen.keep_strategy)
    session.run()
    result = FixResult(
        valid=repair.state.report.valid,
        rounds=repair.rounds,
        fixes=tuple(repair.applied),
        remaining=repair.state.report.violations,
        unfixed=tuple(session.reasons),
        strategy_changes=tuple(strategy_changes(read.raw, repair.state.read.raw)),
        replanned=session.replanned,
        withheld=_withheld(repair, chosen, request),
        infeasible=session.infeasible,
        notes=(*reading.notes, *session.completed),
        read=read.raw,
        plan=repair.state.read.raw,
    )
    repair.state.view.release()
    return result


def _withheld(repair: Repair, chosen: Chosen, request: PlanDefaults | None) -> Withheld | None:
    """What repair of all findings would still mend where only some fixes were asked for."""
    left, raw = len(repair.state.errors), repair.state.read.raw
    by: tuple[Literal["safe_only", "rules"], ...] = (
        *(("safe_only",) if chosen.safe_only else ()),
        *(("rules",) if chosen.rules is not None else ()),
    )
    if raw is None or not left or not by:
        return None
    further = Repair(state_of(raw))
    _Session(further, request, {}, keep_strategy=chosen.keep_strategy).run()
    mended = left - len(further.state.errors)
    further.state.view.release()
    return Withheld(findings=mended, by=by) if mended > 0 else None


class _Session:
    """One run: which plan the repair makes for, and what is to be said of it."""

    def __init__(
        self, repair: Repair, request: PlanDefaults | None, doubts: Mapping[str, str], *, keep_strategy: bool
    ) -> None:
        self.repair, self.request, self.doubts, self.keep_strategy = repair, request, doubts, keep_strategy
        self.reasons: list[str] = []
        # What the author left open and what it was taken for, as the first look at the document shows it.
        self.completed: tuple[str, ...] = ()
        self.replanned: Replanning | None = None
        self.infeasible: Infeasible | None = None
        # The intent for which no plan was found: looking again would only take the time again.
        self._refused: PlanIntent | None = None

    def run(self) -> None:
        """Repair until it is valid or a whole pass changes nothing."""
        if self.repair.state.read.raw is None:
            return
        # What can only be read in one way is read so before anything is concluded from it.
        self.repair.mend()
        while self.repair.errors:
            before = self.repair.rounds
            self.repair.toward(self._meant())
            if self.repair.errors and not self.repair.safe_only:
                self.repair.toward(self._nearest())
            if self.repair.rounds == before:
                return
        self.reasons, self.infeasible = [], None

    def _meant(self) -> Target | None:
        """What the author's plan would be were it whole; `None` where that cannot be told."""
        view = self.repair.state.view
        intent = read_intent(view, self.request, keep_strategy=self.keep_strategy)
        self.completed = self.completed or tuple(f"completed: {words}" for words in intent.completed)
        self.reasons = [self._lacking(what) for what in intent.missing]
        if intent.request is None or intent.architecture is None:
            return None
        try:
            return target_of(view, reference_for(view, intent.request, intent.architecture))
        except InputError as error:
            self.reasons.append(str(error))
            return None

    def _lacking(self, what: str) -> str:
        """Why nothing is known of `what`: it is not there, or is and was not understood."""
        if what in self.doubts or " " in what:
            return f"given, but not understood: {what}" + (f": {self.doubts[what]}" if what in self.doubts else "")
        looked_for = ": no degrees (TP8, pp: 2), no stages and no shards were found" if what == "strategy" else ""
        return f"not stated, and nowhere to be read: {what}{looked_for}"

    def _nearest(self) -> Target | None:
        """The nearest legal plan in the author's names; `None` where there is none."""
        # Wanted only where local repair cannot do: it brings the whole search with it.
        from .replan import replan

        view = self.repair.state.view
        intent = read_intent(view, self.request, keep_strategy=self.keep_strategy)
        if intent == self._refused:
            return None
        found = replan(intent, view)
        if isinstance(found, Infeasible):
            self.replanned, self.infeasible, self._refused = None, found, intent
            return None
        self.replanned, self.infeasible = found.replanning, None
        return found.built.target
