"""Settings of a scheduler that words name by their flags: "max_num_batched_tokens=8192", "max-num-seqs 64"."""

from __future__ import annotations

from ..engines.names import ENGINES
from .claims import Claims
from .gated import Gated
from .page import Page
from .quantities import read_whole

# The field of what was said by the concept of a flag.
_FIELDS = {"max_sequences": "max_batch", "token_budget": "prefill_chunk_tokens"}
_NAMES = {
    concept: "|".join(
        name.replace("-", r"[\-_\s]")
        for engine in ENGINES.values()
        for name in engine.vocabulary.spelled.get(concept, "").split()
    )
    for concept in _FIELDS
}
_SETTING = Gated(
    r"(?<![\w\-])-{0,2}(?:"
    + "|".join(f"(?P<{concept}>{names})" for concept, names in _NAMES.items())
    + r")(?:\s?[:=]\s?|\s(?:(?:of|is|at|set\sto)\s)?)(?P<n>\d(?:[\d,]{0,9}\d)?k?)(?!\w|\.\d)",
    needs="max|chunk",
)


def read_settings(page: Page, claims: Claims) -> None:
    """Read the most requests of a step, and the most tokens of one."""
    for match in page.search(_SETTING):
        if page.is_negated(*match.span()):
            continue
        concept = next(name for name in _FIELDS if match[name])
        claims.claim(_FIELDS[concept], read_whole(match["n"]), page.take(*match.span()))
