"""How many replicas a request asks for: exactly, at least or at most, in all or on each node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from ..plan.constraints import Constraint, ReplicasConstraint
from . import reserved_lexicon as lex
from .claims import Claims
from .gated import Gated
from .number_words import AT_LEAST, AT_MOST, NUMBER
from .page import SENTENCE_END, Page, parts
from .quantities import read_whole
from .unknown_cards import INSTANCE

_REPLICA = r"(?:(?P<phase>prefill|decode)\s)?(?:replicas?|cop(?:y|ies)|instances)(?:\sof\sthe\smodel)?|副本|实例"
_REPLICAS = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>{NUMBER}|single)\s?[个套份]?\s?(?:(?:互相|相互|完全|彼此)?独立的?|(?:identical|independent|separate|equal|full|complete|serving|model)\s)?(?:{_REPLICA})|"
    rf"(?:replicas?(?:\s(?:count|number|min(?:imum)?|max(?:imum)?))?|number\sof\sreplicas|副本数?|实例数?)\s?(?:量)?(?:\s?(?:is|are|must|be|has\sto|should|equals?|equal\sto|fixed|at|exactly|必须|恰好|正好|固定|要求|不多不少|就|是|为|=|:)){{1,6}}\s?(?P<m>{NUMBER})",
)
_OF_MACHINES = Gated(r"instances?(?![a-z]|\sof\sthe\smodel)|实例")
# A claim that is no field: replicas per node.
ON_EACH_NODE = "replicas_on_each_node"
_PER_NODE = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>one|a|1|{NUMBER})\s(?:(?:independent|separate|full|whole|single|model|complete)\s)?"
    rf"(?:replica|copy|instance)\s(?:of\sit\s)?(?:per|for\seach|on\seach|on\severy|in\seach)\s(?:{lex.NODE})(?![a-z])|"
    rf"每[台个]\s?(?:{lex.NODE})\s?(?:放|跑|部署)?\s?(?:一|1)\s?个?(?:副本|实例)",
)
_EXACT = lex.cues(
    r"exactly|precisely|must|shall|need(?:s|ed)?|requires?|has\sto|have\sto|wants?|independent|identical|separate|not?\s(?:one\s)?(?:more|less|fewer)|has\sto\sbe|fixed|demanded|(?:not|non)[\s\-]negotiable|settled|final|equals?|"
    r"can't\s(?:move|change)",
    "正好|恰好|必须|独立|整整|不多|不可更改|不可调整|写死|固定",
)
_LEAST = Gated(AT_LEAST)
_OR_MORE = Gated(r"\s?(?:or\smore|at\sleast|(?:as\san?\s)?minimum|及?以上|起)(?![a-z])")
_OF_KEY = Gated(r"replicas?\s(?:(?P<least>min)|max)")
_MOST = Gated(AT_MOST)
# How many characters before a number of replicas its least ("never be fewer than") and its most are looked for.
_LEAST_AHEAD, _MOST_AHEAD = 22, 16


def read_replicas(page: Page, claims: Claims) -> Iterator[Constraint]:
    """Yield the numbers of replicas that are demanded, and take their words."""
    _note_on_each_node(page, claims)
    yield from _in_all(page)


def _note_on_each_node(page: Page, claims: Claims) -> None:
    """ "One replica per box": how many on each, until the nodes are counted (`settle_on_each_node`)."""
    for match in page.search(_PER_NODE):
        clause = page.clause_text(*match.span())
        if (
            page.text[match.end() : match.end() + 40].lstrip().startswith("?")
            or _LEAST.search(clause)
            or _MOST.search(clause)
        ):
            continue
        claims.claim(ON_EACH_NODE, read_whole(match["n"]) or 1, page.take(*match.span()))


def settle_on_each_node(claims: Claims) -> Iterator[Constraint]:
    """As many replicas as are wanted on each of the nodes that were counted."""
    each, words = claims.drop(ON_EACH_NODE)
    nodes = claims.values.get("nodes")
    if each is None:
        return
    if nodes is None:
        claims.leave_unread(f"{words!r}: how many nodes there are was not said")
        return
    yield ReplicasConstraint(kind="replicas", value=each * nodes, phase=None, words=words)


def _in_all(page: Page) -> Iterator[Constraint]:
    counts_machines = INSTANCE.search(page.original) is not None  # "p5.48xlarge, at most 3 instances"
    for start, sentence in list(parts(page.text, SENTENCE_END)):
        for match in _REPLICAS.finditer(sentence):
            if counts_machines and _OF_MACHINES.search(match.group()):
                continue
            near = sentence[max(0, match.start() - 40) : match.end() + 60]
            count = read_whole(match["n"] or match["m"])
            if page.original[start + len(sentence) : start + len(sentence) + 1] == "?":
                continue  # "TP2 or two independent replicas?"
            relation, begin, end = _bounds(sentence, match)
            if not count or not (relation or _EXACT.search(near)) or (relation == ">=" and count < 2):
                continue
            phase: Any = (match["phase"] or "").lower() or None
            words = page.take(start + begin, start + end)
            yield ReplicasConstraint(kind="replicas", value=count, relation=relation, phase=phase, words=words)


def _bounds(sentence: str, match: re.Match[str]) -> tuple[Literal[">=", "<="] | None, int, int]:
    """Whether a number of replicas is the least or the most, with the span of the words that say so."""
    if (key := _OF_KEY.search(match.group())) is not None:
        return ">=" if key["least"] else "<=", *match.span()
    if (before := _LEAST.search(sentence, max(0, match.start() - _LEAST_AHEAD), match.start())) is not None:
        return ">=", before.start(), match.end()
    if (before := _MOST.search(sentence, max(0, match.start() - _MOST_AHEAD), match.start())) is not None:
        return "<=", before.start(), match.end()
    behind = _OR_MORE.match(sentence, match.end())
    return (None, *match.span()) if behind is None else (">=", match.start(), behind.end())
