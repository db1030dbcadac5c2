"""Hardware in one line: "2x8 H100", "8x A100 80GB", "4 nodes x 2 A100-80GB", "16 H200", "8张 H800", "两台 8 卡 H200".

What it counts and what it names; a line with several accelerators, or with counts that do not agree, names none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...catalog.hardware import mentions

_MAX_CHARS = 20_000
_WORDS = {"one": 1, "a": 1, "an": 1, "single": 1, "two": 2, "both": 2, "three": 3, "four": 4, "six": 6, "eight": 8,
          "sixteen": 16,
          "一": 1, "单": 1, "两": 2, "二": 2, "双": 2, "三": 3, "四": 4, "八": 8}  # fmt: skip
# A digit behind a letter is part of a name (H100, TP8), but for the sign between factors (x8).
_N = rf"((?<![A-WYZa-wyz\d.])\d{{1,5}}|(?<![A-Za-z])(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))}))"
_NODES = (
    r"(?:(?:gpu )?(?:nodes?|servers?|machines?|hosts?|box(?:es)?)(?![A-Za-z])"
    r"|台(?:机器|服务器)?|节点|服务器|机)"
)
_GPUS = r"(?:gpus?|cards?|accelerators?|张|卡|块)"
_NAME = "\x00"  # stands for each character of an accelerator's name while counts are looked for
_TIMES = r"\s?[x×*]\s?"
_NODE_COUNT = re.compile(rf"{_N}[\s-]?(?:x\s?)?{_NODES}", re.IGNORECASE)
_NODES_NAMED = re.compile(rf"{_N}(?:\s|-|个\s?)?(?:nvidia\s|amd\s)?{_NAME}+(?:\s|-)?{_NODES}", re.IGNORECASE)
_GPUS_OF_NODES = re.compile(
    rf"(?:{_N}(?:\s|-)?(?:x\s?)?)?{_N}\s?(?:[x×*]|{_GPUS})\s?(?:nvidia\s|amd\s)?{_NAME}+(?:\s|-)?{_NODES}",
    re.IGNORECASE,
)
_ONE_NODE = re.compile(r"[\s-]?(?:gpu )?(?:node|server|machine|host|box)(?![A-Za-z])", re.IGNORECASE)
_EACH_AFTER = re.compile(
    rf"^(?:(?:\s|-)?{_NODES})?[\s,(:]{{0,3}}(?:(?:of|with|having)\s)?{_N}[\s-]?{_GPUS}\s(?:each|per)"
    rf"|^(?:\s|-)?{_NODES}[\s,(:]{{0,3}}(?:of|with|having)\s{_N}[\s-]?{_GPUS}",
    re.IGNORECASE,
)
_RACKS = re.compile(r"\s?(?:racks?|pods?|机柜)", re.IGNORECASE)
_GPUS_NAMED = re.compile(rf"{_GPUS}\s?$", re.IGNORECASE)
_EACH = re.compile(
    rf"{_NODES}\s?(?:\(|,|x|×|\*|of|with|each)?\s?(?:with|having|have)?\s?{_N}[\s-]?(?:x\s?)?(?:{_GPUS}|$|(?=\s?[A-Z]))"
    rf"|{_N}\s?{_GPUS}?\s?(?:per|each|a)\s(?:node|server|machine|host)",
    re.IGNORECASE,
)
_GRID_BEFORE = re.compile(
    rf"(?<![A-Za-z\d.])(\d{{1,4}}){_TIMES}(\d{{1,4}}){_TIMES[:-3]}?\s?(?:[x×*]\s?)?(?:{_GPUS}\s)?(?:nvidia\s|amd\s)?$",
    re.IGNORECASE,
)
_PER_NODE = re.compile(rf"{_N}\s?(?:x\s)?{_GPUS}?\s?(?:per|each|a)\s(?:node|server|machine|host)", re.IGNORECASE)
_MULTIPLIED = re.compile(r"[x×*]\s?$|per|each", re.IGNORECASE)
_COUNT_BEFORE = re.compile(rf"{_N}\s?(?:[x×*]|{_GPUS})?\s?(?:nvidia|amd)?\s?$", re.IGNORECASE)
_COUNT_AFTER = re.compile(r"^\s?(?:gpus?\s?)?(?:[x×*]\s?|\(|:\s?)(\d{1,5})(?!\d|\s?(?:gb|g\b|tb))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HardwareWords:
    """What a line says: the accelerator's id, nodes, GPUs in each, GPUs in all; `None` for what it does not say."""

    accelerator: str | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    total: int | None = None
    problem: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The counts that it says, by the names of their fields."""
        counts = {"nodes": self.nodes, "gpus_per_node": self.gpus_per_node, "total": self.total}
        return {name: count for name, count in counts.items() if count is not None}


def hardware_of(text: str) -> HardwareWords:
    """What `text` says of hardware. Never raises."""
    text = text[:_MAX_CHARS]
    found = mentions(text)
    known = {mention.accelerator.id for mention in found if mention.accelerator is not None}
    if len(known) != 1 or any(mention.error for mention in found):
        problem = next((mention.error for mention in found if mention.error), None)
        return HardwareWords(problem=problem or ("several accelerators are named" if known else None))
    mention = found[0]
    for named in found:
        text = f"{text[: named.start]}{_NAME * (named.end - named.start)}{text[named.end :]}"
    sizes = _sizes(text, mention.start, mention.end, mention.gpus_per_node)
    per_node = sizes.gpus_per_node or mention.gpus_per_node
    return HardwareWords(known.pop(), sizes.nodes, per_node, sizes.total)


def _sizes(text: str, start: int, end: int, system_size: int | None) -> HardwareWords:
    """The counts around a name; `system_size` is what the system holds that it names, if it names one."""
    before, after = text[max(0, start - 60) : start].rpartition("\n")[2], text[end : end + 60].partition("\n")[0]
    if grid := _GRID_BEFORE.search(before):
        return HardwareWords(nodes=int(grid[1]), gpus_per_node=int(grid[2]))
    line = f"{before}{text[start:end]}{after}"
    nodes = _NODE_COUNT.search(line)
    node_count = _number(nodes[1]) if nodes else None
    each = _EACH.search(before) or _PER_NODE.search(after) or _EACH_AFTER.search(after)
    if each is not None:
        if node_count is None and (named := _NODES_NAMED.search(line)) is not None:
            node_count = _number(named[1])
        return HardwareWords(nodes=node_count, gpus_per_node=_number(next(filter(None, each.groups()))))
    if (named := _named_nodes(line, after, system_size)) is not None:
        return named
    count = _COUNT_BEFORE.search(before) or _COUNT_AFTER.search(after)
    number = _number(count[1]) if count else None
    if number is not None and system_size is not None and number < system_size and node_count is None:
        # "2x DGX H100" counts systems; so many as one of them holds may be its GPUs.
        return HardwareWords() if _RACKS.match(after) else _systems(number, before, system_size)
    if nodes is not None and number is not None and nodes.start() > len(before):
        # "8x H100 x 2 nodes" counts those of a node, "16 H100 across 2 nodes" all of them.
        if _MULTIPLIED.search(line[len(before) : nodes.start()]):
            return HardwareWords(nodes=node_count, gpus_per_node=number)
        return HardwareWords(nodes=node_count, total=number)
    if node_count == 1 and number is not None:
        return HardwareWords(nodes=1, gpus_per_node=number)
    return HardwareWords(nodes=node_count, total=number)


def _systems(number: int, before: str, size: int) -> HardwareWords:
    return (
        HardwareWords(total=number) if _GPUS_NAMED.search(before) else HardwareWords(nodes=number, gpus_per_node=size)
    )


def _named_nodes(line: str, after: str, system_size: int | None) -> HardwareWords | None:
    """ "two H100 nodes", "an 8x H100 node", "2 8xH100 servers"; `None` where no nodes stand behind the name."""
    if match := _GPUS_OF_NODES.search(line):
        if match[1] is not None:
            return HardwareWords(nodes=_number(match[1]), gpus_per_node=_number(match[2]))
        if system_size is not None:
            return HardwareWords(nodes=_number(match[2]))
        # "4x H100 nodes" are four nodes, or nodes of four.
        return HardwareWords(nodes=1, gpus_per_node=_number(match[2])) if _ONE_NODE.match(after) else HardwareWords()
    match = _NODES_NAMED.search(line)
    return None if match is None else HardwareWords(nodes=_number(match[1]))


def _number(words: str) -> int:
    return int(words) if words.isdigit() else _WORDS[words.lower()]
