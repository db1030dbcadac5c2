"""What a brief wants and permits without a figure: objective, open counts, separate phases, relaxations, engine.

The readers of requests are used for the words; here is what keys with a yes, a no or a choice add to them. What is only
permitted stays open.
"""

from __future__ import annotations

import re

from .brief_facts import Facts
from .brief_lexicon import GPU
from .brief_reading import Reading, run_readers
from .claims import Claims
from .errors import RequestError
from .objective_words import read_objective
from .page import Page
from .permission_words import read_disaggregation, read_relaxations
from .serving_words import read_engine

OPEN = re.compile(
    r"as many(?: \w+)? as (?:needed|necessary|required|it takes)|no (?:fixed |hard |upper )?(?:limit|"
    r"cap|bound|restriction)s?|unlimited|not limited|unbounded|any number"
    r"|unconstrained|(?:to be|tbd|decide|open|up to you|your choice|whatever)|fewest|minimum (?:number "
    r")?(?:needed|possible)|as few as possible|不限|无限|没有限制|不受限|按需|任意|越少越好|尽(?:量|可能)少|最少",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.;。；\n]")
_GPU_WORD = re.compile(rf"(?<![a-z])(?:{GPU}|hardware|cluster)(?![a-z])", re.IGNORECASE)
_COUNT_KEY = re.compile(
    rf"(?:.*\b)?(?:(?:num(?:ber of)?|total|max(?:imum)?|how many|#|n)? ?{GPU}(?: ?(?:count|number|"
    r"limit|budget|total|数量?|数))?|world size|.*卡数.*|.*数量)"
)
_FEWEST = re.compile(
    r"(?:fewest|least|minimum number of|minimi[sz]e(?: the)?(?: number of)?|smallest number of|as few)"
    rf"\s?(?:possible )?{GPU}"
    r"|(?:卡数?|gpu) ?(?:越少越好|最少|尽(?:量|可能)少)|(?:最少|尽(?:量|可能)少)的?用?(?:卡|gpu)",
    re.IGNORECASE,
)
_APART = re.compile(
    r"(?:prefill|预填充)[^.;]{0,12}(?:decod\w+|解码)[^.;]{0,40}(?:(?:different|separate|distinct|their own|"
    r"dedicated) (?:cards|gpus|nodes|servers|machines|pools?|instances?)|不同的?(?:卡|机器|节点)|分开|分离)",
    re.IGNORECASE,
)
_MAY = re.compile(
    r"\b(?:may|can|could|might|allowed|optional\w*|possibly|permitted|if)\b|可以|可|允许|如果", re.IGNORECASE
)
_OBJECTIVE_KEY = re.compile(
    r"(?:.* )?(?:objective|goal|optimi[sz]e(?: for)?|optimi[sz]ation(?: (?:goal|target))?|priority|"
    r"optimi[sz]ation objective|优化目标|目标|优先级?)"
)
# "Target: TTFT 2 s" states a limit, not what to make best.
_TARGET = re.compile(
    r"(?:targets?|goals?|objectives?|slos?|limits?)\W{1,3}(?=(?:the )?(?:ttft|tpot|itl|latency|p\d\d|"
    r"time to|throughput|tokens)\b[^,;.]{0,30}\d)",
    re.IGNORECASE,
)
_OBJECTIVES = (
    ("latency", re.compile(r"latency|ttft|tpot|speed|延迟|时延", re.IGNORECASE)),
    ("throughput", re.compile(r"throughput|tokens|吞吐", re.IGNORECASE)),
    ("cost", re.compile(r"cost|price|cheap|fewest|成本|费用|性价比", re.IGNORECASE)),
)
_PHASE = re.compile(r"\b(?:prefill|decod)|预填充|解码")


def read_wishes(reading: Reading, facts: Facts) -> None:
    """Objective, open counts, separate phases, relaxations, engine: what is said without a figure."""
    page, text = reading.page, reading.page.original
    _read_open(reading, facts, text)
    if reading.key and _OBJECTIVE_KEY.fullmatch(reading.key):
        named = [name for name, pattern in _OBJECTIVES if pattern.search(reading.body)]
        if named:
            facts.add([reading.fact("objective_keyed", named[0])])
    if reading.is_no:
        claims = Claims()
        read_disaggregation(page, claims)
        if "disaggregated" in claims.values:
            facts.add([reading.fact("disaggregated", False)])
        return
    before = len(facts.items) + len(facts.readings)
    run_readers(reading, facts, (read_relaxations, read_disaggregation))
    if (match := _APART.search(text)) and len(facts.items) + len(facts.readings) == before:
        if _MAY.search(text):
            facts.reading(
                f"{match.group()!r} read as a permission: separate prefill and decode stays open "
                f"({reading.statement.where})"
            )
        elif not page.is_negated(*match.span()):
            facts.add([reading.fact("disaggregated", True)])
    run_readers(reading, facts, (read_engine,))
    claims = Claims()
    try:
        read_objective(Page(_TARGET.sub(" ", page.text)), claims)
    except RequestError as error:
        facts.leave_unread(f"{error.reason} ({reading.statement.where})")
    if "objective" in claims.values:
        facts.add([reading.fact("objective", claims.values["objective"])])


def _read_open(reading: Reading, facts: Facts, text: str) -> None:
    fewest = _FEWEST.search(text)
    keyed = bool(_COUNT_KEY.fullmatch(reading.key)) and not _PHASE.search(reading.key)
    match = OPEN.search(reading.body)
    if fewest:
        facts.add([reading.fact("fewest", True)])
    elif match and (keyed or _near_gpu(reading.body, match)):
        facts.add([reading.fact("gpus_open", True)])


def _near_gpu(body: str, match: re.Match[str]) -> bool:
    """Whether an open count is said of cards in its sentence: "no limit on the number of GPUs"."""
    before, after = _SENTENCE.split(body[: match.start()])[-1], _SENTENCE.split(body[match.end() :])[0]
    near = f"{before[-40:]} {after[:40]}"
    return _GPU_WORD.search(near) is not None and not re.search(r"memory|latency|budget|显存|延迟", near, re.IGNORECASE)
