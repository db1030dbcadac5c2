"""Keys that mean something only together: an instance type and its count, items of a day and the calls of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from ..catalog.hardware import mentions
from ..engines.names import known_engine
from .brief_keys import COUNT, MACHINE_TYPE, MACHINES
from .brief_statements import Statement
from .gated import Gated
from .key_words import key_words
from .quantities import find_quantities, read_number

_MACHINE = Gated(rf"{MACHINE_TYPE.pattern}|instance|vm|machine|server|box|node|实例|服务器")
_CARDS_OF_IT = Gated(r"\d{1,3}\s?[x×*张块]?\s?[a-z]")
_MOST = Gated(r"max(?:imum)? (?:replicas|instances|vms|machines|nodes|servers|count)")
_PRICE = Gated(
    r"(?:list )?(?:hourly (?:usd|price|cost|rate)|"
    r"(?:usd|price|cost|rate) (?:per|an?) (?:(?:machine|instance|vm|node|server) )?hour|usd hourly)"
)
_OF_DAY = Gated(r"(?P<item>[a-z]{3,16})s per (?:(?:working|business) )?(?P<time>day|hour|minute|second)")
_OF_EACH = Gated(
    r"(?:llm |model )?(?:calls|requests|prompts|queries|passes) "
    r"per (?!(?:day|hour|minute|second)$)(?P<item>[a-z]{3,16})"
)
_CALLS = ("call", "prompt", "querie", "inference", "completion")
# "2160 (each = 1 request)": what an item is, in the remark behind its number.
_ITS_CALLS = Gated(
    r"(?<![a-z])(?:each|every|an?|one|1)(?:\s(?:of\s(?:them|these|those)|[a-z]{3,16}))?\s?(?:=|->|:|is|are|makes?|means|gives|sends|triggers|counts\sas|equals)\s?(?:exactly\s|about\s)?"
    r"(?P<n>\d{1,4}|an?|one|two|three|four|five)\s(?:llm\s|model\s)?(?:requests?|calls?|prompts?|quer(?:y|ies))(?![a-z])|"
    r"每[次个场条份]?[^,;。\d]{0,4}(?:=|是|为|对应|触发|产生)?\s?(?P<m>\d{1,4}|[一二两三四五])\s?[次个条]\s?(?:请求|调用)",
)
_WINDOW = Gated(r"(?:window|busy|working|business|active|office)(?: day)? hours|hours per day|window h")
_ENGINE_KEY = Gated(r"(?:.* )?(?:name|engine|framework|runtime|server|backend|software|stack)|.*(?:引擎|框架)")
_VERSION = Gated(r"(?:engine |framework |runtime |server |backend )?(?:version|ver|release|版本号?)")


def with_counts_joined(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, with those that only mean something together reworded or merged."""
    joined: list[Statement] = []
    for _, group in groupby(statements, key=lambda entry: entry.path[:-1] if entry.keyed else (entry.where,)):
        siblings = _with_version_of_engine(_with_cards_of_each(list(group)))
        joined += _of_machines(siblings) if any(map(_names_machine, siblings)) else list(_of_calls(siblings))
    return joined


def _key(entry: Statement) -> str:
    return key_words(entry.path[-1]) if entry.keyed and entry.path else ""


def _keyed(group: Sequence[Statement], pattern: Gated) -> tuple[Statement, re.Match[str]] | tuple[None, None]:
    """The first statement whose key matches `pattern`, and the match; two `None` without one."""
    return next(((entry, match) for entry in group if (match := pattern.fullmatch(_key(entry)))), (None, None))


def _names_machine(entry: Statement) -> bool:
    is_key = _MACHINE.fullmatch(_key(entry)) is not None or _key(entry).endswith(" type")
    return is_key and any(mention.gpus_per_node for mention in mentions(entry.text))


def _with_cards_of_each(group: list[Statement]) -> list[Statement]:
    """Beside the number of nodes, a node of so many cards is each of them: "node: 8x H200", "nodes: 3"."""
    if not any(MACHINES.fullmatch(_key(entry)) and read_number(entry.text) is not None for entry in group):
        return group
    return [
        replace(entry, path=(*entry.path[:-1], f"each {_key(entry)}"))
        if _MACHINE.fullmatch(_key(entry)) and _CARDS_OF_IT.match(entry.text)
        else entry
        for entry in group
    ]


def _with_version_of_engine(group: list[Statement]) -> list[Statement]:
    """The group with the version of an engine behind its name: "name: vLLM", "version: 0.9.1".

    A bare version beside the whole document is the document's.
    """
    engine = next((e for e in group if _ENGINE_KEY.fullmatch(_key(e)) and known_engine(e.text) is not None), None)
    version, match = _keyed(group, _VERSION)
    if engine is None or version is None or match is None or (len(version.path) == 1 and " " not in match.group()):
        return group
    named = replace(engine, text=f"{engine.text} {version.text}")
    return [named if entry is engine else entry for entry in group if entry is not version]


def _of_machines(group: Sequence[Statement]) -> list[Statement]:
    """Counts beside a machine type reworded as counts of it, and an hourly price as that of one machine."""
    reworded: list[Statement] = []
    for entry in group:
        key = _key(entry)
        if COUNT.fullmatch(key):
            entry = replace(entry, path=(*entry.path[:-1], "nodes"))
        elif _MOST.fullmatch(key):
            entry = replace(entry, path=(*entry.path[:-1], "max nodes"))
        elif _PRICE.fullmatch(key) and entry.text[:1].isdigit():
            figure, _, remark = entry.text.partition(" ")
            entry = replace(entry, path=(*entry.path[:-1], "price"), text=f"${figure} per node-hour {remark}".strip())
        reworded.append(entry)
    return reworded


def _of_calls(group: Sequence[Statement]) -> Iterator[Statement]:
    """Items of a day and the calls of each, merged into the calls of a day and the hours in which they come."""
    items, of_day = _keyed(group, _OF_DAY)
    each, of_each = _keyed(group, _OF_EACH)
    window, _ = _keyed(group, _WINDOW)
    its_calls = None if items is None else _ITS_CALLS.search(items.text)
    is_call = of_day is not None and of_day["item"] in _CALLS
    is_spread = each or window or its_calls or is_call
    amounts = [find_quantities(entry.text)[:1] for entry in (items, each, window) if entry is not None]
    is_other = of_day is None or (of_each is not None and of_each["item"] != of_day["item"])
    if items is None or of_day is None or not is_spread or not all(amounts) or is_other:
        yield from group
        return
    amount = amounts[0][0].decimal_value * (amounts[1][0].decimal_value if each is not None else 1)
    if its_calls is not None and each is None:
        amount *= read_number((its_calls["n"] or its_calls["m"]).lower()) or 1.0
    within = "" if window is None else f", within {amounts[-1][0].decimal_value:g} hours"
    for entry in group:
        if entry is items:
            yield replace(
                entry, path=(*entry.path[:-1], "load"), text=f"{amount:.12g} requests per {of_day['time']}{within}"
            )
        elif entry not in (each, window):
            yield entry
