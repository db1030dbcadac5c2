"""The figures of a statement: which field each one states, by the words nearest to it, then its key, then its headings.

A figure that no word explains stays on the page as unread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..patterns.gated import Gated
from ..patterns.page import BOX, CARD, MODEL, RACK, Page
from ..patterns.quantities import Quantity, Unit, find_quantities
from .facts import Fact, statement_words
from .fields import FieldRule, field_rules
from .key_words import key_words
from .qualifiers import is_word, stated_unit
from .statements import Statement

_CLAUSE_BREAK = Gated(
    r"[;|·•.!?。\n]|,(?!\d{3}(?!\d))|\s(?:and|plus|while|but)\s|[，、；]|(?<=[^\d\s])\s?/\s?(?=\d)|和|以及|并且",
    flags=0,
)
_BRACKET = re.compile(r"[(\[][^()\[\]]{1,300}[)\]]")
_MARK = re.compile("[\ue000-\ue00f]+")
_HYPHEN = re.compile(r"(?<=[a-z])[-_](?=[a-z#])|_")
# Words that name no quantity: a figure with only these beside it belongs to the key above.
_GENERIC = Gated(
    r"#|<[^<>]{1,14}>|\b(?:p50|p90|p95|p99|median|mean|average|avg|typical|typ|max|maximum|min|minimum|"
    r"limit|target|value|amount|goal|bound"
    r"|threshold|total|count|number|num|n|of|per|card|gpu|each|at|most|least|under|below|up|to|within|"
    r"than|less|more|over|about|around|ca"
    r"|typically|usually|normally|mostly|commonly|the|a|is|are|be|for|upper|lower|peak|dense|size|ms|s|"
    r"sec|seconds?|gb|gib|mb|tb|gbps|gb/s|tb/s|percent|pct|tflops|tokens?|unit|default|bandwidth|bw|"
    r"speed|rate|gbits?|bits?|bidirectional|unidirectional|directions?|both|way|links?|length|len|lengths|type"
    r"|bf16|fp16|fp8|int8|fp4|int4|fp32|required|expected|overall|range|from|strict|hard|soft|slo|sla)\b"
    r"|[:,()\[\]<>=≤≥~%\-\s/|*.+]|每卡|单卡|数量|带宽|速率|不超过|小于|低于|以内|以下|最大|最小|最长|最短|最多|平均|典型|通常|一般|总|约|上限|目标|为"
)
# The marks of other figures in the clause; no word of the table matches inside one.
_MARKS: dict[Unit, str] = {"GB/s": "<gbs>", "TFLOPS": "<tf>"}
_MARK_OF_OTHERS = "<x>"
_NEIGHBOURS = 4  # figures on either side that may explain one
_MAX_FIGURES = 80  # of a statement; more are left unread


class Figure(Struct, frozen=True):
    """A quantity of a statement with the texts in which its meaning is looked for, the nearest first."""

    quantity: Quantity
    levels: tuple[str, ...]


def plain_words(text: str) -> str:
    """Words as the table of fields has them: lower case, marks named, hyphens and underscores as spaces."""
    return _HYPHEN.sub(" ", text.lower())


def figures_of(statement: Statement, page: Page, start: int = 0) -> tuple[Figure, ...]:
    """Every quantity that is still on the page from `start` on, with the texts that may explain it."""
    figures: list[Figure] = []
    previous: Unit | None = None
    in_bytes = stated_unit(statement) == "byte"
    for clause_start, clause_end in ((start + s, start + e) for s, e in _clauses(page.text[start:])):
        text = page.text[clause_start:clause_end]
        quantities = find_quantities(text)
        for i, quantity in enumerate(quantities):
            if is_word(quantity) or len(figures) >= _MAX_FIGURES:
                continue
            levels = _levels(statement, text, quantities, i, previous if quantity.unit == "share" else None)
            previous = quantity.unit
            known = replace(quantity, unit="bytes", spelled="bytes") if in_bytes and previous == "count" else quantity
            moved = replace(known, start=quantity.start + clause_start, end=quantity.end + clause_start)
            figures.append(Figure(moved, levels))
    return tuple(figures)


def _clauses(text: str) -> list[tuple[int, int]]:
    """Spans between commas, conjunctions and ends of sentences; a break inside a quantity is none.

    A bracket with a figure of its own is a clause ("8k tokens (32k at most)"), one without belongs to the figure
    before it ("320 TFLOPS (BF16)").
    """
    inside = [(q.start, q.end) for q in find_quantities(text)]
    breaks = [
        m.span() for m in _CLAUSE_BREAK.finditer(text) if m.group() != "." or text[m.end() : m.end() + 1].isspace()
    ]
    for bracket in _BRACKET.finditer(text):
        if any(bracket.start() < s < bracket.end() for s, _ in inside):
            breaks += [(bracket.start(), bracket.start() + 1), (bracket.end() - 1, bracket.end())]
    spans: list[tuple[int, int]] = []
    start = 0
    for left, right in sorted(breaks):
        if left < start or any(s < right and left < e for s, e in inside):
            continue
        spans.append((start, left))
        start = right
    spans.append((start, len(text)))
    return [(s, e) for s, e in spans if text[s:e].strip()]


def _levels(
    statement: Statement, text: str, quantities: Sequence[Quantity], nth: int, previous: Unit | None
) -> tuple[str, ...]:
    """The texts to look in: the words beside the nth figure, its clause, then with the key and each heading above.

    `previous` is the unit of the figure in the clause before, where a figure may speak of that one ("1.6 TB/s, 75%
    utilisation").
    """
    first, last = max(0, nth - _NEIGHBOURS), min(len(quantities), nth + _NEIGHBOURS + 1)
    parts: list[str] = []
    position = quantities[first - 1].end if first else 0
    for i in range(first, last):
        quantity = quantities[i]
        parts.append(plain_words(_named_marks(text[position : quantity.start])))
        parts.append(f" # {quantity.spelled} " if i == nth else f" {_MARKS.get(quantity.unit, _MARK_OF_OTHERS)} ")
        position = quantity.end
    end = quantities[last].start if last < len(quantities) else len(text)
    parts.append(plain_words(_named_marks(text[position:end])))
    at = 2 * (nth - first) + 1
    number_first = not text[: quantities[0].start].strip(" (:=<>≤≥~")
    near = parts[at : at + 2] if number_first else parts[max(0, at - 1) : at + (2 if nth == len(quantities) - 1 else 1)]
    levels = ["".join(near), "".join(parts)] if len(quantities) > 1 else ["".join(parts)]
    if previous is not None:
        levels.append(f"{_MARKS.get(previous, _MARK_OF_OTHERS)} , {levels[-1]}")
    levels = [re.sub(r"\s+", " ", level).strip().lower() for level in levels]
    for part in reversed(statement.path):
        levels.append(f"{plain_words(key_words(part))} : {levels[-1]}")
    return tuple(levels)


def _named_marks(text: str) -> str:
    return _MARK.sub(
        lambda m: {MODEL: " llm ", CARD: " gpu ", BOX: " server ", RACK: " server "}.get(m.group()[0], " "), text
    )


def match_figure(statement: Statement, figure: Figure, before: FieldRule | None = None) -> FieldRule | None:
    """The rule whose words stand nearest to the figure, on the nearest level that has any.

    A figure beside which nothing is named belongs to what the figure before it was about ("512 to 8192, typically
    4096"), else to the headings.
    """
    inner = len(figure.levels) - len(statement.path)
    inherits = before is not None and figure.quantity.unit in before.units and _is_generic(figure.levels[inner - 1])
    for i, level in enumerate(figure.levels):
        above = i - inner + (0 if statement.keyed else 1)  # how many headings above the statement's own key
        if above > 0 and inherits:
            return before
        if above > 0 and not _is_generic(figure.levels[i - 1]):
            return None
        guarded = figure.levels[max(i, min(inner, len(figure.levels) - 1))] if statement.keyed else level
        if (best := _nearest(level, guarded, figure)) is not None:
            return best
    return before if inherits else None


def _is_generic(words: str) -> bool:
    """Whether words name no quantity of their own."""
    return not _GENERIC.sub("", words).strip()


def _nearest(level: str, guarded: str, figure: Figure) -> FieldRule | None:
    at = level.find("#")
    best: tuple[int, int] | None = None
    chosen: FieldRule | None = None
    for order, rule in enumerate(field_rules()):
        if figure.quantity.unit not in rule.units:
            continue
        if rule.unless is not None and rule.unless.search(guarded):
            continue
        if rule.scope is not None and not rule.scope.search(figure.levels[-1]):
            continue
        for match in rule.words.finditer(level):
            gap = max(match.start() - at, at + 1 - match.end(), 0)
            if best is None or (gap, order) < best:
                best, chosen = (gap, order), rule
    return chosen


_BARE = re.compile(r"# \S+")
_COUNTS_CARDS = re.compile(rf"\s?[x*]?\s?{CARD}")


def _bare_fields(figures: Sequence[Figure], text: str) -> dict[int, str]:
    """In a line that counts cards, the fields of its only size and only rate that no word explains, by their start."""
    if CARD not in text:
        return {}
    fields: dict[int, str] = {}
    for unit, field in (("bytes", "card.memory_bytes"), ("GB/s", "card.memory_bandwidth")):
        of_unit = [figure for figure in figures if figure.quantity.unit == unit and _BARE.fullmatch(figure.levels[0])]
        of_unit = [figure for figure in of_unit if figure.quantity.spelled[1:2] != "b"]  # bits are a network's
        if len(of_unit) == 1:
            fields[of_unit[0].quantity.start] = field
    return fields


def read_figures(statement: Statement, page: Page, start: int = 0) -> tuple[Fact, ...]:
    """The facts on cards and models that the figures from `start` on state; those figures are taken off the page."""
    facts: list[Fact] = []
    before: FieldRule | None = None
    figures = figures_of(statement, page, start)
    bare = _bare_fields(figures, page.text)
    for figure in figures:
        quantity = figure.quantity
        if _COUNTS_CARDS.match(page.text, quantity.end):
            continue
        rule = before = match_figure(statement, figure, before)
        field = rule.field if rule is not None else bare.get(quantity.start)
        if field is None:
            continue
        facts.append(
            Fact(
                field=field,
                value=quantity.value,
                words=statement_words(statement),
                where=statement.where,
                context=figure.levels[-1],
                near=figure.levels[0],
                quantity=quantity,
                # "Mind the 56 heads: they do not divide by 16" is a sentence.
                keyed=statement.keyed and not any(sign.isdigit() for sign in statement.path[-1]),
            )
        )
        page.take(quantity.start, quantity.end)
    return tuple(facts)
