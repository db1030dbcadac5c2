"""Steps before anything is read of a text: slips, corrections, sums, figures of what only runs now, other units."""

from __future__ import annotations

from msgspec import Struct

from ..conflicts.alternatives import with_corrected_figures
from ..conflicts.current_figures import without_observed
from ..conflicts.withdrawn_figures import with_later_figures_in_place
from ..patterns.rewriting import worked_out_by
from .alternative_layouts import with_alternatives_apart
from .amounts_in_time import as_rates
from .arithmetic import worked_out
from .asides import without_asides
from .derived_lengths import TOLD_LENGTHS
from .fewest_words import FEWEST
from .length_parts import with_parts_together
from .people_sums import PEOPLE
from .spelling import corrected
from .whole_answer import with_whole_answers
from .written_lengths import in_tokens


class Mended(Struct, frozen=True):
    """A text as the readers get it, notes on its changes, the lengths in tokens, and slips as written and as read."""

    text: str
    notes: tuple[str, ...]
    lengths: dict[float, str]
    slips: tuple[tuple[str, str], ...]


def mended(text: str) -> Mended:
    """A normalised text after corrections, sums and conversions to tokens."""
    notes: list[str] = []
    text, slips = corrected(text)
    text = without_asides(text)
    for step in (
        with_later_figures_in_place,
        with_corrected_figures,
        PEOPLE,
        as_rates,
        worked_out,
        FEWEST,
        with_parts_together,
        TOLD_LENGTHS,
        without_observed,
        with_alternatives_apart,
    ):
        text, more = step(text) if callable(step) else worked_out_by(text, step)
        notes += more
    text, lengths = in_tokens(with_whole_answers(text))
    return Mended(text, tuple(notes), lengths, slips)
