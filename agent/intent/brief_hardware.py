"""How many cards on how many servers, and their links: put together from facts, with the card of `brief_card.py`.

A total that is not servers times cards per server is refused with both places. Links are kept per card, one way.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ...tools.bounds import BANDWIDTH_GB_S, DEGREE
from ...tools.catalog.accelerators import Accelerator
from .brief_card import gigabytes
from .brief_facts import Fact, Facts, only, show
from .brief_lexicon import INTER
from .errors import BriefError

_STRATEGY = re.compile(r"strateg|parallel|\bshard|策略|并行|切分")
_BOTH = re.compile(r"bi ?directional|both (?:ways|directions)|two way|full duplex|\bbidir\w*|双向|send and receive")
_ONE = re.compile(r"one way|uni ?directional|(?:per|each|in one|single) direction|each way|\bunidir\w*|单向")
_VENDOR = re.compile(r"nvlink|nvswitch|xgmi|infinity fabric|hccs|ualink")
_PER_NODE = re.compile(r"(?:per|/|each|a) ?(?:node|server|host|machine|box)\b|每(?:台|个?节点|个?服务器|机)|整机")
_PHASE = re.compile(r"prefill|decod")
_SAME = 0.03


def read_counts(facts: Facts) -> dict[str, Any]:
    """Fields of `Said` about counts: nodes, gpus_per_node, gpus, gpus_open.

    Raises:
        BriefError: two counts that contradict each other, with both places.
    """
    said: dict[str, Any] = {}
    hardware = [fact for fact in facts.of("gpus") if not is_of_strategy(fact)]
    total = total_gpus(facts, [_counted(facts, fact) for fact in hardware])
    # "Any number of cards; a server holds 8": the article counts nothing.
    open_at = {fact.where for fact in facts.of("gpus_open")}
    stated = [fact for fact in facts.of("nodes") if fact.value != 1 or fact.where not in open_at]
    nodes = only("number of nodes", [_counted(facts, fact) for fact in stated])
    per_node = only("GPUs per node", [_counted(facts, fact) for fact in facts.of("gpus_per_node")])
    for name, fact in (("nodes", nodes), ("gpus_per_node", per_node), ("gpus", total)):
        if fact is not None:
            said[name] = fact.value
    if nodes is not None and total is not None:
        if per_node is not None and nodes.value * per_node.value != total.value:
            raise BriefError(
                f"{total.value} GPUs at {total.where}, but {nodes.value} x {per_node.value} = "
                f"{nodes.value * per_node.value} at {nodes.where}; mend one"
            )
        if total.value % nodes.value:
            raise BriefError(
                f"{total.value} GPUs at {total.where} do not divide over {nodes.value} nodes at {nodes.where}"
            )
    is_closed = total is not None or nodes is not None
    open_facts = facts.of("gpus_open")
    if open_facts and is_closed:
        closed = total or nodes
        raise BriefError(
            f"the number of cards is open at {open_facts[0].where}, but stated at {closed.where if closed else ''}; "
            "keep one"
        )
    if open_facts or (facts.of("fewest") and not is_closed):
        said["gpus_open"] = True
    return said


def total_gpus(facts: Facts, counts: list[Fact]) -> Fact | None:
    """The one number of GPUs; counts of prefill and of decode that differ add up.

    Raises:
        BriefError: two places state different totals.
    """
    by_phase: dict[str, list[Fact]] = {}
    for fact in counts:
        found = {match[0][:4] for match in _PHASE.finditer(fact.context)}
        by_phase.setdefault(found.pop() if len(found) == 1 else "", []).append(fact)
    total, prefill, decode = (only("number of GPUs", by_phase.get(phase, [])) for phase in ("", "pref", "deco"))
    if prefill is None or decode is None:
        return only("number of GPUs", [fact for fact in (total, prefill, decode) if fact is not None])
    if total is not None and total.value in (prefill.value, decode.value, prefill.value + decode.value):
        return total
    if prefill.value == decode.value:
        return only("number of GPUs", [fact for fact in (prefill, total) if fact is not None])
    both = Fact(prefill.field, prefill.value + decode.value, f"{prefill.words} + {decode.words}", prefill.where)
    facts.reading(f"{both.words}: GPUs of their own for prefill and for decode, {both.value} in all")
    return only("number of GPUs", [fact for fact in (both, total) if fact is not None])


def is_of_strategy(fact: Fact) -> bool:
    """Whether a count of GPUs belongs to a stated parallel strategy, not to the hardware."""
    return bool(_STRATEGY.search(fact.context))


def _counted(facts: Facts, fact: Fact) -> Fact:
    value = fact.value
    if fact.quantity is not None and fact.quantity.upper is not None:
        value = fact.quantity.upper
        facts.reading(f"{fact.words}: read as up to {value:g}")
    elif fact.bound == "high":
        facts.reading(f"{fact.words}: an upper bound, read as what there is")
    if not DEGREE.hold(value) or value != int(value):
        raise BriefError(f"{fact.where}: {show(value)} is no count of hardware; write a whole number from 1 on")
    return Fact(fact.field, int(value), fact.words, fact.where, fact.context)


def read_links(facts: Facts, base: Accelerator | None, gpus_per_node: int | None) -> dict[str, float]:
    """`intra_node_bw_gb_s` and `inter_node_bw_gb_s`: 10^9 bytes/s of one card, one way.

    Raises:
        BriefError: two figures for one link, or an impossible one.
    """
    links: dict[str, float] = {}
    intra = [_with(fact, _intra(facts, fact, base)) for fact in facts.of("intra_node_bw")]
    inter = [_with(fact, value) for fact in facts.of("inter_node_bw") if (value := _inter(facts, fact, gpus_per_node))]
    for name, found in (("intra_node_bw_gb_s", intra), ("inter_node_bw_gb_s", inter)):
        fact = only(name, found)
        if fact is not None:
            if not BANDWIDTH_GB_S.hold(fact.value):
                least, most = BANDWIDTH_GB_S
                raise BriefError(
                    f"{fact.where}: {show(fact.value)} GB/s is no bandwidth; write a figure from {least:g} to {most:g}"
                )
            links[name] = fact.value
    return links


def _intra(facts: Facts, fact: Fact, base: Accelerator | None) -> float:
    value = _rate(fact)
    one_way = base.intra_node_bw_gb_s_unidirectional_per_accelerator if base else None
    both = base.intra_node_bw_gb_s_bidirectional_per_accelerator if base else None
    spelled = fact.quantity.spelled if fact.quantity is not None else ""
    known = [figure for figure in (one_way, both) if figure is not None]
    is_printed = any(math.isclose(value * 8, figure, rel_tol=_SAME) for figure in known)
    if spelled == "gbps" or (spelled[:2] == "Gb" and is_printed):
        value *= 8  # was read as bits; links inside a server are printed in bytes
        facts.reading(f"{fact.words}: gbps of a link inside a server read as GB/s")
    if _ONE.search(fact.near) or (_ONE.search(fact.context) and not _BOTH.search(fact.near)):
        return value
    if _BOTH.search(fact.near) or _BOTH.search(fact.context):
        facts.reading(f"{fact.words}: both directions together, {value / 2:g} GB/s one way")
        return value / 2
    if one_way is not None and math.isclose(value, one_way, rel_tol=_SAME):
        return value
    is_both = both is not None and math.isclose(value, both, rel_tol=_SAME)
    if is_both or (_VENDOR.search(fact.context) and not _own_word(fact)):
        why = f"as {base.id}'s figure is printed" if is_both and base else "as vendors print it"
        facts.reading(f"{fact.words}: read as both directions together, {why}: {value / 2:g} GB/s one way")
        return value / 2
    facts.reading(f"{fact.words}: read as {value:g} GB/s of one card, one way")
    return value


def _own_word(fact: Fact) -> bool:
    """Whether the figure is said of one card inside a server in plain words, beside the vendor's name."""
    return bool(re.search(r"per (?:card|gpu)|每卡", fact.near))


def _inter(facts: Facts, fact: Fact, gpus_per_node: int | None) -> float | None:
    value, quantity = _rate(fact), fact.quantity
    spelled = quantity.spelled if quantity is not None else ""
    if quantity is not None and quantity.unit == "count":
        is_bits = value >= 100
        facts.reading(f"{fact.words}: a network figure without a unit read as {'Gbit/s' if is_bits else 'GB/s'}")
        value = value / 8 if is_bits else value
    elif quantity is not None and quantity.unit == "bytes":
        value /= 8
        facts.reading(f"{fact.words}: read as Gbit/s, as networks are named: {value:g} GB/s")
    elif "bit" in spelled.lower() or spelled[:2] in ("Gb", "Tb") or spelled in ("gbps", "tbps"):
        facts.reading(f"{fact.words}: read as Gbit/s: {value:g} GB/s")
    if _BOTH.search(fact.near) and not _ONE.search(fact.near):
        value /= 2
        facts.reading(f"{fact.words}: both directions together, {value:g} GB/s one way")
    own = " : ".join(fact.context.split(" : ")[-2:])
    if _PER_NODE.search(own) and not re.search(rf"per (?:card|gpu)|每卡|(?:{INTER}) ?per gpu", own):
        if gpus_per_node is None:
            facts.leave_unread(
                f"{fact.words}: a bandwidth per server is read only where the cards per server are stated"
            )
            return None
        if quantity is not None and (
            ports := re.search(rf"(\d{{1,3}})\s?[x×*]\s?{re.escape(quantity.words)}", fact.words)
        ):
            value *= int(ports[1])
        value /= gpus_per_node
        facts.reading(f"{fact.words}: of a whole server, {value:g} GB/s for each of its {gpus_per_node} cards")
    return value


def _rate(fact: Fact) -> float:
    if fact.quantity is not None and fact.quantity.unit == "bytes":
        return fact.value / 1e9
    return gigabytes(fact)


def _with(fact: Fact, value: float) -> Fact:
    return Fact(fact.field, round(value, 9), fact.words, fact.where)
