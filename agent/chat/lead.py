"""The line before an English report, in the answer to a person who writes another language."""

from __future__ import annotations

from msgspec.structs import replace

from ..languages.of_text import HAN
from ..languages.say import is_english, say
from .outcome import Kind, Outcome

_LEADS: dict[Kind, str] = {
    "explain": "From the knowledge base, in English:",
    "estimate": "The estimate of the current plan, in English:",
    "validate": "The rules on the current plan, in English:",
    "compare": "The two plans side by side, in English:",
    "refused": "That cannot be done; why, in English:",
}
_ANY = "In English:"


def led(outcome: Outcome) -> Outcome:
    """`outcome`, after a line that says what it is if its own first line is in English and should not be."""
    first = outcome.text.strip().partition("\n")[0]
    if is_english() or not first or HAN.search(first):
        return outcome
    return replace(outcome, text=f"{say(_LEADS.get(outcome.kind, _ANY))}\n{outcome.text}")
