"""GPUs, nodes and memory that a request keeps out of the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...plan.constraints import Constraint, ReservedConstraint
from ..conflicts.claims import Claims
from ..conflicts.statement_rank import STAYS
from ..lexicons import reserved as lex
from ..lexicons.limits import ROLE
from ..patterns.gated import Gated
from ..patterns.page import BOX, CARD, CLAUSE_END, OTHER, SENTENCE_END, TAKEN, Page, parts
from ..patterns.quantities import read_whole
from .free_memory import read_free_memory
from .kept_of_each_node import is_of_each_node, keep_of_each, read_taken_of_each, take_their_total
from .replicas import read_replicas

_NAMED = re.compile(f"[{CARD}{BOX}]")
_FIGURE = re.compile(f"[0-9{CARD}{BOX}]")
# Memory that stays free as a share is read elsewhere.
_SHARE = Gated(r"\d\s?%|(?<![a-z])(?:percent|gib|gb)(?![a-z])|显存")
_MORE = lex.cues(
    r"another|(?:one|two|a)\s(?:more|further)|also|too|additional(?:ly)?|a\ssecond|as\swell", "还有|另外?|再|也"
)
# "The rest belongs to another team": the GPUs counted before it are ours.
_REST = Gated(r"(?:rest|others|remainder|其余|剩下|其[他它])(?:的|\sof\s(?:it|them))?\s?(?:都|is\s|are\s)?$")
_OR_ELSE = Gated(r"(?:or|otherwise|else)(?![a-z])|否则|不然")
_OTHERS_AWAY = Gated(f"{lex.DOWN.pattern}|{lex.FREE.pattern}")
# How many characters before and behind such a word its object is looked for.
_BEFORE, _BEHIND, _NEXT = 80, 25, 3


def read_reserved(page: Page, claims: Claims) -> Iterator[Constraint]:
    """Yield the constraints on what is kept out of the plan, and take their words."""
    page.take_all(lex.NONE_KEPT)
    yield from read_free_memory(page, claims)
    yield from read_replicas(page, claims)
    yield from _survived(page, claims)
    read_taken_of_each(page, claims)
    yield from _added_up(page.original, [*_taken_by_others(page, claims), *_reserved(page, claims)])
    take_their_total(page, claims)


def _reservation(count: int, words: str, *, is_node: object) -> ReservedConstraint:
    kind: Any = "reserved_nodes" if is_node else "reserved_gpus"
    return ReservedConstraint(kind=kind, value=count, words=words)


def _added_up(text: str, constraints: list[Constraint]) -> list[Constraint]:
    """The constraints; further GPUs or nodes ("one more node", "还有1台", another reason) are added to the first."""
    merged: list[Constraint] = []
    for new in constraints:
        other = next((old for old in merged if isinstance(old, ReservedConstraint) and old.kind == new.kind), None)
        if not isinstance(new, ReservedConstraint) or other is None or not _is_further(text, other.words, new.words):
            merged.append(new)
            continue
        words = f"{other.words}; {new.words}"[:500]
        merged[merged.index(other)] = other.model_copy(update={"value": other.value + new.value, "words": words})
    return merged


def _is_further(text: str, first: str, second: str) -> bool:
    """Whether the second of two statements keeps back more than the first does."""
    is_broken = [lex.DOWN.search(words) is not None for words in (first, second)]
    orders = (rf"{re.escape(head)},\s?(?:and\s)?{re.escape(tail)}" for head, tail in ((first, second), (second, first)))
    is_beside = any(re.search(order, text) for order in orders)
    return first != second and (is_beside or _MORE.search(second) is not None or is_broken[0] != is_broken[1])


def _survived(page: Page, claims: Claims) -> Iterator[Constraint]:
    """ "Must survive losing any one node": the plan is made for the remaining nodes."""
    for match in list(page.search(lex.SURVIVES))[:1]:
        number = next(filter(None, (match[name] for name in ("n", "m", "k"))))
        is_node = match["node"] or match["node2"] or match["unit"] == "台"
        words = page.take(*match.span())
        page.take_all(lex.LEFT_CARRY)
        claims.reading(f"{words!r} read as so many that the plan does without")
        yield _reservation(read_whole(number.lower()) or 1, words, is_node=is_node)


_OTHER_ONES = Gated(r"(?<![a-z])(?:other|rest|remaining|remainder)(?![a-z])|其余|剩下|另外|其[他它]")


def is_beyond(constraint: Constraint, nodes: int, gpus: int | None = None) -> bool:
    """Whether the hardware kept back was not counted: "two nodes (the third is on loan)", "the other 40"."""
    if not isinstance(constraint, ReservedConstraint):
        return False
    if constraint.kind != "reserved_nodes":
        is_of_others = gpus is not None and constraint.value == gpus and _OTHER_ONES.search(constraint.words)
        return gpus is not None and (constraint.value > gpus or bool(is_of_others))
    most = nodes or gpus
    if most is not None and constraint.value > most:
        return True
    part = lex.PART_OF_IT.search(constraint.words)
    return part is not None and part["o"] in lex.ORDINALS and 0 < nodes == lex.ORDINALS.index(part["o"])


def _reserved(page: Page, claims: Claims) -> Iterator[Constraint]:
    """GPUs or nodes that are counted beside a word that keeps them away, clause by clause of a sentence."""
    for start, sentence in list(parts(page.text, SENTENCE_END)):
        away = lex.AWAY.search(sentence)
        if away is not None and _REST.search(sentence, 0, away.start()) and not _OTHERS_AWAY.search(sentence):
            continue
        first = _kept_away(page, claims, start, sentence)
        if first is not None:
            for said in lex.NOT_OURS.finditer(page.text, start, start + len(sentence)):
                page.take(*said.span())
            yield first
            yield from _kept_beside(page, claims, start, first)
            continue
        end = start + len(sentence)
        of_else = away is not None and (_is_of_memory(sentence, away) or _is_of_limit(page, start + away.start()))
        is_of_cards = away is not None and not of_else
        if TAKEN not in page.text[start:end] and (is_of_cards or any(map(_is_given_up, _counted_or_one(sentence)))):
            words = page.original[start:end].strip()
            claims.leave_unread(f"{words[:200]!r} sounds like something that must not be used and was not understood")


def _is_of_limit(page: Page, place: int) -> bool:
    """Whether the clause at a place says what a missed limit means: "TTFT under 2 s or the run doesn't count"."""
    clause = page.clause_text(place, place)
    return ROLE.search(clause) is not None or _OR_ELSE.match(clause) is not None


def _kept_beside(page: Page, claims: Claims, start: int, first: Constraint) -> Iterator[Constraint]:
    """What other clauses of the sentence at `start` keep away by themselves."""
    sentence = next(parts(page.text[start:], SENTENCE_END))[1]
    for place, clause in list(parts(sentence, CLAUSE_END)):
        written = page.original[start + place : start + place + len(clause)].strip()
        is_away = lex.AWAY.search(clause) or lex.PART_OF_IT.search(clause)
        if written not in first.words and first.words not in written and is_away:
            constraint = _kept_away(page, claims, start + place, clause)
            if constraint is not None:
                yield constraint


def _kept_away(page: Page, claims: Claims, start: int, sentence: str) -> Constraint | None:
    """The first hardware that a sentence keeps away; its words are taken off the page."""
    bare = lex.PART_OF_IT.search(sentence)  # "all 72 are ours, though eight have to remain idle"
    is_bare = bare is not None and bare["i"] and lex.FREE.search(sentence, bare.end())
    key = lex.KEPT_KEY.search(sentence)
    keyed = None if key is None else lex.COUNTED_OR_ONE.match(sentence, key.end())
    if keyed is not None:
        end = keyed.end() if _FIGURE.search(sentence, keyed.end()) else len(sentence)  # "cold standby for the lab"
        words = page.take_clause(start + keyed.start(), start + keyed.end())
        page.take(start, start + end)
        if keyed["node"] is None and is_of_each_node(sentence, keyed):
            keep_of_each(claims, read_whole(keyed["n"]) or 1, words)
            return None
        return _reservation(read_whole(keyed["n"]) or 1, words, is_node=keyed["node"] is not None)
    counted = lex.KEYED.search(sentence) or (None if is_bare else _counted_away(sentence) or _counted_beside(sentence))
    if (out := _out_of_use(page, start, sentence)) is not None:
        return out
    if counted is None:
        return _part_kept_away(page, claims, start, sentence)
    if not counted["node"] and is_of_each_node(sentence, counted):
        keep_of_each(claims, read_whole(counted["n"]) or 1, page.take(start + counted.start(), start + counted.end()))
        return None
    return _take_counted(page, start, counted)


def _taken_by_others(page: Page, claims: Claims) -> Iterator[Constraint]:
    """What somebody else uses of the hardware that was counted before."""
    for match in page.search(lex.OTHERS_TAKE):
        group = next(name for name in ("n", "k", "r", "s", "t") if match[name])
        count, unit = read_whole(match[group]), match["unit"] or match["unit2"] or match["unit3"]
        before = [*lex.HARDWARE.finditer(page.text, 0, match.start(group))]
        is_wish = match["wish"] and not lex.DIRECTION.match(page.text, match.end())
        if not count or not before or is_wish or OTHER in match.group():
            continue
        is_gpu = unit in ("张", "块") or (
            (match["n"] or match["s"]) and re.search(r"gpus?|cards?", match.group(), re.IGNORECASE)
        )
        of_node = before[-1]["node"] and not _is_one_node(page, before[-1])
        is_node = match["node"] or match["node3"] or unit == "台" or (of_node and not is_gpu)
        words = page.clause_text(*match.span())[:500]
        if not is_node and is_of_each_node(words, lex.COUNTED.search(words) or match):
            keep_of_each(claims, count, page.take(match.start(), page.clause(*match.span())[1]))
            continue
        page.take(match.start(), max(match.end(), page.clause(*match.span())[1]))
        yield _reservation(count, words, is_node=is_node)


def _is_one_node(page: Page, hardware: re.Match[str]) -> bool:
    """Whether hardware is named as a single node: "one of them" is then one of the GPUs that it holds."""
    counted = re.search(r"[\d-]\s?$", page.text[max(0, hardware.start() - 3) : hardware.start()]) is not None
    return not counted and lex.ONE_NODE.fullmatch(hardware.group()) is not None


def _out_of_use(page: Page, start: int, sentence: str) -> Constraint | None:
    """Nodes or GPUs that are named by their numbers and cannot be used: as many are kept back."""
    if (sits := lex.SITS_ON.search(sentence)) is not None and (count := how_many(sits["list"])):
        words = page.take(start + sits.start(), start + sits.end())
        return _reservation(count, words, is_node=sits["node"])
    numbered = lex.NUMBERED.search(sentence)
    if numbered is None:
        return None
    away = (
        lex.DOWN.search(sentence, numbered.end())
        or lex.AWAY.search(sentence, numbered.end())
        or lex.GIVEN_UP.match(sentence, numbered.end())
    )
    count = 1 if numbered["list3"] else how_many(numbered["list"] or numbered["list2"])
    # "nodes 2-4 for us, the storage nodes are off limits".
    is_apart = away is not None and lex.HARDWARE.search(sentence, numbered.end(), away.start())
    # "The third has to keep two cards free".
    # … or "the third lost two cards".
    is_part_of_it = away is not None and any(
        hit["gpu"] and (hit.end() <= away.start() or 0 <= hit.start() - away.end() <= _NEXT)
        for hit in lex.COUNTED.finditer(sentence, numbered.end())
    )
    if away is None or not count or is_part_of_it or (is_apart and lex.RANGE.search(numbered.group())):
        return None
    words = page.take_clause(start + numbered.start(), start + numbered.end())
    return _reservation(count, words, is_node=any(map(numbered.group, ("node", "node2", "node3"))))


def how_many(numbers: str) -> int:
    """The number of nodes or GPUs that are listed by their numbers ("2, 4-7"); 0 for an impossible list."""
    ends = ((int(match["a"]), int(match["b"] or match["a"])) for match in lex.RANGE_OR_ONE.finditer(numbers))
    counts = [last - first + 1 for first, last in ends]
    return sum(counts) if min(counts, default=0) > 0 else 0


def _part_kept_away(page: Page, claims: Claims, start: int, sentence: str) -> Constraint | None:
    """The part of hardware counted before that stays free ("two of the eight have to stay free")."""
    part = lex.PART_OF_IT.search(sentence)
    if part is None or not (
        _is_given_up(part)
        or lex.BUSY.search(sentence, part.end(), part.end() + _BEHIND)
        or lex.DOWN.search(sentence, part.end(), part.end() + _BEHIND)
        or part["j"]
        or part["l"]
        or part["p"]
        or lex.AWAY.search(sentence)
        or lex.NOT_OURS.search(sentence, part.start())
        or _is_beside(sentence)
        or (lex.FREE.search(sentence) and lex.DEMAND.search(sentence))
    ):
        return None
    count = 1 if part["o"] else read_whole(next(filter(None, part.groups())))
    hardware = lex.HARDWARE.finditer(page.text, 0, start + part.end())
    before = [match for match in hardware if not (match["node"] and _is_one_node(page, match))]
    if not count or not before:
        return None
    words = page.take_clause(start + part.start(), start + part.end())
    if is_of_each_node(sentence, part):
        keep_of_each(claims, count, words)
        return None
    nodes_of = lex.NODES_OF.search(page.text[max(0, before[-1].start() - 60) : before[-1].start()])
    if nodes_of is not None and (read_whole(nodes_of["n"]) or 0) > count:
        return _reservation(count, words, is_node=True)
    # "the sixth" is hardly said of one card.
    is_node = any(match["node"] for match in before) if part["o"] else before[-1]["node"]
    return _reservation(count, words, is_node=is_node)


def _counted_or_one(sentence: str) -> Iterator[re.Match[str]]:
    """Counted hardware that is not named with its card; "a node" counts one."""
    return (hit for hit in lex.COUNTED_OR_ONE.finditer(sentence) if not _NAMED.search(hit.group()))


_OF = Gated(r"\sof\s")
_OUT_OF = Gated(r"\s(?:out\sof|from)\s")


def _is_given_up(hit: re.Match[str]) -> bool:
    """Whether the words around hardware say that it goes to others or out of use: "drain one node"."""
    sentence, start, end = hit.string, *hit.span()
    return (
        lex.GIVES_UP.search(sentence, 0, start) is not None
        or lex.GIVEN_UP.match(sentence, end) is not None
        or (
            lex.GIVES.search(sentence, 0, start) is not None
            and (lex.DIRECTION.match(sentence, end) is not None or _OUT_OF.search(hit.group()) is not None)
        )
    )


def _counted_away(sentence: str) -> re.Match[str] | None:
    """The counted hardware that a sentence keeps away: beside a weak word, or nearest to a strong one."""
    given_up = (hit for hit in _counted_or_one(sentence) if _is_given_up(hit) and not lex.MAY_NOT.search(sentence))
    if (first := next(given_up, None)) is not None:
        return first
    counted = list(lex.COUNTED.finditer(sentence))
    for start, clause in parts(sentence, CLAUSE_END):
        inside = [hit for hit in counted if start <= hit.start() and hit.end() <= start + len(clause)]
        near = _around(clause, inside[-1], start) if inside else ""
        if lex.BUSY.search(near) or (lex.FREE.search(near) and lex.DEMAND.search(clause)):
            return inside[-1]
    not_ours = lex.NOT_OURS.search(sentence)
    of_ours = [hit for hit in counted if not_ours and hit.start() <= not_ours.start() and _OF.search(hit.group())]
    if of_ours:
        return of_ours[-1]
    away = lex.AWAY.search(sentence)
    # The hardware as a whole is named with its card.
    counted = [hit for hit in counted if not _NAMED.search(sentence, hit.start(), hit.end() + 2)]
    counted = [hit for hit in counted if not _MORE_THAN.search(sentence, 0, hit.start())]
    if away is None or not counted or _is_of_memory(sentence, away):
        return None
    counted = [hit for hit in counted if not lex.OF_WHICH.search(sentence, hit.end(), max(hit.end(), away.start()))]
    gaps = {hit: away.start() - hit.end() if hit.end() <= away.start() else hit.start() - away.end() for hit in counted}
    near = [hit for hit in counted if gaps[hit] <= (_BEFORE if hit.end() <= away.start() else _BEHIND)]
    return min(near, key=lambda hit: gaps[hit], default=None)


def _is_of_memory(sentence: str, away: re.Match[str]) -> bool:
    """Whether the clause of `away`, a word that keeps something away, is about memory."""
    clause = [words for start, words in parts(sentence, CLAUSE_END) if start <= away.start()][-1]
    return _SHARE.search(clause) is not None


# "A copy must not use more than two cards."
_MORE_THAN = Gated(r"(?<![a-z])more\sthan\s$|超过\s?$")
_BOUND = Gated(r"(?:than|most|least|up\sto|超过|最多|至少)\s?$")


def _is_beside(sentence: str) -> bool:
    """Whether a sentence speaks of a model that runs already and is not planned."""
    return OTHER in sentence and STAYS.search(sentence) is not None


def _counted_beside(sentence: str) -> re.Match[str] | None:
    """The counted hardware of such a model; named with its card it is other hardware, unless a part of ours."""
    counted = lex.COUNTED.finditer(sentence) if _is_beside(sentence) else ()
    return next(
        (
            hit
            for hit in counted
            if (CARD not in hit.group() or " of " in hit.group()) and not _BOUND.search(sentence, 0, hit.start())
        ),
        None,
    )


def _around(clause: str, match: re.Match[str], start: int) -> str:
    """The words of a clause around what is counted: 25 characters before it, 40 behind."""
    begin, end = match.start() - start, match.end() - start
    return clause[max(0, begin - 25) : begin] + " " + clause[end : end + 40]


def _take_counted(page: Page, start: int, match: re.Match[str]) -> Constraint:
    behind = lex.GIVEN_UP.match(match.string, match.end()) or lex.DIRECTION.match(
        match.string, match.end()
    )  # "offline"
    words = page.take_clause(start + match.start(), start + (behind or match).end())
    return _reservation(read_whole(match["n"]) or 1, words, is_node=match["node"] is not None)
