"""Keys that mean something only together: an instance type and its count, items of a day and the calls of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from ..catalog.hardware import mentions
from .brief_keys import COUNT, MACHINE_TYPE
from .brief_statements import Statement, key_words
from .gated import Gated
from .quantities import find_quantities

_MACHINE = Gated(rf"{MACHINE_TYPE.pattern}|instance|vm|machine|server|box|node|实例|服务器")
_MOST = Gated(r"max(?:imum)? (?:replicas|instances|vms|machines|nodes|servers|count)")
_PRICE = Gated(
    r"(?:list )?(?:hourly (?:usd|price|cost|rate)|"
    r"(?:usd|price|cost|rate) (?:per|an?) (?:(?:machine|instance|vm|node|server) )?hour|usd hourly)"
)
_OF_DAY = Gated(r"(?P<item>[a-z]{3,16})s per (?P<time>day|hour|minute|second)")
_OF_EACH = Gated(r"(?:llm |model )?(?:calls|requests|prompts|queries|passes) per (?P<item>[a-z]{3,16})")
_WINDOW = Gated(r"(?:window|busy|working|business|active|office) hours|hours per day|window h")


def told_together(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, those of a group that belong together in words that say so."""
    told: list[Statement] = []
    for _, group in groupby(statements, key=lambda one: one.path[:-1] if one.keyed else (one.where,)):
        own = list(group)
        told += _of_machines(own) if any(map(_names_machine, own)) else list(_of_calls(own))
    return told


def _key(statement: Statement) -> str:
    return key_words(statement.path[-1]) if statement.keyed and statement.path else ""


def _keyed(group: Sequence[Statement], pattern: Gated) -> tuple[Statement, re.Match[str]] | tuple[None, None]:
    """The first statement whose key is as `pattern` says, and how it is."""
    return next(((one, found) for one in group if (found := pattern.fullmatch(_key(one)))), (None, None))


def _names_machine(statement: Statement) -> bool:
    is_key = _MACHINE.fullmatch(_key(statement)) is not None
    return is_key and any(one.gpus_per_node for one in mentions(statement.text))


def _of_machines(group: Sequence[Statement]) -> list[Statement]:
    """Counts beside a type of machine are counts of it, and a price by the hour is that of one."""
    told: list[Statement] = []
    for one in group:
        key = _key(one)
        if COUNT.fullmatch(key):
            one = replace(one, path=(*one.path[:-1], "nodes"))
        elif _MOST.fullmatch(key):
            one = replace(one, path=(*one.path[:-1], "max nodes"))
        elif _PRICE.fullmatch(key) and one.text[:1].isdigit():
            figure, _, remark = one.text.partition(" ")
            one = replace(one, path=(*one.path[:-1], "price"), text=f"${figure} per node-hour {remark}".strip())
        told.append(one)
    return told


def _of_calls(group: Sequence[Statement]) -> Iterator[Statement]:
    """Items of a day and the calls that each makes, as the calls of a day; the hours that they come in beside them."""
    items, of_day = _keyed(group, _OF_DAY)
    each, of_each = _keyed(group, _OF_EACH)
    window, _ = _keyed(group, _WINDOW)
    if items is None or of_day is None or (each is None and window is None):
        yield from group
        return
    amounts = [find_quantities(one.text)[:1] for one in (items, each, window) if one is not None]
    if not all(amounts) or (of_each is not None and of_each["item"] != of_day["item"]):
        yield from group
        return
    amount = amounts[0][0].decimal_value * (amounts[1][0].decimal_value if each is not None else 1)
    within = "" if window is None else f", within {amounts[-1][0].decimal_value:g} hours"
    for one in group:
        if one is items:
            yield replace(
                one, path=(*one.path[:-1], "load"), text=f"{amount:.12g} requests per {of_day['time']}{within}"
            )
        elif one not in (each, window):
            yield one
