"""GPUs that each node keeps back: the plan is made for nodes with so many less."""

from __future__ import annotations

from . import reserved_lexicon as lex
from .claims import Claims
from .gated import Gated
from .page import Page
from .quantities import read_whole

OF_EACH_NODE = Gated(
    rf"(?:per|each|every)\s(?:[a-z]{{2,14}}\s)?(?:{lex.NODE})|(?:in|on|of)\s(?:each|every)\s(?:one|of\s(?:them|these|those))(?![a-z])|"
    rf"每(?:[台个])?\s?(?:{lex.NODE})"
)
_TAKEN_OF_EACH = Gated(
    r"每台(?:机器|服务器|节点)?上?(?:各?有|的|里|都有)?\s?(?P<n>\d|[一二两三四五六])\s?[张块个]\s?(?:卡|gpu)?\s?(?:已经?|都)?(?:给了?|被|留给|归|用来|用于|在?跑|拿去)[^,;。\n]{0,16}"
)
# A claim that is no field: GPUs that each node keeps back, until the nodes are counted.
_KEPT_OF_EACH = "kept_of_each_node"


def read_taken_of_each(page: Page, claims: Claims) -> None:
    """Note what others have taken of each machine ("每台已经给了别人2张卡")."""
    for match in page.search(_TAKEN_OF_EACH):
        keep_of_each(claims, read_whole(match["n"]) or 0, page.take(*match.span()))


def keep_of_each(claims: Claims, count: int, words: str) -> None:
    """Note that each node keeps so many GPUs back, until the nodes are counted."""
    if count and not claims.has(_KEPT_OF_EACH):
        claims.claim(_KEPT_OF_EACH, count, words)


def settle_kept_of_each(claims: Claims) -> None:
    """Plan on nodes that have as many GPUs less as each of them keeps back, where their size is known."""
    count, words = claims.drop(_KEPT_OF_EACH)
    if count is None:
        return
    per_node, nodes, gpus = claims.gpus_of_node, claims.values.get("nodes"), claims.values.get("gpus")
    if per_node is None or count >= per_node:
        claims.leave_unread(f"{words!r} of each node: how many GPUs a node has is not said; say how many are left")
        return
    if nodes is not None and gpus == nodes * per_node:
        claims.replace("gpus", nodes * (per_node - count), claims.words["gpus"])
    elif gpus == per_node:  # "8 x H100", the GPUs of each of several nodes
        claims.drop("gpus")
    claims.replace("gpus_per_node", per_node - count, claims.words.get("gpus_per_node", words))
    left = f"{per_node - count} of the {per_node} GPUs of each node"
    claims.assume("gpus_per_node", f"{left} are planned for and billed, {words!r} is kept back and not in the bill")
