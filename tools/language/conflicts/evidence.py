"""How plainly words state a field: of two statements that differ, or of one that cannot be, the plainer counts.

Three grades. A statement names what its figure is of, right beside it; or only the reader's table of words links the
two, over a distance or without the thing that is counted; or the figure is hardly one of the field at all ("draft 4" as
a length). Between equals nothing is decided here: they are asked back.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

from ...plan.latency_limits import LATENCY_FIELDS
from ..patterns.gated import Gated
from ..patterns.matching import gap_cost
from ..patterns.quantities import find_quantities


class Grade(IntEnum):
    """How plainly words state a field; the more the better."""

    THIN, LINKED, PLAIN = 1, 2, 3


_FAR = 2.7  # three words of meaning between a figure and the word that it is read for
_LEAST_LENGTH = 16  # tokens; a smaller bare number beside the word for a text is a version, a step or a list's number
_NUMBER = Gated(r"\d[\d,]*(?:\.\d+)?\s?(?:k(?![a-z]))?")
_UNIT = Gated(r"\d\s?k(?![a-z])|tok|词元|字|words?|(?<![a-z])(?:in|out|(?:in|out)puts?|[io]sl)(?![a-z])|输[入出]")
# "20 answers" counts answers; "answers of 20 tokens" says how long they are.
_COUNTS_TEXTS = Gated(
    r"\s?\d+(?:,\d{3})*\s(?:labels|tags|returns|answers|replies|responses|prompts|summaries|drafts|translations|headlines|captions|documents|articles|questions|verdicts|explanations|completions)\s?|"
    r"\s?\d+(?:,\d{3})*\s?[页份篇封条]\s?(?:文档|文章|报告|材料|邮件|合同|回复|回答|问题|论文)\s?"
)
_LENGTHS = ("input_tokens", "output_tokens", "input_tokens_range", "output_tokens_range")
_SENTENCE_BREAK = re.compile(r"[.!?;。]\s|。")
# Words of GPUs per node: words without these, or without a node, count something else ("one every other week").
_GPU = Gated(
    r"gpu|card|accelerator|chip|[张块颗卡]|(?<!\d)[2-5]0[5-9]0(?!\d)|(?<![a-z])[a-z]{1,3}\d{1,4}|[hd]gx|x\s?\d|\d\s?x"
)
# Words of a total of GPUs: without a figure or name (`_COUNTED`), or with these, it may be a part of them.
_PART = Gated(
    r"(?<![a-z])of\s(?:the|our|these|those|them|my|its)(?![a-z])|(?<![a-z])(?:single|one|other)(?![a-z])|[单一]\s?[张块]?卡"
)
_COUNTED = Gated(r"\d|(?:gpu|card|accelerator)s(?![a-z])|(?<![a-z])[a-z]{1,3}\d{2,4}|[hd]gx")
# Words of a demanded limit ("TPOT <= 45 ms", "TTFT p95 1 s"); without them it may be an observation ("shows a TPOT of
# 70 ms").
_BOUND = Gated(
    r"[<≤:=|]|[a-z]{3,4}\s?p\d\d\s?\d|(?<![a-z])(?:under|below|within|at\smost|max(?:imum)?|no\s(?:more|longer|worse)\sthan|not\s(?:over|above|more|exceed)|less\sthan|limit|target|slo|must|should|up\sto|sub)(?![a-z])|"
    r"以[内下]|不超过|不高于|不大于|低于|小于|少于|控制在|最多|上限|要求|目标"
)
# Words of requests in flight, not of people: "40 concurrent" before "14 people".
_AT_ONCE = Gated(
    r"concurren|simultan|parallel|(?<![a-z])(?:in[\s\-]flight|at\s(?:once|the\ssame|a\stime|any)|requests?|quer(?:y|ies)|batch|streams?|sessions?|users?|clients?|prompts?|chats?|calls?|agents?|jobs?)(?![a-z])|"
    r"并发|同时|在途|在线|[路个]?请求|用户"
)
# A rate by the second or minute; an amount of a day is spread over it, and says less of the load at any time.
_BY_SECOND = Gated(r"(?:/|per|a|each|every|每)\s?(?:s(?:ec(?:ond)?)?|m(?:in(?:ute)?)?|秒钟?|分钟?)(?![a-z])|[qr]ps")
_PLAINLY = {**dict.fromkeys(LATENCY_FIELDS, _BOUND), "request_rate": _BY_SECOND}
_NODE = Gated(r"node|server|machine|box|host|station|rig|chassis|blade|tray|tower|desktop|[台机]")


def grade(name: str, value: Any, words: str) -> Grade:
    """How plainly `words` state `value` for the field `name`."""
    if name in _LENGTHS:
        if _UNIT.search(words):
            return Grade.PLAIN
        if _COUNTS_TEXTS.fullmatch(words) or (isinstance(value, int | float) and value < _LEAST_LENGTH):
            return Grade.THIN
        beside = _NUMBER.sub(" ", words)  # nothing beside the numbers of a bare "2024/311"
        return Grade.PLAIN if beside.strip() and gap_cost(beside) < _FAR else Grade.LINKED
    if (plain := _PLAINLY.get(name)) is not None:
        return Grade.PLAIN if plain.search(words) else Grade.LINKED
    if name == "gpus":
        return Grade.PLAIN if _COUNTED.search(words) and not _PART.search(words) else Grade.LINKED
    if name == "concurrency":
        # "2 going. Not everyone at once"; "user group meets in room 4.07"
        is_thin = _SENTENCE_BREAK.search(words) or (isinstance(value, float) and not value.is_integer())
        return Grade.THIN if is_thin else Grade.PLAIN if _AT_ONCE.search(words) else Grade.LINKED
    if name != "gpus_per_node" or _GPU.search(words):
        return Grade.PLAIN
    if not _NODE.search(words):
        return Grade.THIN
    # "One per server" may be of anything.
    return Grade.PLAIN if any(letter.isdigit() for letter in words) else Grade.LINKED


def holds(words: str, number: int) -> bool:
    """Whether words state a number themselves, rather than name a thing that has so many."""
    return (
        any(quantity.value == number for quantity in find_quantities(words))
        or re.search(rf"(?<![\w.]){number}", words) is not None
    )
