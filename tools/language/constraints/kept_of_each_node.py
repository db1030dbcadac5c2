"""GPUs that each node keeps back: the plan is made for nodes with so many less."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...plan.constraints import Constraint, ReservedConstraint
from ..conflicts.claims import Claims
from ..lexicons import reserved as lex
from ..patterns.gated import Gated
from ..patterns.number_words import NUMBER
from ..patterns.page import Page
from ..patterns.quantities import read_share, read_whole

_OF_EACH_NODE = Gated(
    rf"(?:per|each|every)\s(?:[a-z]{{2,14}}\s)?(?:{lex.NODE})|(?:in|on|of)\s(?:each|every)\s(?:one|of\s(?:them|these|those))(?![a-z])|"
    rf"每(?:[台个]\s?(?:{lex.NODE})?|{lex.NODE})",
)
_TAKEN_OF_EACH = Gated(
    r"每台(?:机器|服务器|节点)?上?(?:各?有|的|里|都有)?\s?(?P<n>\d|[一二两三四五六])\s?[张块个]\s?(?:卡|gpu)?\s?(?:已经?|都)?(?:给了?|被|留给|归|用来|用于|在?跑|拿去)[^,;。\n]{0,16}"
)
# "on each server we may only use 6", "每台只能用6张": what is left of each, and a clause behind it on the others.
_LEFT_OF_EACH = Gated(
    rf"(?<![a-z])(?:on|in|of|from)\s(?:each|every)(?:\s(?:one|{lex.NODE}|of\s(?:them|these|those)))?,?\s(?:we|i)\s(?:may|can|could|are\sallowed\sto)\s(?:only\s|just\s)?(?:use|have|take|touch)\s(?:only\s|just\s|up\sto\s|at\smost\s)?(?P<n>{NUMBER})(?!\w|\.\d)(?:\s(?:gpus?|cards?))?|"
    rf"(?<![a-z])(?:we|i)\s(?:may|can|could|are\sallowed\sto)\s(?:only\s|just\s)?(?:use|have|take|touch)\s(?:only\s|just\s|up\sto\s|at\smost\s)?(?P<m>{NUMBER})\s(?:(?:gpus?|cards?)\s)?(?:(?:on|in|of|from)\s(?:each|every)|per)(?:\s(?:one|{lex.NODE}))?(?![a-z])|"
    rf"(?<![\w.])(?P<k>{NUMBER})\s(?:(?:gpus?|cards?)\s)?(?:on|in|of|per)\s(?:each\s|every\s)?(?:{lex.NODE})\s(?:are|is)\s(?:ours|free|available|usable|for\sus)(?![a-z])|"
    r"每[台个](?:机器|服务器|节点)?上?(?:我们)?(?:[只仅就]能用|[只仅]可?用|可用(?:的)?(?:只有|是)?)\s?(?P<cn>\d{1,2}|[一二两三四五六七八])\s?[张块]卡?"
)
_OTHERS_OF_EACH = Gated(
    r"[,;]\s?(?:另外?|其余|剩下?|余下)的?\s?(?:\d{1,2}|[一二两三四五六])?\s?[张块][^,;。\n]{0,16}|"
    r"[,;]\s(?:and\s)?the\s(?:other|remaining)\s(?:ones?|two|four|\d{1,2})(?:\s(?:gpus?|cards?))?\s[^,;.\n\d]{2,40}"
)
# "half of the second one belongs to GIS", "第二台的一半给了训练组": a share of one node.
_SHARE = r"(?P<{}>half|a\sthird|a\squarter|three\squarters|two\sthirds|一半|一?半|四分之一|四分之三|三分之[一二])"
_ONE_NODE = (
    rf"(?:(?:the|our|one)\s(?:single\s)?(?:{lex.ORDINAL}|last|of\s(?:them|the\s\w{{2,8}}|those|these))|one|"
    rf"(?:{lex.NODE})\s#?\d{{1,2}})"
)
_PART_OF_NODE = Gated(
    rf"(?<![a-z])(?:(?:one|the\sother)\s)?{_SHARE.format('of')}\sof\s{_ONE_NODE}(?:\s(?:one|{lex.NODE}))?(?![a-z])|"
    rf"(?<![a-z])(?:the|our)\s(?:{lex.ORDINAL}|last)(?:\s(?:one|{lex.NODE}))?\s?,?\s(?:is\s)?(?:only\s|just\s)?{_SHARE.format('ours')}(?=\s(?:of\sit\s)?(?:is\s)?ours)|"
    rf"(?:第[一二三四五六七八\d]|其中[一1]|有一|最后一|另一)\s?台(?:机器|服务器)?(?:的|只|有|上|里)*\s?{_SHARE.format('chinese')}(?:的?[卡张]卡?)?"
)
_OF_OTHERS = Gated(r"(?<![a-z])(?:used|needed|claimed|run|filled)\sby(?![a-z])|给了|归(?!我)")
_STRESS = Gated(
    rf"[,、:\s–—-]{{0,3}}(?:please\s|so\s|都|也)?(?:{lex.AWAY.pattern}|不能[用动]|[用动]不[了得]|不算)(?:\s(?:it|that|them))?\s?"
)
_OURS = Gated(r"(?<![a-z])(?:(?<!not\s)(?:ours|mine|for\sus)|we\s(?:may|can))(?![a-z])|归我们|给我们|是我们|我们能?用")
# All that the nodes keep back together, said beside it: ", so 2 in total", ",一共留2张".
_IN_ALL = Gated(
    r"(?:一共|总共|共计|合计|总计|共)[^,;。\d]{0,4}(?:\d{1,3}|[一二两三四五六七八九十])\s?[张块]卡?|"
    rf"(?<![\w.])(?:{NUMBER})(?:\s(?:cards?|gpus?))?\s(?:in\s(?:total|all)|altogether)(?![a-z])"
)
# A claim that is no field: GPUs that each node keeps back, until the nodes are counted.
_KEPT_OF_EACH = "kept_of_each_node"
# The same of a share of one node.
_SHARE_OF_ONE = "share_kept_of_one_node"
# The same of GPUs that each node leaves.
_LEFT = "left_of_each_node"


def is_of_each_node(sentence: str, counted: re.Match[str]) -> bool:
    """Whether what is counted in a sentence is said of each node; "8 GPUs per node, one is kept back" is not."""
    counts = [hit.span() for hit in lex.COUNTED_OR_ONE.finditer(sentence) if hit.end() <= counted.start()]
    for each in _OF_EACH_NODE.finditer(sentence):
        is_of_other = any(0 <= each.start() - end <= 1 for _, end in counts)
        if not is_of_other and not re.search(r"\d", sentence[each.end() : counted.start()]):
            return True
    return False


def read_taken_of_each(page: Page, claims: Claims) -> None:
    """Note what others have taken of each machine ("每台已经给了别人2张卡"), or of one ("half of the second one")."""
    for match in page.search(_TAKEN_OF_EACH):
        keep_of_each(claims, read_whole(match["n"]) or 0, _taken_with_stress(page, *match.span()))
    for match in page.search(_LEFT_OF_EACH):
        count = read_whole(next(filter(None, match.groups())).lower())
        others = _OTHERS_OF_EACH.match(page.text, match.end())
        if count and not claims.has(_LEFT):
            claims.claim(_LEFT, count, page.take(match.start(), (others or match).end()))
    for match in page.search(_PART_OF_NODE):
        _note_share(page, claims, match)


def _note_share(page: Page, claims: Claims, match: re.Match[str]) -> None:
    clause = page.clause_text(*match.span())
    end = page.clause(*match.span())[1]
    share = read_share(match["of"] or match["ours"] or match["chinese"])
    is_ours = _OURS.search(page.text, match.end(), end) is not None
    is_away = lex.AWAY.search(clause) or lex.BUSY.search(clause) or _OF_OTHERS.search(page.text, match.end(), end)
    if share is None or not (is_ours or is_away) or claims.has(_SHARE_OF_ONE):
        return
    _taken_with_stress(page, match.start(), end)
    claims.claim(_SHARE_OF_ONE, 1 - share if is_ours else share, clause)


def _taken_with_stress(page: Page, start: int, end: int) -> str:
    """Take a span, and a clause behind it that only says once more to leave it alone: ", hands off", ",不能用"."""
    words = page.take(start, end)
    next_end = page.clause(end + 1, end + 1)[1]
    if _STRESS.fullmatch(page.text, end, next_end):
        page.take(end, next_end)
    return words


def take_their_total(page: Page, claims: Claims) -> None:
    """Take what all nodes together keep back off the page: it follows from what each of them does."""
    if claims.has(_KEPT_OF_EACH):
        kept = max(0, page.original.find(claims.words[_KEPT_OF_EACH]))
        for match in list(_IN_ALL.finditer(page.text, kept, page.sentence(kept, kept + 1)[1]))[:1]:
            page.take(*match.span())


def keep_of_each(claims: Claims, count: int, words: str) -> None:
    """Note that each node keeps so many GPUs back, until the nodes are counted."""
    if count and not claims.has(_KEPT_OF_EACH):
        claims.claim(_KEPT_OF_EACH, count, words)


def settle_kept_of_each(claims: Claims) -> None:
    """Plan on nodes that have as many GPUs less as each of them keeps back, where their size is known."""
    count, words = claims.drop(_KEPT_OF_EACH)
    left, of_left = claims.drop(_LEFT)
    per_node, nodes, gpus = claims.gpus_of_node, claims.values.get("nodes"), claims.values.get("gpus")
    if left is not None and per_node is None:
        claims.claim("gpus_per_node", left, of_left)
        return
    if left is not None and per_node is not None:
        count, words = per_node - left, of_left
    if not count:
        return
    if per_node is None or not 0 < count < per_node:
        claims.leave_unread(f"{words!r} of each node: how many GPUs a node has is not said; say how many are left")
        return
    if nodes is not None and gpus == nodes * per_node:
        claims.replace("gpus", nodes * (per_node - count), claims.words["gpus"])
    elif gpus == per_node:  # "8 x H100", the GPUs of each of several nodes
        claims.drop("gpus")
    claims.replace("gpus_per_node", per_node - count, claims.words.get("gpus_per_node", words))
    left = f"{per_node - count} of the {per_node} GPUs of each node"
    claims.assume("gpus_per_node", f"{left} are planned for and billed, {words!r} is kept back and not in the bill")


def settle_share_of_one(claims: Claims) -> Iterator[Constraint]:
    """Keep back the GPUs that a share of one node is, where its size is known and the share is a whole number."""
    share, words = claims.drop(_SHARE_OF_ONE)
    if share is None:
        return
    count = round(share * (claims.gpus_of_node or 0), 6)
    if not count or count % 1:
        claims.leave_unread(f"{words!r}: how many GPUs that is was not said")
        return
    claims.reading(f"{words!r} read as {count:g} GPUs that are kept back")
    yield ReservedConstraint(kind="reserved_gpus", value=int(count), words=words)
