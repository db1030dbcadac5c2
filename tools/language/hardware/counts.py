"""Counts of accelerators and nodes, put together where several speak of the same hardware."""

from __future__ import annotations

import re

from msgspec import Struct

from ...plan.constraints import ReservedConstraint
from ..conflicts.claims import Claims
from ..constraints.words import add_constraints, drop_constraints
from ..patterns.gated import Gated
from ..patterns.number_words import AT_MOST
from ..patterns.page import Page

_OTHERS = Gated(r"the\s(?:other|remaining)")  # of GPUs or of nodes
_SINGLE_NODE = Gated(
    r"单|single|(?:one|an?)\s(?:node|server|machine|box|host|instance|vm|[hd]gx)|一台(?:机器|服务器|节点)?"
)
# Beside a single node: figures, what was read already, a reason, another machine, what is left.
_SAID = Gated(
    r"[\d\ue000-\ue006]|(?<![a-z])(?:since|because|as|what|which|why|each|every|per|stays?|remains?|left|enough|inside|within|across|nvlink|cpus?)(?![a-z])|另|因为|剩|够|每",
)
# A single node that is counted, and words by which it is all that there is: the count beside it contradicts it.
_COUNTED_ONE = Gated(r"(?:one|1|an?\ssingle)\s|单?一?台")
_STATES_ALL = Gated(
    r"(?<![a-z])(?:holds?|contains?|there(?:'s|\sis)|shows?|lists?|says?|got|delivered|only)\s(?:only\s|just\s)?$|只有\s?$"
)
_FOR_US = Gated(r"[a-z\d\s]{0,12}?\s(?:for\s(?:us|this|our)|was\sdelivered)(?![a-z])|[^,;。\n]{0,8}?给(?:我们|本)")
_OF_EACH = Gated(r"(?<![a-z])(?:each|every|per|any)(?![a-z])|每|各")
_MOST_BEFORE = Gated(rf"{AT_MOST}\s?$")


class Count(Struct, frozen=True):
    """A count of GPUs or nodes, with the phases that its clause names."""

    field: str
    number: float
    words: str
    phases: frozenset[str] = frozenset()


def without_the_busy(claims: Claims, counts: list[Count], available: Count | None) -> list[Count]:
    """The counts where only a part of the hardware is free: that part alone, or all counts with the rest reserved."""
    if available is None or _is_rest_reserved(claims, counts, available):
        return counts
    is_one_node = available.field == "nodes" and [count.field for count in counts] == ["gpus"]
    if is_one_node and not claims.has("gpus_per_node"):  # "8 H100 today … four of those nodes"
        claims.claim("gpus_per_node", counts[0].number, counts[0].words)
        claims.reading(f"{counts[0].words!r} read as one of the nodes that {available.words!r} speaks of")
        return [available]
    larger = [count for count in counts if count.field == available.field and count.number > available.number]
    for count in larger:
        claims.reading(f"{available.words!r} is planned for, not all of {count.words!r}")
    return [*(count for count in counts if count not in larger), available]


def _is_rest_reserved(claims: Claims, counts: list[Count], available: Count) -> bool:
    """Whether `available` is what reservations leave; if nodes are counted, their rest is reserved here."""
    largest = {
        field: max((count.number for count in counts if count.field == field), default=0) for field in ("gpus", "nodes")
    }
    of_nodes = largest["nodes"] * claims.values.get("gpus_per_node", 0)
    unavailable = max(largest["gpus"], of_nodes) - available.number
    constraints = (c for c in claims.values.get("constraints", ()) if isinstance(c, ReservedConstraint))
    reserved = [c for c in constraints if c.kind == "reserved_gpus"]
    reserved_gpus = sum(c.value for c in reserved)
    if available.field != "gpus" or unavailable <= 0:
        return False
    if unavailable == reserved_gpus:
        claims.reading(f"{available.words!r} read as what the {reserved_gpus} GPUs leave that are kept back")
        if not largest["nodes"]:
            drop_constraints(claims, reserved)
        return largest["nodes"] > 0
    if of_nodes <= largest["gpus"] or _OTHERS.match(available.words):
        return False
    if reserved_gpus:
        raise claims.refusal(
            f"{available.words!r} leaves {unavailable:g} of {of_nodes:g} GPUs, but {reserved_gpus} are kept back; say "
            "which are free"
        )
    claims.reading(f"{available.words!r} read as {unavailable:g} of {of_nodes:g} GPUs that are kept back")
    add_constraints(claims, [ReservedConstraint(kind="reserved_gpus", value=int(unavailable), words=available.words)])
    return True


def agreed(page: Page, claims: Claims, counts: list[Count]) -> list[Count]:
    """The counts without a node's share, which is claimed ("2 nodes, 8 GPUs, 16 GPUs in all", "4机32卡，单机8卡")."""
    nodes = {count.number for count in counts if count.field == "nodes"}
    if len(nodes) == 2 and 1 in nodes and claims.has("gpus_per_node"):
        single = [c for c in counts if c.field == "nodes" and c.number == 1 and _SINGLE_NODE.match(c.words)]
        single = [c for c in single if not _is_all_there_is(page, c.words)]
        for count in single:
            _list_alone(page, claims, count.words)
        counts = [count for count in counts if count not in single]
        nodes = {count.number for count in counts if count.field == "nodes"}
    shares = sorted({count.number for count in counts if count.field == "gpus"})
    if len(nodes) != 1 or len(shares) != 2 or shares[1] != shares[0] * max(nodes):
        return counts
    share = next(count for count in counts if count.field == "gpus" and count.number == shares[0])
    claims.claim("gpus_per_node", share.number, share.words)
    claims.reading(f"{share.words!r} read as the GPUs of each node: {max(nodes):g} x {shares[0]:g} = {shares[1]:g}")
    return [count for count in counts if count.field != "gpus" or count.number != shares[0]]


def _is_all_there_is(page: Page, words: str) -> bool:
    """Whether words of a single node with its GPUs state the hardware: "rack B3 holds one server with 4x L40S"."""
    start = page.original.find(words)
    if start < 0 or not _COUNTED_ONE.match(words) or not re.search(r"\d", words):
        return False
    clause = page.clause_text(start, start + len(words))
    before, behind = page.original[max(0, start - 24) : start], page.original[start + len(words) :]
    is_stated = _STATES_ALL.search(before) or _FOR_US.match(behind)
    return is_stated is not None and _OF_EACH.search(clause) is None


def _list_alone(page: Page, claims: Claims, words: str) -> None:
    """List a single node of which a clause says something that nothing was read of: "one sits in another building"."""
    start = page.original.find(words)
    left, right = page.clause(start, start + len(words))
    clause = page.original[left:right].strip()
    rest = page.text[left:start] + page.text[start + len(words) : right]
    kept = (constraint.words for constraint in claims.values.get("constraints", ()))
    is_said = _SAID.search(rest) or any(clause in words or words in clause for words in kept)
    is_conditional = any(first <= start < last for first, last in claims.conditional)
    if rest.strip() and _SINGLE_NODE.fullmatch(words) and not is_said and not is_conditional:
        claims.leave_unread(f"{words!r} in {clause[:120]!r} was not understood")


def claim_counts(claims: Claims, counts: list[Count]) -> None:
    """Claim the counts of one field; a count for prefill and one for decode are two parts of a whole."""
    parts = [count for count in counts if len(count.phases) == 1]
    if len(parts) == 2 and parts[0].phases != parts[1].phases:
        words = " + ".join(part.words for part in parts)
        claims.claim(parts[0].field, sum(part.number for part in parts), words)
        claims.claim("disaggregated", True, words)
        claims.reading(f"{words!r} read as hardware of their own for prefill and for decode")
        counts = [count for count in counts if count not in parts]
    if claims.has("gpus_of_kinds") and len({count.number for count in counts}) > 1:
        for count in counts:
            claims.reading(f"{count.words!r} read as said of one of the kinds that there are to choose from")
        return
    for count in counts:
        claims.claim(count.field, count.number, count.words)


def without_bounds(text: str, claims: Claims, counts: list[Count]) -> list[Count]:
    """The counts without the most nodes that a stated number of GPUs may be on: "4 H100, at most 2 nodes"."""
    if not any(count.field == "gpus" for count in counts) or claims.has("gpus_per_node"):
        return counts
    remaining = [c for c in counts if c.field != "nodes" or not _MOST_BEFORE.search(text[: max(0, text.find(c.words))])]
    for count in counts:
        if count not in remaining:
            claims.leave_unread(
                f"{count.words!r} is the most nodes that there may be; GPUs are planned on as few as hold them"
            )
    return remaining
