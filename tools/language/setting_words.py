"""The most tokens of a step, where words name it by an engine's flag, and the most requests of each replica."""

from __future__ import annotations

from ..engines.names import ENGINES
from ..gated import Gated
from .claims import Claims
from .page import Page
from .quantities import read_whole

_FLAGS = "|".join(
    name.replace("-", r"[\-_]")
    for engine in ENGINES.values()
    for name in engine.vocabulary.spelled.get("token_budget", "").split()
)
_SETTING = Gated(
    rf"(?<![\w\-])-{{0,2}}(?:{_FLAGS})(?:\s?[:=]\s?|\s(?:(?:of|is|at|set\sto)\s)?)(?P<n>\d(?:[\d,]{{0,9}}\d)?k?)(?!\w|\.\d)",
)


# "max batch size per replica: 256", "at most 128 requests at once for each instance".
_BATCH_OF_ONE = Gated(
    r"(?<![a-z])max(?:imum)?[\s_\-]?batch(?:[\s_\-]?size)?\s(?:per|for\seach|of\seach|on\seach)\s(?:replica|instance|copy|engine)\s?(?:[:=]|is|of)?\s?(?P<n>\d{1,6})(?![\w.]\d)|"
    r"(?:每个?(?:副本|实例))的?最大(?:批(?:次|量)?(?:大小)?|batch(?:\s?size)?|并发)\s?(?:为|是|[:=])?\s?(?P<m>\d{1,6})",
)


def read_settings(page: Page, claims: Claims) -> None:
    """Read the most tokens of a step, and the most requests of one replica; of all of them they are a load."""
    for match in page.search(_BATCH_OF_ONE):
        claims.claim("max_batch", read_whole(match["n"] or match["m"]), page.take(*match.span()))
    for match in page.search(_SETTING):
        if not page.is_negated(*match.span()):
            claims.claim("prefill_chunk_tokens", read_whole(match["n"]), page.take(*match.span()))
