"""Data-parallel attention in words: its names, when it is demanded, and its degree where only others are stated.

Permission ("allow attention DP") is not a demand: it leaves the degree to the search. A degree that the words do not
settle is not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..patterns.gated import Gated
from ..patterns.page import Page

_DP = r"(?:dp(?![a-z])|data[\s_\-]?parallel(?:ism|i[sz]ed)?)"
MAY_BE = (
    r"\s(?:(?:may|can|could|might|must|should|shall|will|would)(?:\s?n't|\s(?:not|never))?|cannot|"
    r"(?:is|are)(?:\s?n't|\snot)?\s(?:allowed|permitted|free)\sto|(?:(?:is|are)\s)?to)\s(?:also\s|well\s|only\s|ever\s)?(?:be|run|use|go)\s(?:also\s)?"
)
"""What may or may not be done to something: "(the vocabulary) may not be (split)", "(attention) can run (...)"."""
ATTENTION_DP = (
    rf"(?:attention|attn)(?:\s?:\s?|(?:\slayers?|\spart)?(?:\s(?:uses?|runs?|in|is)\s|(?:{MAY_BE}|\sbe\s)(?:run\s|done\s|served\s|made\s)?(?:as\s|in\s|with\s)?)|"
    rf"[\s_\-]?){_DP}|(?<![a-z])dp[\s_\-]?att(?:entio)?n(?![a-z])|"
    r"data[\s_\-]?parallel(?:ism)?\s(?:(?:for|in)\s(?:the\s)?)?attention|(?<![a-z])dpa(?![a-z])|"
    r"(?:注意力|attention)(?:的|层|部分)?\s?也?(?:可以|允许|能够?|不可以|不能|不允许|不要|不得|可)?\s?(?:做|走|用|采用|使用)?\s?(?:数据并行|dp(?![a-z]))|(?:数据并行|dp)\s?注意力|attention\s?数据并行"
)
# Behind a number of plain DP ("DP16 for attention"); not "DP2 attention TP4", which goes on with another degree.
OF_ATTENTION = (
    r"\s(?:(?:for|in|on)\s(?:the\s)?)?(?:attention|attn)(?![a-z\-])"
    r"(?!\s?(?:tp|dp|tensor|backend|kernels?|heads?)(?![a-z]))"
)
_BARE = Gated(ATTENTION_DP)
_NOT_DEMANDED = Gated(
    r"(?<![a-z])(?:allow(?:s|ed|ing)?|permit(?:s|ted|ting)?|accept(?:able)?|ok(?:ay)?|fine|may|can|could|free|happy|if|"
    r"relax(?:ed|ing|ations?)?|optional(?:ly)?|consider|would|should|does|why|how|whether|compare|versus|vs|or)(?![a-z])|"
    r"\?|允许|可以|接受|同意|放开|放宽|支持|是否|能否|考虑|吗",
)


def demanded_spans(page: Page) -> list[tuple[int, int]]:
    """Spans that demand attention DP, in clauses that neither permit it, ask about it nor forbid it."""
    spans: list[tuple[int, int]] = []
    for match in _BARE.finditer(page.original):
        left, right = page.clause(*match.span())
        clause = page.original[left : right + 1]
        if (
            not page.is_foreign(match.start())
            and not page.is_negated(*match.span())
            and not _NOT_DEMANDED.search(clause)
        ):
            spans.append(match.span())
    return spans


class Filled(Struct, frozen=True):
    """The attention replicas of a stage, TP inside each (`None`: not stated), and whether a plain `dp` meant them."""

    attention_dp: int
    tp: int | None
    takes_dp: bool


def fill(degrees: Mapping[str, int]) -> Filled | None:
    """The degree of attention DP that the other degrees settle, or `None`.

    SGLang's `dp` beside `enable-dp-attention` lies inside its `tp`; vLLM's `dp` multiplies it, and EP spans both.
    With no such `dp`, attention DP fills what EP leaves of TP.
    """
    tp, ep, dp = degrees.get("tp"), degrees.get("ep"), degrees.get("dp", 1)
    width = (tp or 1) * degrees.get("sp", 1)
    if "attention_dp" in degrees:
        return None
    if dp > 1 and tp is not None and tp % dp == 0 and ep in (None, tp):
        return Filled(dp, tp // dp, takes_dp=True)
    if dp > 1 and ep in (None, dp * width):
        return Filled(dp, tp, takes_dp=True)
    if ep is not None and ep > width and ep % width == 0:
        return Filled(ep // width, tp, takes_dp=False)
    return None
