"""The network between nodes as people name it: by its kind, its ports and the speed of each.

"8x 400G CX-7 per node", "dual 100G NICs", "HDR 200 x4", "NDR InfiniBand", "3.2 Tb EFA", "25 GbE", "双口 25G 以太网".

A figure with ports is the sum of a node's ports. So is a figure of Ethernet, of which a server has a port or two; a
single figure of InfiniBand or RoCE is per GPU, as servers for inference have an adapter for each.
"""

from __future__ import annotations

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import read_whole

# Gbit/s of one port, by the name of its generation (InfiniBand Trade Association, 4X links).
_GENERATIONS = {"qdr": 40, "fdr": 56, "edr": 100, "hdr": 200, "ndr": 400, "xdr": 800}
_GENERATION = "|".join(_GENERATIONS)
_ETHERNET = r"(?:gigabit\s)?ethernet|以太网?|ena|gvnic|gbe"
_FABRIC = (
    rf"infini\s?band|ib|roce(?:\s?v?2)?|rdma|efa(?:\s?v\d)?|connect-?x(?:[\s\-]?\d)?|cx[\s\-]?\d|bluefield(?:[\s\-]?\d)?|"
    rf"slingshot(?:[\s\-]?\d\d?)?|omni-?path|opa|gpudirect|tcpxo?|mellanox|quantum(?:-?\d)?|{_GENERATION}"
)
_NAME = rf"(?<![a-z])(?:{_FABRIC}|{_ETHERNET})(?![a-z])"
_NOUN = (
    r"(?:nics?|ports?|links?|uplinks?|rails?|hcas?|adapters?|interfaces?|network\scards?|bond(?:ed)?|lags?)(?![a-z])|"
    r"网卡|网口|光口|口"
)
_NODES = r"(?:nodes?|servers?|machines?|box(?:es)?|hosts?|them|two|both|instances?|vms?)(?![a-z])"
_PORTS = r"\d{1,2}|one|two|three|four|six|eight|an?|single|dual|twin|double|quad|[单双一两二三四六八]"
_FEW = {"single": 1, "a": 1, "an": 1, "dual": 2, "twin": 2, "double": 2, "quad": 4, "单": 1, "双": 2}
_SPEEDS = r"(?:1|2\.5|10|25|40|50|56|100|200|400|800|1600|\d\.\d)(?![\d.])"
_UNIT = r"(?:t(?:b(?:it)?)?|g(?:b(?:e|it)?|e|ig(?:abits?|e)?)?)(?:\s?/\s?s(?:ec)?|ps)?(?![a-z/])"
_FIGURE = Gated(
    rf"(?:(?P<lead>{_NAME})(?:[\s:]{{0,2}}|,\s(?=\d{{1,2}}\s?[x*]\s?\d)))?"
    rf"(?:(?<![A-Za-z0-9.])(?P<ports>{_PORTS})(?:\s?[x*个张块条口路]\s?|[\s\-]))?"
    rf"(?P<ahead>(?:{_NAME}[\s\-]{{0,2}}){{0,3}})"
    rf"(?<![\d.,])(?P<speed>{_SPEEDS})\s?(?P<unit>{_UNIT})?"
    rf"(?P<behind>(?:[\s\-/]{{0,2}}{_NAME}){{0,3}})"
    rf"(?:[\s\-]?的?(?P<noun>{_NOUN}))?"
    r"(?:\s?[x*]\s?(?P<ports2>\d{1,2})(?![\w.]))?"
    rf"(?:\s(?:between|among|across|joining|linking)\s(?:the\s|our\s|these\s){{0,2}}(?:two\s)?(?:{_NODES}))?",
)
_GENERATION_ALONE = Gated(
    rf"(?:(?<![A-Za-z0-9.])(?P<ports>{_PORTS})[\s\-]?(?:[x*]|rail|port)[\s\-]?)?(?<![a-z])(?P<name>{_GENERATION})(?![\s\-]?\d)(?![a-z])(?:[\s\-]{{1,2}}(?:{_NAME}))?"
    rf"(?:\s(?:between|among|across|joining|linking)\s(?:the\s|our\s|these\s){{0,2}}(?:two\s)?(?:{_NODES}))?",
)
_IS_ETHERNET = Gated(rf"(?<![a-z])(?:{_ETHERNET})(?![a-z])")
_IS_FABRIC = Gated(rf"(?<![a-z])(?:{_FABRIC})(?![a-z])")
_ONLY_ETHERNET_GBIT = (1, 2.5, 5, 10, 25)
_BETWEEN_NODES = Gated(
    rf"(?<![a-z])(?:between|across|inter)[\s\-](?:(?:the|our|these)\s){{0,2}}(?:two\s)?(?:{_NODES})|"
    r"(?<![a-z])(?:network(?:ing)?|interconnect|inter-?node)(?![a-z])|机间|节点间|跨机|跨节点|网络"
)
# Names of products whose numbers are no figures: "ConnectX-7", "Slingshot-11".
_PRODUCT = Gated(r"(?<![a-z])(?:connect-?x|cx|bluefield|slingshot|quantum|efa\s?v)[\s\-]?\d{1,2}(?![\w.])")
PER_NODE = Gated(
    r"(?:per|/|each|every|a)\s?(?:node|server|machine|host|box|instance|vm)(?![a-z])|"
    r"每\s?(?:[台机]|[台个]?\s?(?:节点|机器|服务器))|单机"
)
PER_GPU = Gated(
    r"(?:per|/|each|every|a)\s?(?:single\s)?(?:gpu|card|accelerator)(?![a-z])|每\s?[张块个]?\s?(?:卡|gpu)|单卡"
)
BOTH_WAYS = Gated(r"bi[\s\-]?dir(?:ectional)?|both\s(?:ways|directions)|two[\s\-]way|full[\s\-]duplex|双向")
_NEAR = 16
_LEAST_BARE_GBIT = 25
_GBIT_PER_GB = 8.0
# GB/s of a network one way: a larger figure is that of a whole node.
MOST_OF_A_CARD_GB_S = 200.0


def is_of_ethernet(gbit: float, words: str) -> bool:
    """Whether a figure of these words is that of Ethernet: called so, or of a speed that nothing else has."""
    return _IS_ETHERNET.search(words) is not None or (
        gbit in _ONLY_ETHERNET_GBIT and _IS_FABRIC.search(words) is None and PER_GPU.search(words) is None
    )


def read_networks(page: Page, claims: Claims) -> None:
    """Read networks that are named or whose ports are counted; GB/s one way, of a GPU or of a whole node."""
    for match in page.search(_FIGURE):
        names = f"{match['lead'] or ''} {match['ahead']} {match['behind']}".strip()
        ports, unit = match["ports"] or match["ports2"], match["unit"] or ""
        clause = page.clause_text(*match.span())
        after = page.text[match.end() : match.end() + _NEAR].lstrip()
        if not unit and float(match["speed"]) < _LEAST_BARE_GBIT:
            continue
        is_network = names or match["noun"] or unit.lower() in ("gbe", "ge", "gige") or PER_GPU.match(after)
        is_counted = ports is not None and unit and (_BETWEEN_NODES.search(clause) or PER_NODE.search(clause))
        # "80GB" and "900 GB/s" are bytes: a port's figure is in bits.
        if not (is_network or is_counted) or "GB" in unit.replace("GBE", "").replace("GBPS", "") or "TB" in unit:
            continue
        gbit = float(match["speed"]) * (1000 if unit.lower().startswith("t") else 1)
        is_of_gpu = PER_GPU.search(clause) is not None
        words = page.take(*match.span())
        of_node = (
            ports is not None or is_of_ethernet(gbit, f"{names} {unit}") or gbit > MOST_OF_A_CARD_GB_S * _GBIT_PER_GB
        )
        _claim(claims, gbit * _count(ports) / _GBIT_PER_GB, words, of_node=of_node and not is_of_gpu)
    for match in page.search(_GENERATION_ALONE):
        is_known = claims.has("inter_node_bw_gb_s") or claims.has("inter_node_bw_gb_s_per_node")
        words = page.take(*match.span())
        if not is_known:
            gbit = _GENERATIONS[match["name"].lower()] * _count(match["ports"])
            _claim(claims, gbit / _GBIT_PER_GB, words, of_node=match["ports"] is not None)
    page.take_all(_PRODUCT)


def _count(ports: str | None) -> int:
    return 1 if ports is None else _FEW.get(ports.lower()) or read_whole(ports) or 1


def _claim(claims: Claims, gb_s: float, words: str, *, of_node: bool) -> None:
    if of_node:
        claims.claim("inter_node_bw_gb_s_per_node", gb_s, words)
        return
    claims.claim("inter_node_bw_gb_s", gb_s, words)
    claims.reading(f"{words!r} read as {gb_s * _GBIT_PER_GB:g} Gbit/s: {gb_s:g} GB/s per GPU, one way")
