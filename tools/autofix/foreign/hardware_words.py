"""Hardware in one line: "2x8 H100", "8x A100 80GB", "4 nodes x 2 A100-80GB", "16 H200", "8张 H800", "两台 8 卡 H200".

What it counts and what it names; a line with several accelerators, or with counts that do not agree, names none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ...catalog.hardware import mentions
from .figures import NUMBER_WORDS
from .lexicon import any_case

_MAX_CHARS = 20_000
_WORDS = {**NUMBER_WORDS, "a": 1, "an": 1, "single": 1, "both": 2}
_SPELLED = "|".join(sorted(_WORDS, key=len, reverse=True))
# A digit behind a letter is part of a name (H100, TP8), but for the sign between factors (x8).
_N = rf"((?<![A-WYZa-wyz\d.])\d{{1,5}}|(?<![A-Za-z一二三四五六七八九十百])(?:{_SPELLED}))"
_NODES = (
    r"(?:(?:gpu )?(?:nodes?|servers?|machines?|hosts?|box(?:es)?)(?![A-Za-z])"
    r"|台(?:机器|服务器)?|节点|服务器|机)"
)
_GPUS = r"(?:gpus?|cards?|accelerators?|张|卡|块)"
_VENDOR = r"(?:nvidia\s|amd\s)?"
_PER_NODE = rf"\s?{_GPUS}?\s?(?:per|each|a)\s(?:node|server|machine|host)"
_NAME = "\x00"  # stands for each character of an accelerator's name while counts are looked for
_NODE_COUNT = any_case(rf"{_N}[\s-]?(?:x\s?)?{_NODES}")
_NODES_NAMED = any_case(rf"{_N}(?:\s|-|个\s?)?{_VENDOR}{_NAME}+(?:\s|-)?{_NODES}")
_GPUS_OF_NODES = any_case(rf"(?:{_N}(?:\s|-)?(?:x\s?)?)?{_N}\s?(?:[x×*]|{_GPUS})\s?{_VENDOR}{_NAME}+(?:\s|-)?{_NODES}")
_ONE_NODE = any_case(r"[\s-]?(?:gpu )?(?:node|server|machine|host|box)(?![A-Za-z])")
_EACH_BEFORE = any_case(
    rf"{_NODES}\s?(?:\(|,|x|×|\*|of|with|each)?\s?(?:with|having|have)?\s?{_N}[\s-]?(?:x\s?)?(?:{_GPUS}|$|(?=\s?[A-Z]))"
    rf"|{_N}{_PER_NODE}"
)
_EACH_AFTER = any_case(
    rf"{_N}(?:\s?x\s)?{_PER_NODE}"
    rf"|^(?:(?:\s|-)?{_NODES})?[\s,(:]{{0,3}}(?:(?:of|with|having)\s)?{_N}[\s-]?{_GPUS}\s(?:each|per)"
    rf"|^(?:\s|-)?{_NODES}[\s,(:]{{0,3}}(?:of|with|having)\s{_N}[\s-]?{_GPUS}"
)
_RACKS = any_case(r"\s?(?:racks?|pods?|机柜)")
_GPUS_NAMED = any_case(rf"{_GPUS}\s?$")
_GRID_BEFORE = any_case(
    rf"(?<![A-Za-z\d.])(\d{{1,4}})\s?[x×*]\s?(\d{{1,4}})(?:\s?[x×*])?\s?(?:[x×*]\s?)?(?:{_GPUS}\s)?{_VENDOR}$"
)
_MULTIPLIED = any_case(r"[x×*]\s?$|per|each")
_COUNT_BEFORE = any_case(rf"{_N}\s?(?:[x×*]|{_GPUS})?\s?(?:nvidia|amd)?\s?$")
_COUNT_AFTER = any_case(r"^\s?(?:gpus?\s?)?(?:[x×*]\s?|\(|:\s?)(\d{1,5})(?!\d|\s?(?:gb|g\b|tb))")


@dataclass(frozen=True, slots=True)
class HardwareWords:
    """What a line says: the accelerator's id, and of `nodes`, `gpus_per_node` and `total` those that it counts.

    `problem`: why it names no accelerator, where it seems to.
    """

    accelerator: str | None = None
    counts: dict[str, int] = field(default_factory=dict[str, int])
    problem: str | None = None


def hardware_of(text: str) -> HardwareWords:
    """What `text` says of hardware. Never raises."""
    text = text[:_MAX_CHARS]
    named = mentions(text)
    known = {mention.accelerator.id for mention in named if mention.accelerator is not None}
    problems = [mention.error for mention in named if mention.error]
    if len(known) != 1 or problems:
        problem = "several accelerators are named" if known else None
        return HardwareWords(problem=problems[0] if problems else problem)
    for mention in named:
        text = f"{text[: mention.start]}{_NAME * (mention.end - mention.start)}{text[mention.end :]}"
    first = named[0]
    counts = _counts(text, first.start, first.end, first.gpus_per_node)
    if first.gpus_per_node is not None:
        counts.setdefault("gpus_per_node", first.gpus_per_node)
    ordered = {name: counts[name] for name in ("nodes", "gpus_per_node", "total") if name in counts}
    return HardwareWords(known.pop(), ordered)


def _counts(text: str, start: int, end: int, system_size: int | None) -> dict[str, int]:
    """The counts around a name; `system_size` is what the system holds that it names, if it names one."""
    before, after = text[max(0, start - 60) : start].rpartition("\n")[2], text[end : end + 60].partition("\n")[0]
    if grid := _GRID_BEFORE.search(before):
        return {"nodes": int(grid[1]), "gpus_per_node": int(grid[2])}
    line = f"{before}{text[start:end]}{after}"
    counted, named = _NODE_COUNT.search(line), _NODES_NAMED.search(line)
    nodes = {} if counted is None else {"nodes": _number(counted[1])}
    each = _EACH_BEFORE.search(before) or _EACH_AFTER.search(after)
    if each is not None:
        nodes = {"nodes": _number(named[1])} if named is not None and not nodes else nodes
        return {**nodes, "gpus_per_node": _number(next(filter(None, each.groups())))}
    if groups := _GPUS_OF_NODES.search(line):
        return _nodes_of_gpus(groups, after, system_size)
    if named is not None:
        return {"nodes": _number(named[1])}
    count = _COUNT_BEFORE.search(before) or _COUNT_AFTER.search(after)
    if count is None:
        return nodes
    number = _number(count[1])
    if system_size is not None and number < system_size and not nodes:
        # "2x DGX H100" counts systems; so many as one of them holds may be its GPUs.
        if _RACKS.match(after):
            return {}
        return {"total": number} if _GPUS_NAMED.search(before) else {"nodes": number}
    # "8x H100 x 2 nodes" counts those of a node, "16 H100 across 2 nodes" all of them.
    is_behind = counted is not None and counted.start() > len(before)
    of_one = bool(_MULTIPLIED.search(line[len(before) : counted.start()])) if is_behind and counted else None
    if of_one or (of_one is None and nodes == {"nodes": 1}):
        return {**nodes, "gpus_per_node": number}
    return {**nodes, "total": number}


def _nodes_of_gpus(groups: re.Match[str], after: str, system_size: int | None) -> dict[str, int]:
    """ "2 8xH100 servers", "an 8x H100 node"; "4x H100 nodes" are four nodes, or nodes of four."""
    if groups[1] is not None:
        return {"nodes": _number(groups[1]), "gpus_per_node": _number(groups[2])}
    if system_size is not None:
        return {"nodes": _number(groups[2])}
    return {"nodes": 1, "gpus_per_node": _number(groups[2])} if _ONE_NODE.match(after) else {}


def _number(words: str) -> int:
    return int(words) if words.isdigit() else _WORDS[words.lower()]
