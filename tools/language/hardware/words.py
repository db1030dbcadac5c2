"""How many accelerators, on how many nodes: every way of saying "2x8 H200" in English and Chinese.

A dozen short shapes over the text's symbols (`tokens.py`: `n` a number, `S` a server, `g` the word GPU, `C` a
card's name, ...) say what the numbers count. Counts and open counts ("no limit on cards") are read, never completed.
"""

from __future__ import annotations

import re

from ...catalog.hardware import singular
from ...plan.constraints import ReservedConstraint
from ..conflicts.claims import Claims
from ..conflicts.evidence import Grade, grade
from ..constraints.reserved import how_many
from ..constraints.words import add_constraints
from ..lexicons import hardware as lex
from ..lexicons.load import ENDS_FIGURE
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import find_quantities, read_number
from .card_names import COUNT_TAKEN_BACK, NodeSizes
from .counts import Count, agreed, claim_counts, without_bounds, without_the_busy
from .tokens import Tokens

# Claims on open counts that are no fields: few are wanted, or there is no limit.
FEWEST, UNLIMITED = "fewest", "unlimited"
_ONE_NODE = Gated(r"(?:node|machine|server|box|host|instance|tray)\s?$")
_GROUP_AFTER = Gated(r"\s?(?:cluster|setup|deployment|pool|fleet|farm|configuration|config)(?![a-z])")
_SEVERAL = Gated(r"(?:s|boxes)\s?$|[台机器点]$")
# "Three replicas of it, one per server".
_OF_REPLICAS = Gated(r"(?<![a-z])(?:replicas?|copies|instances?|engines?)(?![a-z])[^.;:\n]{0,50},\s?$")
# No server holds so many cards: the figure is a part of a card's name.
_LEAST_OF_A_NAME = 1000


def read_hardware(page: Page, claims: Claims, sizes: NodeSizes) -> None:
    """Read counts of nodes and accelerators off the page.

    `sizes` are those of the node or rack that was named; the usual size only decides how an ambiguous count is read.
    """
    _read_open(page, claims)
    available = _read_available(page)
    tokens = Tokens(page)
    counts = _read_shapes(tokens, claims, sizes)
    if all(count.field == "gpus" and count.number == 1 for count in counts) and not claims.has("gpus_per_node"):
        counts += [Count("gpus", 1.0, page.take(*match.span("one"))) for match in list(page.search(lex.JUST_ONE))[:1]]
    if not counts and claims.has("accelerator") and (owned := lex.OWNED.search(page.text)) is not None:
        counts.append(Count("gpus", read_number(owned["n"]) or 0.0, page.take(*owned.span())))
    if not counts and (sizes.box or not claims.has("gpus_per_node")):
        counts += _read_of_them(tokens, sizes) or _read_one_card(page, claims)
    of_node = claims.words.get("gpus_per_node", "")
    is_most = lex.MOST_BEFORE.search(page.original.partition(of_node)[0]) if of_node else None
    if not counts and is_most is None and not claims.has("gpus_open") and lex.IN_ONE_NODE.search(of_node):
        counts.append(Count("nodes", 1, of_node))
    if claims.has("gpus_open"):  # "any number of cards; a server holds 8": the article counts nothing
        counts = [count for count in counts if count.field != "nodes" or count.number != 1 or "1" in count.words]
    for count in [count for count in counts if claims.is_past(count.words)]:
        counts.remove(count)
        claims.reading(f"{count.words!r} tells what held once, and was not read as what there is")
    counts = without_bounds(page.original, claims, counts)
    counts = _or_withdrawn_count(claims, agreed(page, claims, without_the_busy(claims, counts, available)))
    counts = _with_further(page, claims, counts)
    for field in ("nodes", "gpus"):
        claim_counts(claims, [count for count in counts if count.field == field])
    _read_most(page, claims)


def _read_open(page: Page, claims: Claims) -> None:
    """Read an open number of GPUs, and words about groups, which count no hardware."""
    for match in page.search(lex.OPEN):
        words = page.take(*match.span())
        claims.claim("gpus_open", True, words)
        claims.claim(FEWEST if lex.FEWEST_WORDS.search(words) else UNLIMITED, True, words)
    for match in page.search(lex.SPREAD):
        claims.leave_unread(f"{page.take(*match.span())!r}: how many nodes a group may span is no constraint here")
    for match in page.search(lex.SPLIT) if claims.has("accelerator") else ():
        words = page.take(*match.span())
        claims.claim("disaggregated", True, words)
        claims.leave_unread(f"{words!r}: read as separate prefill and decode; how many GPUs each gets is searched for")
    asked = next(iter(page.search(lex.NODES_ASKED)), None)
    if asked is not None:
        claims.claim("gpus_open", True, words := page.take(*asked.span()))
        claims.claim(FEWEST, True, words)
    for match in page.search(lex.OF_A_GROUP):
        claims.leave_unread(f"{page.take(*match.span())!r} is said of a group, not of what there is")
    for match in page.search(lex.ENOUGH_ASKED):
        if lex.COUNTED.search(page.text[: match.start()] + page.text[match.end() :]):
            claims.claim("gpus_open", True, words := page.take(*match.span()))
            claims.claim(FEWEST, True, words)
            claims.reading(f"{words!r} asks for as few as do, of those that there are")


def _read_shapes(tokens: Tokens, claims: Claims, sizes: NodeSizes) -> list[Count]:
    """Every shape of a count, the surest first; sizes of nodes are claimed on the way."""
    counts = _read_shares(tokens, claims, sizes)
    for match in tokens.matches(lex.SOME_OF):  # "2 of our 4 nodes"
        counts.append(tokens.count(match, "nodes" if match["node"] else "gpus", "n"))
    for match in tokens.matches(lex.TIMES_NODES):
        counts += _read_times_nodes(tokens, claims, match)
    for match in tokens.matches(lex.GRID):
        per_node = tokens.number(match, "p", "p2")
        if per_node is not None and per_node >= _LEAST_OF_A_NAME:  # "2x 7900 XTX"
            raise claims.refusal(
                f"unknown accelerator {tokens.words(match)[-16:].strip()!r}; name one by its full name"
            )
        counts.append(tokens.count(match, "nodes", "n", "n2"))
        claims.claim("gpus_per_node", per_node, counts[-1].words)
    counts += _read_nodes_of(tokens, claims, sizes.usual or lex.USUAL_NODE)
    _read_per_node(tokens, claims, sizes)
    counts += _read_sized(tokens, claims)
    for match in tokens.matches(lex.PART_OF_RACK):
        counts.append(tokens.count(match, "nodes" if match["node"] else "gpus", "n"))
    counts += _read_boxes(tokens, claims, sizes)
    for match in tokens.matches(lex.CARD_NODES):
        counts += _read_card_nodes(tokens, claims, match)
    counts += _read_counts(tokens, claims, sizes)
    if not counts and sizes.rack is not None:  # a rack that nothing counts is one
        counts += [Count("gpus", sizes.rack, tokens.take(match)) for match in tokens.matches(lex.RACKS)[:1]]
    return counts


def _read_per_node(tokens: Tokens, claims: Claims, sizes: NodeSizes) -> None:
    """ "8 GPUs per node", "each server has 4"."""
    for match in tokens.matches(lex.PER_NODE):
        if tokens.text_after(match).startswith("个"):
            continue  # "每机一个副本"
        if sizes.box is not None and tokens.number(match, "p", "p2", "p3") != sizes.box and "g" not in match.group():
            continue  # "10 requests/s in all, so 5 per box"
        if _OF_REPLICAS.search(tokens.text_before(match)):
            continue  # "three replicas of it, one per server"
        number = tokens.number(match, "p", "p2", "p3")
        if grade("gpus_per_node", number, tokens.words(match)) is not Grade.THIN:  # "one every six seconds"
            claims.claim("gpus_per_node", number, tokens.take(match))


def _or_withdrawn_count(claims: Claims, counts: list[Count]) -> list[Count]:
    """`counts`, or the count of cards whose kind was corrected later, where no other is stated."""
    former, words = claims.drop(COUNT_TAKEN_BACK)
    if former is None or counts or claims.has("gpus_open"):
        return counts
    claims.reading(f"{words!r} still counts the cards, of the kind that was named after it")
    return [Count("gpus", former, words)]


def _with_further(page: Page, claims: Claims, counts: list[Count]) -> list[Count]:
    """The counts with the GPUs that words add to them, where all of them are planned for."""
    further = next(iter(page.search(lex.FURTHER)), None)
    together = next(iter(page.search(lex.ALL_OF_THEM)), None)
    gpus = [count for count in counts if count.field == "gpus"]
    if further is None or together is None or len({count.number for count in gpus}) != 1 or len(gpus) < len(counts):
        return counts
    more = read_number(next(filter(None, further.groups()))) or 0.0
    total = gpus[0].number + more
    if together["n"] and read_number(together["n"]) != total:
        return counts
    words = f"{gpus[0].words}, {page.take(*further.span())}"
    if together["n"]:
        page.take(*together.span("n"))
    claims.reading(f"{words!r} read as {total:g} GPUs in all")
    return [Count("gpus", total, words)]


def _read_most(page: Page, claims: Claims) -> None:
    """Read a number of GPUs as the most that may be used, where words say so.

    The number to use stays open; of counted nodes, the GPUs beyond the most are reserved: "at most 12" of 2 x 8.
    """
    values, words = claims.values, claims.words.get("gpus", "")
    start = page.original.find(words)
    most = lex.MOST_BEFORE.search(page.original, max(0, start - lex.BEFORE_MOST), max(0, start))
    if not words or most is None:
        return
    words = page.original[most.start() : start] + words
    if not any(claims.has(name) for name in ("nodes", "gpus_per_node", "gpus_open")):
        claims.claim("gpus_open", True, words)
    if not all(claims.has(name) for name in ("nodes", "gpus_per_node", "gpus")):
        return
    beyond = values["nodes"] * values["gpus_per_node"] - values["gpus"]
    if not beyond:
        return
    claims.drop("gpus")
    if beyond < 0:
        claims.reading(f"{words!r} are more than {values['nodes']} x {values['gpus_per_node']}, which are planned for")
        return
    claims.reading(f"{words!r} read as the most GPUs to use of {values['nodes']} x {values['gpus_per_node']}")
    add_constraints(claims, [ReservedConstraint(kind="reserved_gpus", value=int(beyond), words=words)])


def _read_times_nodes(tokens: Tokens, claims: Claims, match: re.Match[str]) -> list[Count]:
    """ "8 GPUs x 4 nodes", "8 x 4 nodes"; not "2 x 8 node" and "2 x 8 nodes", which begin with the nodes."""
    per_node, nodes = tokens.number(match, "p"), tokens.number(match, "n")
    if per_node is None or nodes is None or not _SEVERAL.search(tokens.tokens[match.start("unit")].words):
        return []
    if not match["noun"] and per_node < nodes:
        return []
    count = tokens.count(match, "nodes", "n")
    claims.claim("gpus_per_node", per_node, count.words)
    return [count]


def _read_nodes_of(tokens: Tokens, claims: Claims, usual_size: int) -> list[Count]:
    """ "2 nodes of 8", "2 nodes with 8 H100 each", "8 nodes (64 GPUs)", "2台8卡", "双机16卡"."""
    counts: list[Count] = []
    for match in tokens.matches(lex.NODES_OF):
        nodes, number = tokens.number(match, "n"), tokens.number(match, "p")
        join = match["join"]
        says_each = "e" in join or bool(match["e"])
        if nodes is None or number is None or not (says_each or match["noun"] or join.strip(",(") == "o"):
            continue
        unit = tokens.tokens[match.start() + match.group().index("S")].words
        says_total = bool(match["t1"] or match["t2"]) or join[:1] in (",", "(") or unit == "机"
        words = tokens.words(match)
        if not says_each and not says_total and nodes > 1 and number > usual_size and number % nodes == 0:
            says_total = True
            claims.reading(f"{words!r} read as {number:g} GPUs in all, since a usual node holds {usual_size}")
        is_total = says_total and not says_each and nodes != 1 and number >= nodes
        count = tokens.count(match, "nodes", "n")
        counts.append(count)
        if is_total:
            counts.append(Count("gpus", number, words, count.phases))
        else:
            claims.claim("gpus_per_node", number, words)
    return counts


def _read_card_nodes(tokens: Tokens, claims: Claims, match: re.Match[str]) -> list[Count]:
    """ "two H100 servers" are nodes; "our eight A100 server" is one node of eight."""
    number, last = tokens.number(match, "n"), tokens.tokens[match.end() - 1]
    is_one = _ONE_NODE.search(last.words) and not _GROUP_AFTER.match(tokens.page.text, last.end)
    if number is None or number == 1 or "S" in match.group()[:-1] or "-S" in match.group() or not is_one:
        return [tokens.count(match, "nodes", "n")]
    claims.claim("gpus_per_node", number, tokens.take(match))
    return []


def _read_sized(tokens: Tokens, claims: Claims) -> list[Count]:
    """ "two 8-GPU nodes", "an 8xH100 server": a size bound to the node by a hyphen, an x or a unit."""
    counts: list[Count] = []
    for match in tokens.matches(lex.SIZED):
        both_numbers = match["n"] and match["card"]  # "one 8 H100 node"
        if not (match["bind"] or match["bind2"] or both_numbers) or not ("g" in match.group() or match["card"]):
            continue
        nodes, per_node = tokens.number(match, "n", "n2"), tokens.number(match, "p")
        words = tokens.take(match)
        claims.claim("gpus_per_node", per_node, words)
        if nodes is not None:
            counts.append(Count("nodes", nodes, words))
    return counts


def _read_boxes(tokens: Tokens, claims: Claims, sizes: NodeSizes) -> list[Count]:
    """Nodes and racks that are named as a whole: "two DGX H100", "a GB200 NVL72 rack"."""
    counts: list[Count] = []
    for match in tokens.matches(lex.BOXES):
        # "two of them are broken"
        is_open = match["n3"] is not None and not ENDS_FIGURE.match(tokens.text_after(match))
        nodes = None if is_open else tokens.number(match, "n", "n2", "n3")
        words = tokens.words(match) if is_open else tokens.take(match)
        if nodes is not None:
            counts.append(Count("nodes", nodes, words))
        if sizes.box is not None and not claims.has("gpus_per_node"):
            claims.claim("gpus_per_node", sizes.box, words)
    for match in tokens.matches(lex.RACKS):
        racks = tokens.number(match, "n")
        if sizes.rack is not None and racks is not None:
            counts.append(Count("gpus", racks * sizes.rack, tokens.take(match)))
    return counts


def _read_counts(tokens: Tokens, claims: Claims, sizes: NodeSizes) -> list[Count]:
    """Bare counts of GPUs and nodes."""
    counts: list[Count] = []
    for match in tokens.matches(lex.COUNTS):
        if match["one"] and (tokens.word_after(match).isalnum() or lex.PRICED.match(tokens.text_after(match))):
            continue  # "an H100 cluster", "an H100 is $2.20 an hour": not one H100
        if lex.IS_LOST.match(tokens.text_after(match)):
            continue  # "if one card fails"
        if lex.EACH_REPLICA.search(tokens.text_before(match)):
            words = tokens.take(match)
            claims.reading(f"{words!r} read as the GPUs of each replica")
            continue
        before = tokens.text_before(match)
        in_node = lex.OF_MACHINE.search(before) or (claims.has("gpus_open") and lex.IN_A_NODE.search(before))
        of_machine = sizes.box is not None and set(match.group()) <= set("c:n")  # "inst=g5.48xlarge | count=2"
        field = "nodes" if "S" in match.group() or of_machine else "gpus"
        count = tokens.count(match, field, *match.re.groupindex)
        if in_node and count.field == "gpus":  # "机型: 8卡 H800", "servers with 8 H200, how many do we need?"
            claims.claim("gpus_per_node", count.number, count.words)
            continue
        counts.append(count)
        size = lex.system_size(count.words) if count.field == "nodes" else None
        if size is not None and not claims.has("gpus_per_node"):
            claims.claim("gpus_per_node", size, count.words)
    return counts


def _read_available(page: Page) -> Count | None:
    """ "only 8 are available": the part of the hardware to plan with."""
    for pattern, taken in ((lex.OF_THOSE, 0), (lex.OUR_PART, "n")):
        if (part := pattern.search(page.text)) is not None:
            field = "nodes" if part["node"] else "gpus"
            return Count(field, read_number(part["n"]) or 0.0, page.take(*part.span(taken)))
    numbered = lex.OUR_NUMBERED.search(page.text)
    if numbered is not None and (count := how_many(numbered["list"])):
        return Count("gpus", count, page.take(*numbered.span()))
    match = lex.AVAILABLE.search(page.text)
    number = None if match is None else read_number(next(filter(None, match.groups())))
    if match is None or number is None or lex.PHASE.search(page.clause_text(*match.span())):
        return None
    if match.group()[:4].lower() in ("use ", "take") and not lex.TOLD_TO.search(page.text, 0, match.start()):
        return None  # "students use two of them"
    return Count("gpus", number, page.take(*match.span()))


def _read_shares(tokens: Tokens, claims: Claims, sizes: NodeSizes) -> list[Count]:
    """ "half of a DGX H100", "half of our 16 H100s", where the words (no percentage) make a whole number."""
    counts: list[Count] = []
    for match in tokens.matches(lex.SHARE_OF):
        token = tokens.tokens[match.start("q")]
        share = next(
            (q for q in find_quantities(tokens.page.text) if (q.start, q.end) == (token.start, token.end)), None
        )
        named = 1.0 if match["n"] is None else tokens.number(match, "n")
        whole = (named or 1.0) * ((sizes.box or 0) if match["what"] == "B" else 1 if match["n"] else 0)
        if share is None or share.unit != "share" or any(c.isdigit() for c in share.words):
            continue
        part = share.value * whole
        if part >= 1 and part == int(part):
            words = tokens.words(match)
            counts.append(Count("gpus", part, tokens.take(match)))
            claims.reading(f"{words!r} read as {part:g} GPUs")
    return counts


def _read_of_them(tokens: Tokens, sizes: NodeSizes) -> list[Count]:
    for match in tokens.matches(lex.OF_THEM):
        if lex.OWNING.search(tokens.page.text[: tokens.tokens[match.start()].start][-24:]):
            return [tokens.count(match, "nodes" if sizes.box else "gpus", "n")]
    return []


def _read_one_card(page: Page, claims: Claims) -> list[Count]:
    """ "my 4090", where nothing counts and the number was not left open."""
    if any(claims.has(name) for name in ("gpus", "nodes", "gpus_open")):
        return []
    for match in page.search(lex.ONE_CARD):
        card = page.original[slice(*match.span("card" if match["card"] else "card2"))]
        if singular(card.rstrip()) != card.rstrip():
            continue
        words = page.take(*match.span())
        claims.reading(f"{words!r} read as one card")
        return [Count("gpus", 1.0, words)]
    return []
