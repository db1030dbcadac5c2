"""The most tokens of a step, where words name it by an engine's flag: "max_num_batched_tokens=8192"."""

from __future__ import annotations

from ..engines.names import ENGINES
from .claims import Claims
from .gated import Gated
from .page import Page
from .quantities import read_whole

_FLAGS = "|".join(
    name.replace("-", r"[\-_]")
    for engine in ENGINES.values()
    for name in engine.vocabulary.spelled.get("token_budget", "").split()
)
_SETTING = Gated(
    rf"(?<![\w\-])-{{0,2}}(?:{_FLAGS})(?:\s?[:=]\s?|\s(?:(?:of|is|at|set\sto)\s)?)(?P<n>\d(?:[\d,]{{0,9}}\d)?k?)(?!\w|\.\d)",
    needs="max|chunk",
)


def read_settings(page: Page, claims: Claims) -> None:
    """Read the most tokens of a step; how many requests a server takes at once is read with the load."""
    for match in page.search(_SETTING):
        if not page.is_negated(*match.span()):
            claims.claim("prefill_chunk_tokens", read_whole(match["n"]), page.take(*match.span()))
