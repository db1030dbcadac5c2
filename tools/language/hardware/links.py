"""Link bandwidths, per GPU and one way; every conversion is stated as a reading.

Links inside a server are printed in bytes and for both directions together, networks in bits and one way.
"""

from __future__ import annotations

import math

from ...catalog.hardware import find_accelerator
from ...errors import UnknownNameError
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities
from .network import BOTH_WAYS, MOST_OF_A_CARD_GB_S, PER_GPU, PER_NODE, is_of_ethernet, read_networks

_LINKS = Gated(
    r"(?P<intra>(?<![a-z])(?:nv[\s\-]?link|nv[\s\-]?switch|xgmi|infinity\sfabric|hccs|ualink|intra[\s\-]?node|(?:inside|within)\s(?:a|each|the|one)\s(?:node|server|machine|box)|between\s(?:the\s)?(?:gpus|cards|boards)|(?:gpu|card|board|chip)[\s\-]to[\s\-](?:gpu|card|board|chip)|scale[\s\-]up)(?![a-z])|机内|节点内|卡间|片间)"
    r"|(?P<inter>(?<![a-z])(?:infini\s?band|ib|roce(?:v2)?|ethernet|nics?|inter[\s\-]?node|between\s(?:them|both(?:\sof\sthem)?|the\stwo)|(?:the|our|that|this)\s(?:up)?links?|between\s(?:the\s)?(?:nodes|servers|machines|boxes|hosts)|across\s(?:nodes|servers|machines)|network(?:ing)?|rdma|efa|hdr|ndr|scale[\s\-]out|connectx(?:-?\d)?)(?![a-z])|机间|节点间|跨机|网络|网卡|网口|以太网)"
    r"|(?P<other>(?<![a-z])(?:memory\sbandwidth|hbm\w{0,3}|pcie)(?![a-z])|显存带宽)",
)
# "PCIe 4.0 x8", "Gen5 x16": its numbers are no bandwidths.
_LANES = Gated(
    r"(?<![a-z])(?:pci-?e(?:xpress)?\s?[3-7]\.0|(?:pci-?e(?:xpress)?\s)?gen\s?[3-7](?:\.0)?)(?!\d)(?:\s?x\s?\d{1,2}(?![\dA-Za-z]))?",
)
# A bare number that a key calls a bandwidth ("intra node bw: 300").
_CALLED_BANDWIDTH = Gated(r"(?:(?<![a-z])(?:bw|bandwidth|network)|带宽)\s?[:=]\s?$")
_SOME_LINKS = Gated(r"(?<![a-z])links?(?![a-z])")
_ONE_WAY = Gated(r"one[\s\-]way|uni[\s\-]?directional|per\sdirection|each\s(?:way|direction)|单向")
_VENDOR = Gated(r"nv[\s\-]?link|nv[\s\-]?switch|xgmi|infinity|hccs|ualink")
# "no NVLink", "PCIe gen4 only": of the cards of a node, not of what is between nodes.
_NO_NVLINK = Gated(
    r"(?:(?:(?<![a-z])(?:no|without|w/o|lacks?|lacking)|not\shave|n't\shave|没有?|无|不带)\s?(?:any\s|an?\s|the\s)?nv[\s\-]?link"
    r"(?:\s(?:bridges?|switch))?|(?<![a-z])nv[\s\-]?link\s?[:=]?\s?(?:no(?:ne|t\s(?:available|there|present))?|off|absent|missing|false)(?![a-z])|"
    r"(?<![a-z])pci-?e(?:xpress)?(?:\s?(?:[3-7]\.0|gen\s?[3-7]))?(?:\sx\s?\d{1,2})?\s(?:links?\s)?only(?![a-z])|"
    r"(?<![a-z])only\s(?:over\s|via\s|by\s)?pci-?e(?:xpress)?(?![a-z])|[只仅](?:有|走)?pci-?e)(?![^,.;\n]{0,20}(?:between|across)\s(?:the\s)?(?:nodes|servers|machines|boxes|hosts))",
)
_LINKED_BY_NAME = Gated(r"sxm|hgx|dgx|nvl")
_SAME = 0.03


def read_links(page: Page, claims: Claims) -> None:
    """Read link bandwidths per GPU, one way; NVLink figures are for both directions unless words say otherwise."""
    page.take_all(_LANES)
    read_networks(page, claims)
    mentions = [(str(match.lastgroup), match.start(), match.end()) for match in page.search(_LINKS)]
    for quantity in find_quantities(page.text):
        bare_g = quantity.unit == "bytes" and quantity.spelled.lower() in ("g", "gig", "gb")
        called = quantity.unit == "count" and _CALLED_BANDWIDTH.search(page.text[: quantity.start][-24:])
        if quantity.unit != "GB/s" and not bare_g and not called:
            continue
        left, right = page.clause(quantity.start, quantity.end)
        near = [
            (max(s - quantity.end, quantity.start - e), kind) for kind, s, e in mentions if left <= s and e <= right
        ]
        kind = min(near)[1] if near else None
        if kind is None and quantity.spelled[:2] in ("Gb", "Tb") and PER_NODE.match(page.text[quantity.end :].lstrip()):
            kind = "inter"  # "3.2 Tbit/s per node"
        if kind is None and quantity.spelled[1:2] == "B" and _SOME_LINKS.search(page.text, left, right):
            kind = "intra"  # "links 150 GB/s"
        if kind is None and quantity.spelled.lower() == "gbe":
            kind = "inter"
        if kind not in ("intra", "inter") or (bare_g and (kind != "inter" or quantity.spelled.lower() == "gb")):
            continue
        _claim_link(page, claims, quantity, kind, (left, right))


def settle_missing_nvlink(page: Page, claims: Claims) -> None:
    """Take the PCIe kind of a card of which the words leave the kind open, where they say that NVLink is missing."""
    for match in _NO_NVLINK.finditer(page.original):
        if not claims.has("accelerator"):
            return
        card, words = find_accelerator(claims.values["accelerator"]), claims.words["accelerator"]
        if (card.scale_up_domain_accelerators or 1) > 1:
            try:
                over_pcie = find_accelerator(card.id.replace("-sxm", "-pcie"))
            except UnknownNameError:
                over_pcie = card
            if over_pcie is card or _LINKED_BY_NAME.search(words):
                claims.leave_unread(f"{match.group()!r} was not understood: {card.id} has NVLink")
                continue
            claims.replace("accelerator", over_pcie.id, words)
            claims.reading(f"{words!r} read as {over_pcie.id}: {match.group()!r}")
        page.take(*match.span())


def _claim_link(page: Page, claims: Claims, quantity: Quantity, kind: str, clause: tuple[int, int]) -> None:
    end = clause[1]
    if page.original[end : end + 1] == "(" or page.original[end : end + 2] == " (":  # "NVLink 450 GB/s (one way)"
        end = page.original.find(")", end, end + 60)
    clause_words = page.original[clause[0] : max(end, clause[1])].strip()
    value, note = (_intra if kind == "intra" else _inter)(claims, quantity, clause_words)
    is_large = value > MOST_OF_A_CARD_GB_S or PER_NODE.search(clause_words) or is_of_ethernet(8 * value, clause_words)
    words = page.take(quantity.start, quantity.end)
    field = f"{kind}_node_bw_gb_s"
    if kind == "inter" and is_large and not PER_GPU.search(clause_words):
        claims.claim(f"{field}_per_node", value, f"{words} per node")
        return
    claims.claim(field, value, words)
    claims.reading(f"{words!r} read as {note}: {value:g} GB/s per GPU, one way")


def _intra(claims: Claims, quantity: Quantity, clause: str) -> tuple[float, str]:
    """A link inside a server, GB/s one way; a figure that equals the catalogue's is read as the catalogue has it."""
    value = quantity.decimal_value
    known = find_accelerator(claims.values["accelerator"]) if claims.has("accelerator") else None
    one_way = known.intra_node_bw_gb_s_unidirectional_per_accelerator if known else None
    both = known.intra_node_bw_gb_s_bidirectional_per_accelerator if known else None
    is_bits = quantity.spelled[:2] in ("Gb", "Tb") or "bit" in quantity.spelled.lower()
    if quantity.spelled == "gbps" or (is_bits and any(_near(value * 8, figure) for figure in (one_way, both))):
        value *= 8
    if BOTH_WAYS.search(clause):
        return value / 2, "both directions together, half of it one way"
    if _ONE_WAY.search(clause) or _near(value, one_way):
        return value, "GB/s one way per GPU"
    if _near(value, both) or (_VENDOR.search(clause) and not PER_GPU.search(clause)):
        return value / 2, "both directions together, half of it one way"
    return value, "GB/s one way per GPU"


def _inter(claims: Claims, quantity: Quantity, clause: str) -> tuple[float, str]:
    """A network, GB/s one way; "200G", "gb/s" and a bare figure from 100 on are Gbit/s, as networks are named."""
    value, note = quantity.decimal_value, "GB/s one way per GPU"
    if quantity.unit == "bytes":
        value, note = value / 1e9 / 8, "Gbit/s"
    elif quantity.spelled == "gb/s" or (quantity.unit == "count" and value >= 100):
        value, note = value / 8, "Gbit/s, as networks are named"
    elif quantity.spelled[:2] in ("Gb", "Tb") or quantity.spelled == "gbps" or "bit" in quantity.spelled.lower():
        note = "Gbit/s"
    if BOTH_WAYS.search(clause):
        return value / 2, "both directions together, half of it one way"
    return value, note


def _near(value: float, figure: float | None) -> bool:
    return figure is not None and math.isclose(value, figure, rel_tol=_SAME)
