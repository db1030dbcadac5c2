"""How many accelerators, on how many nodes: every way of saying "2x8 H200" in English and Chinese.

The text is first turned into a string of one-letter symbols (`n` a number, `S` a server, `g` the word GPU, `C` the name
of an accelerator, ...); a dozen short shapes over that string say what the numbers count. It reads counts and open
counts ("no limit on cards") and refuses to complete them: what was not said stays unsaid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .claims import Claims
from .names import NodeSizes
from .page import BOX, CARD, RACK, Page
from .quantities import ENGLISH_NUMBER, find_quantities, read_number

_NODE_NOUN = r"(?:node|machine|server|box|host|instance)"
# Symbols in the order in which they are tried; words that carry no meaning here are skipped ("").
_LEXICON: tuple[tuple[str, str], ...] = (
    ("C", rf"{CARD}+(?:'?s(?![a-z]))?"),
    ("B", rf"{BOX}+(?:'?s(?![a-z]))?"),
    ("R", rf"{RACK}+(?:'?s(?![a-z]))?(?:\s?racks?(?![a-z])|\s?机柜)?"),
    (
        "",
        r"\s+|(?:type|count|nvidia|amd|intel|google|brand[\s\-]new|available|spare|new|units?|pieces?|pcs|equal|identical)(?![a-z])|(?:型号|数(?!量))(?=\s?[::=\d为])",
    ),
    (
        "n",
        r"(?:(?<![^\s(=:,])-)?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,6})?(?:k(?=\s?(?:gpus?|cards?|[张块卡])))?(?![a-wyz0-9])",
    ),
    (
        "n",
        rf"{ENGLISH_NUMBER}(?![a-z])" + r"|[一二两三四五六七八九十百双单零]{1,5}(?=\s?[台张块颗片个卡机节])",
    ),
    (
        "e",
        r"(?:each|apiece|every)(?:\s(?:of\s(?:them|which)|one))?(?![a-z])(?!\s(?:user|request|token|stream|session|gpu|card))"
        rf"(?:\s{_NODE_NOUN}(?![a-z]))?|(?:per|in\s(?:each|every|one|a)|on\s(?:each|every))\s{_NODE_NOUN}(?![a-z])|"
        rf"/\s?{_NODE_NOUN}(?![a-z])|(?:gpus?|cards?|accelerators?)[\s_\-]?per[\s_\-]?{_NODE_NOUN}(?![a-z])|"
        r"每\s?(?:台|个)?\s?(?:节点|机器|服务器|机)|每台|各",
    ),
    ("c", r"(?:quantity|qty)(?![a-z])|数量|总数|个数|张数|卡数"),
    ("p", r"(?:per|for\seach|/)\s?(?:replica|copy|stage|shard|group|engine)(?![a-z])|每个?副本"),
    ("t", r"(?:in\stotal|total|altogether|overall|in\sall)(?![a-z])|总共|一共|共计|合计|总计|共"),
    (
        "S",
        r"(?:compute\s|gpu\s|physical\s|bare[\s\-]metal\s)?(?:nodes?|machines?|servers?|box(?:es)?|hosts?|instances?|dgx|hgx)(?![a-z])|"
        r"台\s?(?:机器|服务器|主机|机|节点)?|个?\s?(?:节点|服务器|机器)|机(?![架柜器])",
    ),
    (
        "g",
        r"(?:gpus?|cards?|accelerators?|chips?|(?<=\d-)way)(?![a-z])|(?:张|块|颗|片)\s?(?:显卡|加速卡|卡|gpus?(?![a-z]))?|"
        r"个\s?(?:gpus?(?![a-z])|卡)|显卡|卡",
    ),
    ("x", r"[x*](?![a-z])|times(?![a-z])"),
    ("o", r"w/"),
    (
        "o",
        r"(?:of|with|having|has|have|containing|holding|holds?|contains?|carrying|which|at|full\sof|equipped|using)(?![a-z])"
        r"|的|配备|配有|配|带有|带|有|装|上|放|分别|是",
    ),
    ("a", r"an?(?![a-z])"),
    ("d", r"(?:the|our|my|your|their|this|that|these|those)(?![a-z])"),
    ("i", r"(?:for|in|on|to|and|or|is|are|can|please|by|from|over|across)(?![a-z])"),
    ("(", r"[(\[]"),
    (")", r"[)\]]"),
    (",", r"[,;]"),
    ("-", r"-"),
    (":", r"[:=]"),
    (".", r"[A-Za-z]+|.|\n"),
)
_LEXER = re.compile(
    "|".join(f"(?P<t{i}>{pattern})" for i, (_, pattern) in enumerate(_LEXICON)), re.IGNORECASE | re.DOTALL
)
_DGX_SIZE = 8  # a DGX or HGX system of any generation with eight-way baseboards
_HARDWARE_UNITS = frozenset({"count", "gpus", "nodes"})
_GPU_WORDS = r"(?:gpus?|cards?|accelerators?|chips?|devices|hardware|[\ue001\ue004]+'?s?)"
_OPEN = re.compile(
    rf"(?:no|without\s(?:a|any)|not\sany)\s(?:hard\s)?(?:limits?|caps?|constraints?|restrictions?)\s(?:on|to|for)\s(?:the\s)?"
    rf"(?:number\sof\s|how\smany\s|count\sof\s|available\s)?{_GPU_WORDS}(?:\scount)?|unlimited\s(?:number\sof\s)?{_GPU_WORDS}|"
    rf"as\smany\s(?:{_GPU_WORDS}\s)?as\s(?:needed|necessary|required|you\s(?:need|want|like)|it\stakes)|any\snumber\sof\s{_GPU_WORDS}|"
    rf"how\smany\s{_GPU_WORDS}|{_GPU_WORDS}(?:\scount)?\s(?:is\s|are\s)?(?:unlimited|not\slimited|unconstrained|unbounded)|"
    rf"(?:fewest|minimum|minimal|min|smallest|least|lowest)(?:\snumber\sof|\samount\sof|\scount\sof)?\s(?:possible\s)?{_GPU_WORDS}(?:\scount)?|"
    rf"as\sfew\s{_GPU_WORDS}(?:\sas\spossible)?|"
    r"(?:卡数?|显卡|gpus?|加速卡|机器|服务器|[\ue001]+)\s?(?:的?数量?|个数)?\s?(?:不限制?|没有限制|无限制?|不受限制?|任意|随意|不做限制)|"
    r"不限(?:制|定)?\s?(?:卡|显卡|gpu|机器)(?:的?数量?)?|(?:需要|至少要|要|用)(?:多少|几)(?:张|块|台|个)?\s?(?:卡|gpu|机器|显卡|[\ue001]+)?|"
    r"(?:最少|至少需要|最少需要|最少要)(?:多少|几)(?:张|块)?\s?(?:卡|gpu|显卡|[\ue001]+)?|尽(?:量|可能)少的?\s?(?:卡|gpu|显卡|[\ue001]+)|"
    r"最少的?\s?(?:卡|gpu|显卡|[\ue001]+)|(?:卡|gpu)\s?(?:数量?)?\s?(?:越少越好|尽量少|最少)",
    re.IGNORECASE,
)
_BOX_WORD = re.compile(r"[dh]gx", re.IGNORECASE)
_PHASE = re.compile(r"prefill|decod|预填充|解码", re.IGNORECASE)

# Shapes over the symbols. Groups: n nodes, p accelerators per node, g accelerators in all.
_SOME_OF = re.compile(r"(?P<n>n)[xg]?od?n[-x]?C?-?(?:g|(?P<node>S)|(?<=C))")
_GRID = re.compile(r"(?P<n>n)S?x\(?(?P<p>n)(?!q|xn)x?-?g?o?[CB]?g?S?\)?|(?P<p2>n)x?-?g?o?Cx(?P<n2>n)S")
_NODES_OF = re.compile(
    r"(?P<n>[na])-?[CB]?-?S[CB]?(?P<join>[,(:]*[eoad]*)(?P<t1>t?)o?(?P<p>n)-?x?(?P<noun>g?o?[CB]?g?)(?P<e>e?)(?P<t2>t?)"
)
_PER_NODE = re.compile(r"(?P<p>n)-?x?g?o?[CB]?g?e|e:?o{0,2}(?P<p2>n)-?x?g?o?[CB]?g?")
_SIZED = re.compile(r"(?P<n>[na]?)-?g?C?(?P<p>n)(?P<bind>[-x]?g?[-x]?)(?P<card>C?)(?P<bind2>-?g?)S")
_BOXES = re.compile(r"(?P<n>[na]?)S?g?x?o?B(?:x(?P<n2>n))?S?(?!g)")
_RACKS = re.compile(r"(?P<n>[na]?)x?R(?!g)")
_CARD_NODES = re.compile(r"(?P<n>[nad])-?S?x?o?C-?S")
# A count of GPUs, or of nodes where the shape holds an S.
_COUNTS = re.compile(
    r"(?P<g>n)[-xogd]{0,4}[CBR]-?g?|C[gx]?x(?P<g2>n)g?|C\(x?(?P<g3>n)g?(?:o\.?)?\)|C[:,]?(?P<g4>n)-?g|C:(?P<g5>n)(?!q)|"
    r"(?P<one>a)C(?![.S(])g?|(?P<g6>n)-?g(?!p)|(?P<g7>n)-?S|g:(?P<g8>n)(?![xgSq.])|S:(?P<g9>n)(?![xgSq.])|[Sg]?c:?(?P<g10>n)(?![xgSq.])"
)


@dataclass(frozen=True, slots=True)
class _Token:
    symbol: str
    words: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Count:
    """A count of GPUs or nodes, with the phases that its clause names."""

    field: str
    number: float
    words: str
    phases: frozenset[str]


class _Tokens:
    """The page as symbols; what a shape takes is struck out so that the next shape does not see it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.tokens = _tokenise(page.text)
        self.symbols = "".join(token.symbol for token in self.tokens)

    def matches(self, shape: re.Pattern[str]) -> list[re.Match[str]]:
        return list(shape.finditer(self.symbols))

    def number(self, match: re.Match[str], *names: str) -> float | None:
        """The value of the first of the named groups that took part; "a" and "the" are one."""
        for name in names:
            if match[name]:
                token = self.tokens[match.start(name)]
                return 1.0 if token.symbol in "ad" else read_number(token.words)
        return None

    def words(self, match: re.Match[str]) -> str:
        return self.page.original[self.tokens[match.start()].start : self.tokens[match.end() - 1].end].strip()

    def count(self, match: re.Match[str], field: str, *names: str) -> _Count:
        """The number of a shape as a count of `field`; the shape is taken."""
        number = self.number(match, *names)
        if number is None:
            raise AssertionError("every shape of a count holds a number")
        start, end = self.tokens[match.start()].start, self.tokens[match.end() - 1].end
        phases = _PHASE.findall(self.page.clause_text(start, end))
        return _Count(field, number, self.take(match), frozenset(phase.lower()[:2] for phase in phases))

    def take(self, match: re.Match[str]) -> str:
        words = self.page.take(self.tokens[match.start()].start, self.tokens[match.end() - 1].end)
        self.symbols = self.symbols[: match.start()] + "#" * len(match.group()) + self.symbols[match.end() :]
        return words


def read_hardware(page: Page, claims: Claims, sizes: NodeSizes) -> None:
    """Read counts of nodes and accelerators off the page.

    `sizes` are those of the node or rack that was named; the usual size only decides how an ambiguous count is read.
    """
    for match in page.search(_OPEN):
        claims.claim("gpus_open", True, page.take(*match.span()))
    tokens = _Tokens(page)
    counts: list[_Count] = []
    for match in tokens.matches(_SOME_OF):  # "2 of our 4 nodes"
        counts.append(tokens.count(match, "nodes" if match["node"] else "gpus", "n"))
    for match in tokens.matches(_GRID):
        per_node = tokens.number(match, "p", "p2")
        counts.append(tokens.count(match, "nodes", "n", "n2"))
        claims.claim("gpus_per_node", per_node, counts[-1].words)
    counts += _read_nodes_of(tokens, claims, sizes.usual or _DGX_SIZE)
    for match in tokens.matches(_PER_NODE):
        claims.claim("gpus_per_node", tokens.number(match, "p", "p2"), tokens.take(match))
    _read_sized(tokens, claims)
    _read_boxes(tokens, claims, sizes)
    for match in tokens.matches(_CARD_NODES):
        counts.append(tokens.count(match, "nodes", "n"))
    counts += _read_counts(tokens, claims)
    for field in ("nodes", "gpus"):
        _claim_counts(claims, [count for count in counts if count.field == field])


def _tokenise(text: str) -> list[_Token]:
    others = {
        q.start: q.end
        for q in find_quantities(text)
        if q.unit not in _HARDWARE_UNITS or (q.unit == "count" and not q.words[-1:].isdigit() and q.words[:1].isdigit())
    }
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        if position in others:
            tokens.append(_Token("q", "", position, others[position]))
            position = others[position]
            continue
        match = _LEXER.match(text, position)
        if match is None or match.lastgroup is None:
            raise AssertionError("the last symbol matches any character")
        symbol = _LEXICON[int(match.lastgroup[1:])][0]
        if symbol:
            tokens.append(_Token(symbol, match.group(), position, match.end()))
        position = match.end()
    return tokens


def _read_nodes_of(tokens: _Tokens, claims: Claims, usual_size: int) -> list[_Count]:
    """ "2 nodes of 8", "2 nodes with 8 H100 each", "8 nodes (64 GPUs)", "2台8卡", "双机16卡"."""
    counts: list[_Count] = []
    for match in tokens.matches(_NODES_OF):
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
        is_total = says_total and not says_each and nodes != 1
        count = tokens.count(match, "nodes", "n")
        counts.append(count)
        if is_total:
            counts.append(_Count("gpus", number, words, count.phases))
        else:
            claims.claim("gpus_per_node", number, words)
    return counts


def _read_sized(tokens: _Tokens, claims: Claims) -> None:
    """ "two 8-GPU nodes", "an 8xH100 server": a size bound to the node by a hyphen, an x or a unit."""
    for match in tokens.matches(_SIZED):
        both_numbers = match["n"] and match["card"]  # "one 8 H100 node"
        if not (match["bind"] or match["bind2"] or both_numbers) or not ("g" in match.group() or match["card"]):
            continue
        nodes, per_node = tokens.number(match, "n"), tokens.number(match, "p")
        words = tokens.take(match)
        claims.claim("gpus_per_node", per_node, words)
        if nodes is not None:
            claims.claim("nodes", nodes, words)


def _read_boxes(tokens: _Tokens, claims: Claims, sizes: NodeSizes) -> None:
    """Nodes and racks that are named as a whole: "two DGX H100", "a GB200 NVL72 rack"."""
    for match in tokens.matches(_BOXES):
        nodes = tokens.number(match, "n", "n2")
        words = tokens.take(match)
        if nodes is not None:
            claims.claim("nodes", nodes, words)
        if sizes.box is not None and not claims.has("gpus_per_node"):
            claims.claim("gpus_per_node", sizes.box, words)
    for match in tokens.matches(_RACKS):
        racks = tokens.number(match, "n")
        if sizes.rack is not None and (racks is not None or "n" not in tokens.symbols):
            claims.claim("gpus", (racks or 1) * sizes.rack, tokens.take(match))


def _read_counts(tokens: _Tokens, claims: Claims) -> list[_Count]:
    """Bare counts of GPUs and nodes."""
    counts: list[_Count] = []
    for match in tokens.matches(_COUNTS):
        count = tokens.count(match, "nodes" if "S" in match.group() else "gpus", *_COUNTS.groupindex)
        counts.append(count)
        if count.field == "nodes" and _BOX_WORD.search(count.words) and not claims.has("gpus_per_node"):
            claims.claim("gpus_per_node", _DGX_SIZE, count.words)
    return counts


def _claim_counts(claims: Claims, counts: list[_Count]) -> None:
    """Claim the counts of one field; a count for prefill and one for decode are two parts of a whole."""
    parts = [count for count in counts if len(count.phases) == 1]
    if len(parts) == 2 and parts[0].phases != parts[1].phases:
        words = " + ".join(part.words for part in parts)
        claims.claim(parts[0].field, sum(part.number for part in parts), words)
        claims.claim("disaggregated", True, words)
        claims.reading(f"{words!r} read as hardware of their own for prefill and for decode")
        counts = [count for count in counts if count not in parts]
    for count in counts:
        claims.claim(count.field, count.number, count.words)
