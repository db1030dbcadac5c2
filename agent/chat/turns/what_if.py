"""What if: a change planned on the side and set beside the current plan, which stays as it is."""

from __future__ import annotations

from msgspec.structs import replace

from ...languages.say import say
from ..edit_reader import read_edit
from ..edits import apply_edit
from ..outcome import Outcome
from ..words import asks_the_same, request_changes
from .changed import Changed, changed_outcome
from .why import why_not
from .work import Work


def what_if(work: Work, text: str, *, is_more: bool = False) -> Outcome | None:
    """Plan what `text` says on the side; `None` where it says no change. `is_more`: beside the what-if before it.

    Raises:
        InputError: nothing was asked for yet, or what it says cannot be.
    """
    now = work.now
    aside = None if work.state.aside is None else work.state.planned(work.state.aside)
    base = aside if aside is not None and is_more else now
    edit = read_edit(text, [*work.state.spoken, base.spoken])
    if edit.questions:
        return Outcome("ask", "\n".join(edit.questions) + "\n", readings=edit.readings)
    if edit.is_empty:
        return None
    if edit.strategy_only is not None:
        return why_not(work, edit.strategy_only, text)
    said = apply_edit(base.said, edit)
    intent = work.intent([said])
    changes = request_changes(now.intent, intent)
    if asks_the_same(now.intent, intent):
        so = say("That is so already: the current plan answers it.")
        return Outcome("ask", f"{so}\n", readings=edit.readings)
    outcome = changed_outcome(work, Changed(work.beside(said, text), changes, edit), is_aside=True)
    before = () if aside is None else request_changes(now.intent, aside.intent)
    if base is aside:
        before = tuple(change for change in before if change in changes)
    if not before:
        return outcome
    with_it, without_it = "With the what-if before it: {before}.", "Without the what-if before it ({before})."
    rests_on = say(with_it if base is aside else without_it, before="; ".join(before))
    return replace(outcome, text=f"{rests_on}\n{outcome.text}")
