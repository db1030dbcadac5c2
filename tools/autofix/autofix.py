"""Auto-fix: a document goes in, a validated plan that keeps what its author decided comes out, or what remains and why.

First what rules say of their own findings, then the difference to the plan that the author's own decisions make. Where
that cannot do, the nearest legal strategy takes their place. It never raises whatever the document holds, and calls
valid only what validation did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError
from ..plan.collector import collector_paused
from ..plan.document import Plan
from ..plan.reader import read_sound
from ..plan.view import PlanView
from .engine import ALL_FIXES, Chosen, Repair, State
from .intent import PlanDefaults, PlanIntent, read_intent
from .reading import Reading, read_anything
from .result import FixResult, Infeasible, Replanning, Withheld, load_changes, strategy_changes
from .target import Target, reference_for, target_of

__all__ = ["Chosen", "FixResult", "PlanDefaults", "autofix", "autofix_read"]


@collector_paused()
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
    chosen = Chosen.of(rules, safe_only=safe_only, keep_strategy=keep_strategy)
    return autofix_read(read_anything(document), request=request, chosen=chosen)


def autofix_read(reading: Reading, *, request: PlanDefaults | None = None, chosen: Chosen = ALL_FIXES) -> FixResult:
    """Mend a document that was read already; its view is of no use afterwards. The notes of the reading are told on."""
    read = reading.read
    repair = Repair(State.of(read), chosen)
    session = _Session(repair, request, reading.doubts)
    session.run()
    result = FixResult(
        valid=repair.state.report.valid,
        rounds=repair.rounds,
        fixes=tuple(repair.applied),
        remaining=repair.state.report.violations,
        unfixed=tuple(session.reasons),
        strategy_changes=tuple(strategy_changes(read.raw, repair.state.read.raw)),
        load_changes=tuple(load_changes(read.raw, repair.state.read.raw, reading.doubts)),
        replanned=session.replanned,
        withheld=_withheld(repair, request),
        infeasible=session.infeasible,
        notes=(*reading.notes, *session.completed),
        read=read.raw,
        plan=repair.state.read.raw,
    )
    repair.state.view.release()
    return result


def _withheld(repair: Repair, request: PlanDefaults | None) -> Withheld | None:
    """What repair of all findings would still mend where only some fixes were asked for."""
    left, raw, chosen = len(repair.state.errors), repair.state.read.raw, repair.chosen
    by: tuple[Literal["safe_only", "rules"], ...] = (
        *(("safe_only",) if chosen.safe_only else ()),
        *(("rules",) if chosen.rules is not None else ()),
    )
    if raw is None or not left or not by:
        return None
    further = Repair(State.of(read_sound(raw)), Chosen(keep_strategy=chosen.keep_strategy))
    _Session(further, request, {}).run()
    mended = left - len(further.state.errors)
    further.state.view.release()
    return Withheld(findings=mended, by=by) if mended > 0 else None


@dataclass
class _Session:
    """One run: which plan the repair makes for, and what is to be said of it."""

    repair: Repair
    request: PlanDefaults | None
    doubts: Mapping[str, str]
    reasons: list[str] = field(default_factory=list[str])
    # What the author left open and what it was taken for, as the first look at the document shows it.
    completed: tuple[str, ...] = ()
    replanned: Replanning | None = None
    infeasible: Infeasible | None = None
    # The intent for which no plan was found: looking again would only take the time again.
    _refused: PlanIntent | None = None

    def run(self) -> None:
        """Repair until it is valid or a whole pass changes nothing."""
        if self.repair.state.read.raw is None:
            return
        # What can only be read in one way is read so before anything is concluded from it.
        self.repair.mend()
        while self.repair.errors:
            before = self.repair.rounds
            self.repair.toward(self._meant())
            if self.repair.errors and not self.repair.chosen.safe_only:
                self.repair.toward(self._nearest())
            if self.repair.rounds == before:
                return
        self.reasons, self.infeasible = [], None

    def _meant(self) -> Target | None:
        """What the author's plan would be were it whole; `None` where that cannot be told."""
        view, intent = self._read()
        self.completed = self.completed or tuple(f"completed: {words}" for words in intent.completed)
        self.reasons = [self._lacking(what) for what in intent.missing]
        if intent.request is None or intent.architecture is None:
            return None
        try:
            return target_of(view, reference_for(view, intent.request, intent.architecture))
        except InputError as error:
            self.reasons.append(str(error))
            return None

    def _read(self) -> tuple[PlanView, PlanIntent]:
        """The document as it stands, and what its author decided."""
        view = self.repair.state.view
        return view, read_intent(view, self.request, keep_strategy=self.repair.chosen.keep_strategy)

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

        view, intent = self._read()
        if intent == self._refused:
            return None
        found = replan(intent, view)
        if isinstance(found, Infeasible):
            self.replanned, self.infeasible, self._refused = None, found, intent
            return None
        self.replanned, self.infeasible = found.replanning, None
        return found.built.target
