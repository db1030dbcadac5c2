"""Objects that a structured brief states as one thing: hardware and what it is counted in, layouts to be weighed.

{"gpu": "H100", "count": 16}, {"gpu-a": {"h100": 8}, "gpu-b": {"h100": 8}}, {"candidates": [{"tp": 8}, {"tp": 4}]}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...catalog.hardware import mentions
from ...input.shapes import is_object
from ..patterns.gated import Gated
from ..patterns.quantities import read_number
from .figure_objects import QUALIFIER, UNIT_KEYS, percentile_text, unit_words
from .key_words import key_words
from .keys import (
    ALL_CARDS,
    CARDS,
    COUNT,
    DEGREE,
    EACH,
    GPU_KEY,
    MACHINE,
    MACHINE_TYPE,
    MACHINES,
    OF_EACH,
    PART_KEY,
    names_full_machine,
    rules_out,
)
from .statements import PER_NODE

# Layouts that are listed to be weighed: {"candidates": [{"tp": 8}, {"tp": 4, "replicas": 2}]}.
_WEIGHED = Gated(
    r"(?:(?:decide|choose|pick|select) )?(?:between|among)|(?:to )?compare[ds]?|comparisons?|options?|"
    r"对比|比较|(?:候选|备选)(?:方案|布局)?|"
    r"(?:candidate )?(?:candidates?|layouts?|strateg(?:y|ies)|parallelisms?|variants?|configurations?)"
    r"(?: (?:to )?(?:compare|judge|try|weigh|choose from))?"
)
_DEGREE_OF_LAYOUT = Gated(rf"{DEGREE.pattern}|replicas?|(?:attention|attn) (?:dp|data parallel\w*)(?: size)?")
_LABEL_OF_LAYOUT = Gated(r"name|label|id|key|note|comment|名称|编号|备注")

# A list of number formats, of kinds of cards or of engines is a choice between them.
_CHOICE_LIST = Gated(
    r"(?:\w+ )?(?:precisions?|quanti[sz]ations?|(?:d|data ?)types?|number formats?|(?:weights?|kv cache|activations?) "
    r"(?:precisions?|d?types?|formats?)|gpu|card|accelerator|engines?|runtimes?|(?:gpu|card|accelerator) "
    r"(?:types?|kinds?|models?|options?|choices?)|(?:any|one|either) of|cho(?:ose|ice) (?:from|of)|select from|"
    r"(?:allowed|possible|acceptable) "
    r"(?:gpus?|cards?|accelerators?|kinds?|types?|models?)|pick (?:one|any)(?: of)?)|精度|量化|卡型|显卡型号"
)
# A list of offers to choose from, each with its cards and number of nodes.
_OFFERS = Gated(r"(?:.* )?(?:options?|choices?|alternatives?|candidates?|offers?|quotes?)|.*(?:方案|候选|备选|选项)")
_NODES_OF_OFFER = Gated(r"(?:max(?:imum)? |available )?(?:nodes?|servers?|machines?)(?: count)?|(?:最大)?(?:节点|台)数")
IDENTITY = (
    r"(?:.* )?(?:id|index|rank|ip|hostname|host|name|fqdn|dns|uuid|serial|rack|room|site|zone|address|location|"
    r"asset(?: tag)?|no)|主机名|编号|机[房柜]|位置"
)


_OF_CARDS = re.compile(r"gpu|card|accelerator|卡")
_NODE_NAME = re.compile(r"(?=.*[\d.-])[A-Za-z][\w.-]{1,60}")


class CommonFacts(Struct, frozen=True):
    """What an object says of all its figures: what its counts count, their unit, and the qualifier with its `keys`."""

    counted: str
    unit: str
    qualifier: str
    keys: tuple[str, ...]


def common_facts(parent: str, value: Mapping[str, Any]) -> CommonFacts:
    """What an object under the key `parent` says of all its figures."""
    named = [(key, key_words(key), item) for key, item in value.items()]
    qualifying = [entry for entry in named if QUALIFIER.fullmatch(entry[1]) and isinstance(entry[2], str | int | float)]
    qualifier = ", ".join(percentile_text(words, item) for _, words, item in qualifying)
    return CommonFacts(
        counted=_counted(parent, {words: item for _, words, item in named}),
        unit=next(
            (f" {unit_words(item)}" for _, words, item in named if words in UNIT_KEYS and isinstance(item, str)), ""
        ),
        qualifier=f" ({qualifier})" if qualifier else "",
        keys=tuple(key for key, _, _ in qualifying),
    )


def _counted(parent: str, value: Mapping[str, Any]) -> str:
    """What the counts of an object under `parent` count, by its keys in plain words: "node", "gpu" or nothing."""
    each = [item for words, item in value.items() if OF_EACH.fullmatch(words)]
    numbers = {words: item for words, item in value.items() if type(item) is int}
    most = max((n for words, n in numbers.items() if COUNT.fullmatch(words)), default=0)
    if CARDS.fullmatch(parent) and not any(type(n) is int and n > most for n in each):
        return "gpu"
    counts_both = any(MACHINES.fullmatch(words) and not OF_EACH.fullmatch(words) for words in numbers)
    cards = [words for words, item in value.items() if _names_card(words, item)]
    is_of_machines = (
        (each and not counts_both)
        or any(MACHINE_TYPE.fullmatch(words) for words in value.keys() - cards if isinstance(value[words], str))
        or MACHINES.fullmatch(parent)
        or any(map(names_full_machine, value.values()))
    )
    return "node" if is_of_machines else "gpu" if cards or GPU_KEY.fullmatch(parent) else ""


def _names_card(words: str, item: Any) -> bool:
    """Whether a key in plain words names a card, or describes one without its number."""
    if is_object(item):
        inner = [key_words(key) for key in item]
        return bool(GPU_KEY.fullmatch(words)) and not any(OF_EACH.fullmatch(k) or COUNT.fullmatch(k) for k in inner)
    if not isinstance(item, str):
        return False
    is_part = PART_KEY.fullmatch(words) and any(card.accelerator and not card.gpus_per_node for card in mentions(item))
    return bool(GPU_KEY.fullmatch(words) or is_part)


def counted_card(keys: tuple[str, ...], key: str, value: Any) -> tuple[str, str] | None:
    """The number of a card under its name as a key and words, `{"h100": 8}`; `None` for other keys."""
    named = mentions(key) if type(value) is int and value > 0 else ()
    if len(named) != 1 or named[0].accelerator is None or named[0].end - named[0].start < len(key):
        return None
    is_each = any(part.startswith(EACH) or part == PER_NODE for part in keys)
    return f"{EACH}node" if is_each else "gpus", f"{value}x {key}"


def is_name_of_node(key: str, value: Any) -> bool:
    return MACHINE.fullmatch(key_words(key)) is not None and isinstance(value, str) and not mentions(value)


def names_nodes(items: list[Any]) -> bool:
    """Whether a list has an object for each node, by its name: [{"node": "a", "gpus": "8x H100"}, …]."""
    named = (is_object(item) and any(is_name_of_node(key, value) for key, value in item.items()) for item in items)
    return len(items) > 1 and all(named)


def key_of_count(parent: str, key: str, item: Any, counted: str) -> str:
    """A key that counts by what it counts: {"gpu": "H100", "count": 16} counts cards."""
    words = key_words(key)
    is_number = read_number(str(item)) is not None
    if is_number and (counted or "卡" in words) and ALL_CARDS.fullmatch(words):
        return "gpu count"
    if counted and is_object(item) and COUNT.fullmatch(words):
        return f"{counted}s"  # {"gpu": "L4", "count": {"max": 6}}
    if not counted or words == "replicas" or not COUNT.fullmatch(words) or not is_number:
        return key
    return "gpus per node" if parent.startswith(EACH) else "nodes" if counted == "node" else f"{counted} count"


def named_nodes(key: str, value: Mapping[str, Any]) -> list[Any]:
    """Nodes under their names as a list, `{"gpu-a": {"gpus": 8}, "gpu-b": {"gpus": 8}}` under "hosts"; else empty."""
    is_named = len(value) > 1 and MACHINES.fullmatch(key_words(key)) and all(map(_NODE_NAME.fullmatch, value))
    nodes: list[Any] = [{"name": name, **item} for name, item in value.items() if is_named and is_object(item)]
    return nodes if len(nodes) == len(value) and all(map(_has_cards, nodes)) else []


def _has_cards(node: Mapping[str, Any]) -> bool:
    return any(_OF_CARDS.search(key_words(key)) or mentions(key) or mentions(str(item)) for key, item in node.items())


def weighed_layouts(key: str, items: list[Any]) -> str | None:
    """The words that weigh the layouts in a list under `key`, in plain words; `None` where it is no list of layouts."""
    if len(items) < 2 or not _WEIGHED.fullmatch(key):
        return None
    layouts = [item if isinstance(item, str) else _layout(item) for item in items]
    return f"compare {' or '.join(filter(None, layouts))}" if all(layouts) else None


def _layout(item: Any) -> str | None:
    """The degrees of a layout as words; `None` where it has something else than whole degrees and labels."""
    degrees = {key_words(name): value for name, value in item.items()} if is_object(item) else {}
    degrees = {name: value for name, value in degrees.items() if not _LABEL_OF_LAYOUT.fullmatch(name)}
    if not all(_DEGREE_OF_LAYOUT.fullmatch(name) and isinstance(value, int) for name, value in degrees.items()):
        return None
    return " ".join(f"{name} {value}" for name, value in degrees.items()) or None


def offered_hardware(key: str, items: list[Any]) -> dict[str, str] | None:
    """A list of hardware offers as a choice, and by its key what each says beside it; `None` where it is none."""
    if len(items) < 2 or not _OFFERS.fullmatch(key):
        return None
    offers: list[str] = []
    others: dict[str, list[str]] = {}
    for item in items:
        plain = {key_words(k): v for k, v in item.items()} if is_object(item) else {}
        card = next((v for k, v in plain.items() if GPU_KEY.fullmatch(k) and isinstance(v, str)), None)
        counts = (
            next((v for k, v in plain.items() if pattern.fullmatch(k)), None) for pattern in (_NODES_OF_OFFER, OF_EACH)
        )
        nodes, each = counts
        if card is None or not all(isinstance(n, int) for n in (nodes, each)):
            return None
        offers.append(f"{nodes} nodes with {each}x {card}")
        for name, value in plain.items():
            if value not in (card, nodes, each) and not re.fullmatch(IDENTITY, name):
                others.setdefault(name, []).append(f"{value} ({card})")
    return {"": " or ".join(offers), **{name: ", ".join(values) for name, values in others.items()}}


def is_choice(key: str, items: list[str]) -> bool:
    """Whether a list of words is a choice: by its key, or as a list of cards that its key does not rule out."""
    if _CHOICE_LIST.fullmatch(key):
        return True
    named = [mentions(item) for item in items]
    return all(len(cards) == 1 and cards[0].accelerator for cards in named) and not rules_out(key)


def are_kinds(items: list[Any]) -> bool:
    """Whether a list names different kinds of cards to choose from, not the cards themselves."""
    return all(isinstance(item, str) for item in items) and len({str(item).lower() for item in items}) == len(items)
