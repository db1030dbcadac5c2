"""Several kinds of requests in one load, each with its lengths and its share: "70% chat at 1k/300, the rest 12k/500".

Shares are percentages, rates or numbers of requests at once, one for each pair of lengths and all before or all behind
their pairs. Pairs without shares are no mixture, but lengths that contradict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from msgspec import Struct
from msgspec.structs import replace

from ...plan.lengths import RequestLengths
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities
from .context import Statement

_REST = Gated(
    r"(?<![a-z])(?:the\s(?:rest|remainder|others?|remaining(?:\s\w{1,20})?)|everything\selse|all\sothers?)(?![a-z])|"
    r"其余|其它|其他|剩下|余下|剩余",
)
_MOST_KINDS = 8
_INPUT = ("input", "tokens_of")
# Shares whose sum is further from 1 are not those of a mixture.
_MOST_MISSING = 0.02


class _Kind(Struct, frozen=True):
    """The two lengths of one kind of requests."""

    input: Statement
    output: Statement

    @property
    def start(self) -> int:
        return min(self.input.quantity.start, self.output.quantity.start)

    @property
    def end(self) -> int:
        return max(self.input.quantity.end, self.output.quantity.end)

    @property
    def tokens(self) -> tuple[int, int]:
        return int(self.input.quantity.value), int(self.output.quantity.value)


class _Share(Struct, frozen=True):
    """The share of a kind among the requests; `quantity` is `None` for "the rest"."""

    start: int
    end: int
    quantity: Quantity | None = None


def with_mix(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Claim the lengths of several kinds of requests as pairs by their shares; returns the remaining statements."""
    kinds = _kinds(statements)
    if not 2 <= len(kinds) <= _MOST_KINDS or len({kind.tokens for kind in kinds}) < 2:
        return statements
    lengths = [length for kind in kinds for length in (kind.input, kind.output)]
    others = [statement for statement in statements if statement not in lengths]
    for role in ("rate", "concurrency"):
        rivals = [statement for statement in others if statement.role == role and statement.quantity.upper is None]
        loads = [_Share(rival.quantity.start, rival.quantity.end, rival.quantity) for rival in rivals]
        if len(loads) != len(kinds) or not _is_one_each(kinds, loads):
            continue
        weights = [rival.quantity.value for rival in rivals]
        # Users of longer answers wait longer and send fewer requests.
        per_request = [
            weight / (kind.tokens[1] if role == "concurrency" else 1)
            for weight, kind in zip(weights, kinds, strict=True)
        ]
        _claim(page, claims, kinds, per_request)
        total = replace(rivals[0].quantity, value=sum(weights), decimal_value=sum(weights))
        words = ", ".join(rival.words for rival in rivals)
        for rival in rivals:
            page.take(rival.quantity.start, rival.quantity.end)
        return [*(statement for statement in others if statement not in rivals), Statement(role, total, words)]
    shares = _stated_shares(page, statements, kinds)
    if shares is not None and _is_one_each(kinds, shares):
        stated = sum(share.quantity.value for share in shares if share.quantity)
        rest = 1.0 - stated if any(share.quantity is None for share in shares) else 0.0
        if rest >= 0.0 and abs(stated + rest - 1.0) <= _MOST_MISSING:
            _claim(page, claims, kinds, [share.quantity.value if share.quantity else rest for share in shares])
            for share in shares:
                page.take(share.start, share.end)
            return others
    return statements


def _kinds(statements: Sequence[Statement]) -> list[_Kind]:
    """Lengths two by two, in the order of the text: each input with the output beside it."""
    lengths = [statement for statement in statements if statement.role in (*_INPUT, "output")]
    placed = sorted(lengths, key=lambda length: length.quantity.start)
    if len(placed) % 2 or any(length.quantity.upper is not None for length in placed):
        return []
    couples = [(placed[place], placed[place + 1]) for place in range(0, len(placed), 2)]
    if any((first.role in _INPUT) == (second.role in _INPUT) for first, second in couples):
        return []
    return [_Kind(*sorted(couple, key=lambda length: length.role == "output")) for couple in couples]


def _stated_shares(page: Page, statements: Sequence[Statement], kinds: Sequence[_Kind]) -> list[_Share] | None:
    """Percentages that no other statement uses, and "the rest"; `None` unless each kind has a share."""
    others = {statement.quantity.start for statement in statements}
    percentages = [
        _Share(quantity.start, quantity.end, quantity)
        for quantity in find_quantities(page.text)
        if quantity.unit == "share" and quantity.start not in others and quantity.upper is None
    ]
    rests = [_Share(*match.span()) for match in _REST.finditer(page.text)][:1]
    shares = sorted([*percentages, *rests], key=lambda share: share.start)
    return shares if len(shares) == len(kinds) else None


def _is_one_each(kinds: Sequence[_Kind], shares: Sequence[_Share]) -> bool:
    """Whether a share stands before each pair of lengths, or behind each."""
    couples = (zip(shares, kinds, strict=True), zip(kinds, shares, strict=True))
    rows = ([item for couple in order for item in couple] for order in couples)
    return any(all(first.end <= then.start for first, then in pairwise(row)) for row in rows)


def _claim(page: Page, claims: Claims, kinds: Sequence[_Kind], weights: Sequence[float]) -> None:
    """Claim pairs of lengths, each as often as its share in percent, and their means."""
    counts = _percents(weights)
    step = gcd(*counts)
    pairs = tuple(kind.tokens for kind, count in zip(kinds, counts, strict=True) for _ in range(count // step))
    words = ", ".join(
        page.take(length.quantity.start, length.quantity.end) for kind in kinds for length in (kind.input, kind.output)
    )
    claims.replace("lengths", RequestLengths(pairs=pairs), words)
    for side, place in (("input", 0), ("output", 1)):
        claims.claim(f"{side}_tokens", round(sum(pair[place] for pair in pairs) / len(pairs)), words)
    mixture = ", ".join(
        f"{count}% of {kind.tokens[0]:,} in and {kind.tokens[1]:,} out"
        for kind, count in zip(kinds, counts, strict=True)
    )
    claims.reading(f"{words!r} read as kinds of requests that come mixed: {mixture}")


def _percents(weights: Sequence[float]) -> list[int]:
    """Whole percents of at least 1 that add up to 100."""
    total = sum(weights)
    counts = [max(1, round(100 * weight / total)) for weight in weights]
    counts[counts.index(max(counts))] += 100 - sum(counts)
    return counts
