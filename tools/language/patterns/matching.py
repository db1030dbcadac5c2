"""The cheapest one-to-one pairing of roles (words) and values in a text.

"4k input 1k output" and "input 4k output 1k" differ only in the order, and no fixed phrase tells them apart in general.
Roles and values are laid out as they stand in the text; neighbours may pair at a cost that grows with the words and
the clause ends between them, and the pairing with the least total cost wins. It knows nothing of units: the caller says
which value a role accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from .gated import Gated


class Spanned(Protocol):
    """Anything with a place in the text."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


Value = TypeVar("Value", bound=Spanned)


class Role(Struct, frozen=True):
    """A word that says what a value is for; `cost` makes a vague word further away than a telling one.

    `follows`: it stands right behind its value ("2k in"), and seldom belongs to a value behind itself.
    """

    name: str
    start: int
    end: int
    cost: float = 0.0
    follows: bool = False


class Pairing(Struct, Generic[Value], frozen=True):
    """A value with the role that it plays."""

    role: Role
    value: Value

    @property
    def span(self) -> tuple[int, int]:
        """From the first character of both to the end of the last."""
        return min(self.role.start, self.value.start), max(self.role.end, self.value.end)


_BEHIND = 2.0  # the cost of pairing a word that stands right behind one value with the next value
_LEFT_OUT = 6.0  # the cost of a value without a role: pairs that cost more are not made
_FILLER = Gated(
    r"\b(?:of|is|are|be|being|at|most|least|under|below|less|than|within|up|to|no|not|more|over|above|exceeds?|exceeding|"
    r"about|around|approx(?:imately)?|roughly|circa|maybe|perhaps|probably|some|say|the|an?|with|for|each|per|every|must|should|shall|will|would|call(?=\sit)|"
    r"can|may|stays?|staying|keep|kept|keeping|target|targets|limit|limits|limited|max|maximum|min|minimum|lengths?|sizes?|"
    r"long|short|average|avg|mean|median|typical|typically|usually|tokens?|toks?|latency|time|budget|we|have|has|having|"
    r"need|needs|want|wants|expect|expected|i|it|that|s|on|in|all|by|or|sla|slo|set|equal|equals|only|just|number|count|"
    r"degree|level|rate|comes?|arrives?|ms|low|lower|as|worst|case|better|ideally|please|one|both|them|their|our|my|its|now|"
    r"precision|format|quantized|quantised|stored|hold|held)\b"
    r"|大约|大概|左右|不超过|小于|低于|控制|以内|之内|以下|长度|平均|最多|最大|至多|至少|不高于|不大于|不能|超过|限制|目标|上限|保证|保持|延迟|"
    r"时延|时间|不得|大于|不低于|达到|词元|[为是约在要须需应的每个到达数量度内设置希望求请均用]|[\s=:<>≤≥~\-'\"`*_|\[\]{}\ue003]",
)
_SENTENCE_BREAK = re.compile(r"[.!?。;]\s")
_HARD_BREAK = re.compile(r"[;.!?。\n]")
_SOFT_BREAK = Gated(r"[,()/]|\b(?:and|but|with|plus|then)\b|和|且|并|与|及")
# "a one-line reason (say 40 tokens)": a bracket that opens so holds the figure of the word before it.
_FIGURE_OF_IT = Gated(r"\((?=\s?(?:say|about|around|approx\w{0,8}|roughly|some|maybe|avg|average|mean|~|≈|大?约|平均))")
_CONJUNCTION = Gated(r"\s*(?:and|&|/|\+|=|和|与|及)\s*(?:the\s)?|")
_JOINER = Gated(r"\s*(?:and|&|/|,|\+|和|与|及|\|)\s*(?:the\s)?|\s*")


def pair(
    text: str, roles: Iterable[Role], values: Iterable[Value], accepts: Callable[[str, Value], bool]
) -> tuple[Pairing[Value], ...]:
    """Pair roles with values, but for pairs that cost more than leaving them out."""
    items: list[Role | Value] = sorted([*roles, *values], key=lambda item: (item.start, item.end))
    best: list[tuple[float, tuple[Pairing[Value], ...]]] = [(0.0, ())]  # of the items so far
    for i, item in enumerate(items):
        pairs: tuple[Pairing[Value], ...] = ()
        cost, start = best[i][0] + (0.0 if isinstance(item, Role) else _LEFT_OUT), i
        for begin in range(i - 1, max(-1, i - 4), -1):
            group = _pairs_of(text, items[begin : i + 1], accepts)
            if group is not None and best[begin][0] + group[0] < cost:
                cost, start, pairs = best[begin][0] + group[0], begin, group[1]
        best.append((cost, best[start][1] + pairs))
    return best[-1][1]


def _pairs_of(
    text: str, group: Sequence[Role | Value], accepts: Callable[[str, Value], bool]
) -> tuple[float, tuple[Pairing[Value], ...]] | None:
    """The pairs that a run of neighbours makes, with their cost; `None` where it makes none.

    Two: one role, one value. Four: "ISL/OSL 4096/512" and its reverse, in order. Three: one value for two joined
    roles ("fp8 weights and KV cache", "input and output 2k each").
    """
    shape = "".join("R" if isinstance(item, Role) else "V" for item in group)
    roles = [item for item in group if isinstance(item, Role)]
    values = [item for item in group if not isinstance(item, Role)]
    if shape in ("RV", "VR"):
        pairs = ((roles[0], values[0]),)
    elif shape in ("RRVV", "VVRR") and _joined(text, group[0], group[1]) and _joined(text, group[2], group[3]):
        pairs = ((roles[0], values[0]), (roles[1], values[1]))
    elif shape in ("RRV", "VRR") and roles[0].name != roles[1].name and _joined(text, roles[0], roles[1], _CONJUNCTION):
        pairs = ((roles[0], values[0]), (roles[1], values[0]))
    else:
        return None
    if not all(accepts(role.name, value) for role, value in pairs):
        return None
    turn = next(i for i in range(1, len(shape)) if shape[i] != shape[i - 1])
    gap = text[group[turn - 1].end : group[turn].start]
    cost = gap_cost(gap)
    cost += sum(role.cost + _BEHIND * (role.follows and shape == "RV") for role in roles)
    # A Chinese clause that begins with the role has its figure behind it: "4500 token,生成处置建议约 650 token".
    cost += shape[0] == "V" and text[roles[0].start] >= "\u4e00" and "," in gap
    cost += (0.1 if shape[0] == "V" else 0.0) + (-0.2 if len(group) == 3 else 0.0)
    return None if cost >= _LEFT_OUT else (cost, tuple(Pairing(role, value) for role, value in pairs))


def _joined(text: str, first: Spanned, second: Spanned, joiner: Gated = _JOINER) -> bool:
    gap = text[first.end : second.start]
    return len(gap) <= 12 and joiner.fullmatch(gap) is not None


def gap_cost(gap: str) -> float:
    """How far apart two words are: about 1 for each word between them that carries meaning, more for a clause end."""
    if len(gap) > 120:
        return _LEFT_OUT
    gap = _FIGURE_OF_IT.sub(" ", gap)
    cost = (
        2.5 * len(_HARD_BREAK.findall(gap))
        + 1.5 * len(_SENTENCE_BREAK.findall(gap))
        + 1.2 * len(_SOFT_BREAK.findall(gap))
    )
    gap = re.sub(r"[\ue000-\ue002\ue004]+", " zz ", gap)  # something that was read already counts as one word
    content = _FILLER.sub(" ", _SOFT_BREAK.sub(" ", _HARD_BREAK.sub(" ", gap)))
    meaningful = len(re.findall(r"[A-Za-z0-9]+", content))
    other = len(re.findall(r"[^\sA-Za-z0-9]", content))
    return cost + 0.9 * meaningful + 0.5 * other
