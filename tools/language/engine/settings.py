"""The most tokens of a step, where words name it by an engine's flag, and the most requests of each replica."""

from __future__ import annotations

from ...engines.names import ENGINES
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.number_words import AT_MOST
from ..patterns.page import Page
from ..patterns.quantities import read_whole

_NUMBER = r"(?:\s?[:=(]\s?|\s(?:(?:of|is|at|set\sto)\s)?)(?P<n>\d(?:[\d,]{0,9}\d)?k?)(?!\w|\.\d)"


def _flags(concept: str) -> str:
    """The flags of a setting in all engines, with whatever stands between their words."""
    names = (name for engine in ENGINES.values() for name in engine.vocabulary.spelled.get(concept, "").split())
    return "|".join(name.replace("-", r"[\s\-_]") for name in names)


_CHUNKED = r"chunked[\s\-]prefill(?:ing)?|prefill(?:ing)?[\s\-](?:in\s)?chunks?"
_TOKEN_BUDGET = Gated(
    rf"(?<![\w\-])-{{0,2}}(?:{_flags('token_budget')}){_NUMBER}|"
    # "chunked prefill 2048 tokens", "prefill chunks of 2k", "2048-token prefill chunks"
    rf"(?<![\w\-])(?:{_CHUNKED})(?:\s(?:chunks?|size|with))*{_NUMBER.replace('<n>', '<c>')}"
    r"(?:\s?tokens?)?(?!\s?(?:/|(?:in|out)(?:put)?(?![a-z])))|"
    r"(?<![\w.,])(?P<m>\d[\d,]{0,9}k?)[\s\-]?tokens?\sprefill\schunks?(?![a-z])|"
    r"(?:分块|切块)预填充\s?(?:大小)?\s?(?:为|是|[:=])?\s?(?P<k>\d{1,9}k?)(?!\w|\.\d)"
)
_SEQUENCES = Gated(
    rf"(?<![\w\-])-{{0,2}}(?:{_flags('max_sequences')}|max(?:imum)?\sbatch|最大(?:批(?:次|量|处理)?(?:大小)?|batch(?:\s?size)?)){_NUMBER}|"
    rf"(?<![\w.,])(?P<m>\d{{1,6}})\s(?:{_flags('max_sequences')})(?!\w|\s?[:=])"
)
# "max batch size per replica: 256", "batch limit per instance: 24", "at most 128 requests at once for each instance".
_OF_EACH = r"(?:per|for\seach|of\seach|on\seach|in\seach)\s(?:replica|instance|copy|engine)(?![a-z])"
_BATCH_OF_ONE = Gated(
    r"(?<![a-z])(?:max(?:imum)?[\s_\-]?batch(?:[\s_\-]?size)?|batch\s(?:size\s)?(?:limit|cap))\s"
    rf"{_OF_EACH}\s?(?:[:=]|is|of)?\s?(?P<n>\d{{1,6}})(?![\w.]\d)|"
    rf"{AT_MOST}\s?(?P<k>\d{{1,6}})\s(?:(?:concurrent|parallel|simultaneous)\s)?(?:requests?|users?|sequences?|streams?|sessions?)(?:\s(?:at\s(?:once|a\stime)|in\sflight))?\s{_OF_EACH}|"
    r"(?:每个?(?:副本|实例))的?最大(?:批(?:次|量)?(?:大小)?|batch(?:\s?size)?|并发)\s?(?:为|是|[:=])?\s?(?P<m>\d{1,6})",
)
# "Cap the batch at 256 sequences", "batches no bigger than 64", "at most 64 requests in a batch", "batch 上限 256".
_BATCH = (
    r"(?:(?<![a-z\-])(?:running\s|decode\s)*batch(?:es)?(?:[\s_\-]?sizes?)?(?![a-z])|"
    r"批(?:次|量|处理)?(?:大小|尺寸|数)?)"
)
_FROM_ABOVE = (
    rf"(?:{AT_MOST}|(?<![a-z])(?:(?:not?|never)\s(?:go\s|grow\s|be\s)?(?:bigger|larger|higher|greater|above|over|beyond|exceed)(?:\sthan)?|below|under)(?![a-z])|"
    r"<=?|≤|上限|封顶|不(?:能|得|要|可)?(?:超过|大于|高于))\s?(?:at|to|of|为|是|在|[:=])?\s?"
)
_MUST_BE = r"(?:\s(?:is|are|must|should|shall|may|can|has\sto|have\sto|be|stays?|kept|only))"
_REQUESTS = r"(?:\s?(?:seq(?:uence)?s?|req(?:uest)?s?|prompts?|条|个?(?:请求|序列))(?![a-z]))"
_N = (
    rf"(?<![A-Za-z0-9_.,])\d{{1,6}}(?![A-Za-z0-9_]|[.,]\d|\s?[k%]|(?!{_REQUESTS})\s(?:[a-z]+s|tok\w*|million)(?![a-z]))"
)
_BATCH_CAPPED = Gated(
    rf"{_BATCH}{_MUST_BE}{{0,4}}\s?[:=]?\s?{_FROM_ABOVE}(?P<a>{_N}){_REQUESTS}?|"
    rf"(?<![a-z])(?:cap|limit|hold|keep|restrict|clamp)(?:p?ed|p?ing|s)?\s(?:(?:the|our|each|every|any)\s)?{_BATCH}\s(?:(?:(?:at|to)\s)?{_FROM_ABOVE}|(?:at|to)\s)(?P<b>{_N}){_REQUESTS}?|"
    rf"{_FROM_ABOVE}(?P<c>{_N}){_REQUESTS}\s(?:in|per)\s(?:(?:a|the|each|one|any|every)\s)?(?:running\s)?batch(?![a-z])|"
    rf"{_BATCH}\s(?:of\s)?(?P<d>{_N}){_REQUESTS}?\s?(?:at\s(?:the\s)?most|max(?:imum)?|or\s(?:less|fewer)|tops|以内|封顶)(?![a-z])",
)
_BELOW = Gated(r"(?<![a-z])(?:below|under)(?![a-z])|<(?!=)")


def read_settings(page: Page, claims: Claims) -> None:
    """Read the most tokens of a step, and the most requests of a replica; for all replicas they are a load."""
    for match in page.search(_BATCH_OF_ONE):
        claims.claim("max_batch", read_whole(match["n"] or match["k"] or match["m"]), page.take(*match.span()))
    for match in page.search(_BATCH_CAPPED):
        most = read_whole(match["a"] or match["b"] or match["c"] or match["d"]) or 0
        claims.claim("max_batch", most - bool(_BELOW.search(match.group())), page.take(*match.span()))
    for name, pattern in (("prefill_chunk_tokens", _TOKEN_BUDGET), ("max_batch", _SEQUENCES)):
        for match in page.search(pattern):
            if not page.is_negated(*match.span()):
                number = next(filter(None, match.groups()))
                claims.claim(name, read_whole(number), page.take(*match.span()))


def settle_settings(claims: Claims) -> None:
    """Claim as many requests at once as a server is set to take, where no number is stated: beside a rate that is the
    room for them, else an assumption.
    """
    words = claims.words.get("max_batch", "")
    if words and not claims.has("concurrency") and not _BATCH_OF_ONE.search(words):
        claims.claim("concurrency", claims.values["max_batch"], words)
        if not claims.has("request_rate"):
            claims.assume(
                "concurrency", f"{words!r}: no load is stated, so as many requests as a server is set to take"
            )
