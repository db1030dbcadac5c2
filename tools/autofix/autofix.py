"""Auto-fix: turns any text or object into a valid plan with its author's decisions, or says what remains and why.

First come the fixes that rules propose for their findings, then the difference to the plan that follows from the
author's decisions. If that is not enough, the nearest legal strategy replaces them. No document makes it raise, and
only validation calls a plan valid.

A string with a line break or a bracket is a proposal in any form, any other string the path of a file. Where nothing of
a plan is found, the answer says what was looked for. The changes themselves are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ..checkpoint import left_out
from ..errors import InputError
from ..plan.document import Plan
from ..plan.reader import ReadDocument, collector_paused, path_named, read_document, read_file, read_sound, read_text
from ..plan.schema import SchemaFault
from ..plan.view import PHASES, PlanView, as_mapping
from ..rules.registry import find_rule
from .engine import ALL_FIXES, Chosen, Repair, State
from .foreign.own_format import own_document
from .foreign.reader import read_proposal
from .intent import PlanDefaults, PlanIntent, on_drawn_nodes, read_intent
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

    Raises InputError: the file cannot be opened or is too large. Whatever a document holds is answered, never raised.
    """
    chosen = Chosen.of(rules, safe_only=safe_only, keep_strategy=keep_strategy)
    return autofix_read(read_anything(document), request=request, chosen=chosen)


def autofix_read(reading: Reading, *, request: PlanDefaults | None = None, chosen: Chosen = ALL_FIXES) -> FixResult:
    """Mend a document that was read already; its view is released. The result includes the notes of the reading."""
    read = reading.read
    repair = Repair(State.of(read), chosen)
    session = _Session(repair, request, reading.doubts)
    session.run()
    result = FixResult(
        valid=repair.state.report.valid,
        rounds=repair.rounds,
        fixes=tuple(repair.applied),
        remaining=repair.state.report.violations,
        unfixed=(*session.reasons, *_warned(repair)),
        strategy_changes=tuple(strategy_changes(read.raw, repair.state.read.raw)),
        left_out=left_out(),
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


def _warned(repair: Repair) -> Iterator[str]:
    """Lines that say why warnings of the named rules are not mended."""
    warned = {violation.rule for violation in repair.state.report.violations if violation.severity == "warning"}
    for name in sorted(warned & (repair.chosen.rules or frozenset())):
        yield f"{name} is a warning: a plan with it is valid, and only errors are mended; {find_rule(name).remedy}"


def _withheld(repair: Repair, request: PlanDefaults | None) -> Withheld | None:
    """What a repair of all findings would still mend, if only some fixes were asked for."""
    error_count, raw, chosen = len(repair.state.errors), repair.state.read.raw, repair.chosen
    by: tuple[Literal["safe_only", "rules"], ...] = (
        *(("safe_only",) if chosen.safe_only else ()),
        *(("rules",) if chosen.rules is not None else ()),
    )
    if raw is None or not error_count or not by:
        return None
    full_repair = Repair(State.of(read_sound(raw)), Chosen(keep_strategy=chosen.keep_strategy))
    _Session(full_repair, request, {}).run()
    mended = error_count - len(full_repair.state.errors)
    full_repair.state.view.release()
    return Withheld(findings=mended, by=by) if mended > 0 else None


class _Session(Struct):
    """One run of auto-fix: the targets of its repair, and what the result reports."""

    repair: Repair
    request: PlanDefaults | None
    doubts: Mapping[str, str]
    reasons: list[str] = field(default_factory=list[str])
    # What the author left open and how it was completed, as read before any change.
    completed: tuple[str, ...] = ()
    replanned: Replanning | None = None
    infeasible: Infeasible | None = None
    # The intent for which no plan exists: it is not searched again.
    _refused: PlanIntent | None = None

    def run(self) -> None:
        """Repair until it is valid or a whole pass changes nothing."""
        if self.repair.state.read.raw is None:
            return
        # Mend what has only one reading before anything is concluded from it.
        self.repair.mend()
        while self.repair.errors:
            before = self.repair.rounds
            self.repair.toward(self._meant())
            if self.repair.errors and not self.repair.chosen.safe_only:
                self.repair.toward(self._nearest())
            if self.repair.rounds == before:
                # Wrong figures that remain could not be computed again.
                self.repair.withdraw_figures()
            if self.repair.rounds == before:
                # No plan exists on the stated hardware: mend what has nothing to do with that.
                self.repair.toward(self._as_drawn())
                return
        self.reasons, self.infeasible = [], None

    def _meant(self) -> Target | None:
        """The target that follows from the author's decisions; `None` if they do not make a plan."""
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

    def _as_drawn(self) -> Target | None:
        """What the author drew, on as many nodes as that takes, with the hardware as it is stated.

        `None` if the stated hardware has a plan, or its nodes are not what keeps the drawing from being one.
        """
        view, intent = self._read()
        if self.infeasible is None or intent.request is not None:
            return None
        drawn = on_drawn_nodes(intent, view)
        if drawn.request is None or drawn.architecture is None:
            return None
        try:
            target = target_of(view, reference_for(view, drawn.request, drawn.architecture))
        except InputError:
            return None
        return replace(target, header={**target.header, "hardware": view.hardware})

    def _read(self) -> tuple[PlanView, PlanIntent]:
        """The current document, and what its author decided: the degrees that a sound graph shows, not the declared."""
        state, keep = self.repair.state, self.repair.chosen.keep_strategy
        decisive = _without_degrees(state.view) if state.has_sound_graph and not keep else state.view
        return state.view, read_intent(decisive, self.request, keep_strategy=keep)

    def _lacking(self, what: str) -> str:
        """A line that says why `what` is unknown: it is absent, or was not understood."""
        if what in self.doubts or " " in what:
            return f"given, but not understood: {what}" + (f": {self.doubts[what]}" if what in self.doubts else "")
        looked_for = ": no degrees (TP8, pp: 2), no stages and no shards were found" if what == "strategy" else ""
        return f"not stated, and nowhere to be read: {what}{looked_for}"

    def _nearest(self) -> Target | None:
        """The nearest legal plan in the author's names; `None` if there is none."""
        # Imported only when local repair is not enough: it loads the whole search.
        from .replan import replan

        view, intent = self._read()
        if intent == self._refused:
            return None
        outcome = replan(intent, view)
        if isinstance(outcome, Infeasible):
            self.replanned, self.infeasible, self._refused = None, outcome, intent
            return None
        self.replanned, self.infeasible = outcome.replanning if outcome.replanning.moves else None, None
        return outcome.built.target


def _without_degrees(view: PlanView) -> PlanView:
    """The same document, with nothing declared but replicas and GPUs: a whole replica may be lost without a trace."""
    blocks = {phase: {"replicas": as_mapping(view.strategy.get(phase)).get("replicas")} for phase in PHASES}
    return PlanView({**view.raw, "strategy": {**view.strategy, **blocks}})


# Characters that occur in proposals and never in a file's path.
SIGNS_OF_TEXT = ("\n", "{", "[")
NOTHING_FOUND = (
    "no plan and no proposal was found: looked for JSON, YAML, tables, flags of engines "
    "(--tensor-parallel-size 8) and degrees in words (TP8, PP2); give at least a model and such degrees"
)


# Characters of a proposal's rationale that are kept.
MOST_RATIONALE = 4000


class Reading(Struct, frozen=True):
    """A document as read, and the foreign reader's notes on it.

    `doubts`: remarks on fields of a plan that were given in words and not understood. `assumed`: phases whose `tp_ffn`
    nobody stated; the reader took what TP means for the proposal's model. `rationale`: the text that a proposal in the
    form of an object gives for itself.
    """

    read: ReadDocument
    notes: tuple[str, ...] = ()
    doubts: Mapping[str, str] = field(default_factory=dict[str, str])
    assumed: frozenset[str] = frozenset()
    rationale: str | None = None


def read_anything(source: Mapping[str, Any] | Plan | str | Path) -> Reading:
    """Read a plan, or a proposal in any other form: an object, a text, the path of a file.

    Raises InputError: the file cannot be opened, is too large or is no text.
    """
    if isinstance(source, Plan):
        return _ours(read_document(source))
    if isinstance(source, Mapping):
        ours = own_document(source)
        return _foreign(source, read_document(source)) if ours is None else _ours(read_document(ours))
    is_text = isinstance(source, str) and any(sign in source for sign in SIGNS_OF_TEXT)
    return read_text_anyhow(source if isinstance(source, str) and is_text else read_file(path_named(source)))


def read_text_anyhow(text: str) -> Reading:
    """Read a text with a proposal in it, whatever it looks like; never raises."""
    read = read_text(text)
    ours = own_document(read.raw)
    if ours is None:
        return _foreign(text, read)
    return _ours(read if ours is read.raw else replace(read_document(ours), mended=read.mended))


def _ours(read: ReadDocument) -> Reading:
    """A document of our format; values that JSON cannot carry were replaced in reading, and are noted."""
    if read.raw is None or not (read.mended or read.unexpanded):
        return Reading(read)
    replaced = (f"replaced: {fault.message} ({fault.path or '/'})" for fault in read.mended)
    # Compact parts that cannot be written out were dropped: they are noted, and are no fault of the rest.
    written_once = (f"not written out: {fault.message} ({fault.path or '/'})" for fault in read.unexpanded)
    again = replace(read_sound(read.raw), unexpanded=read.unexpanded)
    return Reading(again, (*replaced, *written_once))


def _foreign(source: str | Mapping[str, Any], plainly: ReadDocument) -> Reading:
    """`source` by the foreign reader; as it was read `plainly` if that finds nothing of a plan."""
    proposal = read_proposal(source)
    notes = tuple(f"{note.kind.replace('_', ' ')}: {note.what} ({note.where})" for note in proposal.notes)
    if proposal.document is None:
        faults = tuple(SchemaFault("", f"{NOTHING_FOUND} ({fault.message})") for fault in plainly.faults)
        return Reading(replace(plainly, faults=faults) if plainly.raw is None else plainly, notes)
    doubts = {note.field: f"{note.what} ({note.where})" for note in proposal.notes if note.field is not None}
    stated = None if plainly.raw is None else plainly.raw.get("rationale")
    rationale = stated[:MOST_RATIONALE] if isinstance(stated, str) else None
    return Reading(read_sound(proposal.document), notes, doubts, proposal.assumed, rationale)
