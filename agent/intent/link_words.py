"""Link bandwidths of a request, per GPU and one way; every conversion is stated as a reading."""

from __future__ import annotations

import re

from .claims import Claims
from .page import Page
from .quantities import Quantity, find_quantities

_LINKS = re.compile(
    r"(?P<intra>(?<![a-z])(?:nv[\s\-]?link|nv[\s\-]?switch|xgmi|infinity\sfabric|intra[\s\-]?node|(?:inside|within)\s(?:a|each|the|one)\s(?:node|server|machine|box)|between\s(?:the\s)?gpus|gpu[\s\-]to[\s\-]gpu|scale[\s\-]up)(?![a-z])|机内|节点内|卡间)"
    r"|(?P<inter>(?<![a-z])(?:infiniband|ib|roce(?:v2)?|ethernet|nics?|inter[\s\-]?node|between\s(?:the\s)?(?:nodes|servers|machines|boxes|hosts)|across\s(?:nodes|servers|machines)|network(?:ing)?|rdma|efa|hdr|ndr|scale[\s\-]out|connectx(?:-?\d)?)(?![a-z])|机间|节点间|跨机|网络|网卡)"
    r"|(?P<other>(?<![a-z])(?:memory\sbandwidth|hbm\w{0,3}|pcie)(?![a-z])|显存带宽)",
    re.IGNORECASE,
)
_PER_NODE = re.compile(r"(?:per|/|each)\s?(?:node|server|machine|host|box)(?![a-z])|每(?:台|节点|机)", re.IGNORECASE)
_ONE_WAY = re.compile(r"one[\s\-]way|uni[\s\-]?directional|per\sdirection|each\s(?:way|direction)|单向", re.IGNORECASE)
_BOTH_WAYS = re.compile(
    r"bi[\s\-]?directional|both\s(?:ways|directions)|two[\s\-]way|full[\s\-]duplex|双向", re.IGNORECASE
)


def read_links(page: Page, claims: Claims) -> None:
    """Read link bandwidths per GPU, one way. NVLink figures are printed for both directions together unless said."""
    mentions = [(str(match.lastgroup), match.start(), match.end()) for match in page.search(_LINKS)]
    for quantity in find_quantities(page.text):
        bare_g = quantity.unit == "bytes" and quantity.spelled.lower() in ("g", "gb")
        if quantity.unit != "GB/s" and not bare_g:
            continue
        left, right = page.clause(quantity.start, quantity.end)
        near = [
            (max(s - quantity.end, quantity.start - e), kind) for kind, s, e in mentions if left <= s and e <= right
        ]
        kind = min(near)[1] if near else None
        if kind not in ("intra", "inter") or (bare_g and (kind != "inter" or quantity.spelled.lower() != "g")):
            continue
        _claim_link(page, claims, quantity, kind, (left, right))


def _claim_link(page: Page, claims: Claims, quantity: Quantity, kind: str, clause: tuple[int, int]) -> None:
    end = clause[1]
    if page.original[end : end + 1] == "(" or page.original[end : end + 2] == " (":  # "NVLink 450 GB/s (one way)"
        end = page.original.find(")", end, end + 60)
    clause_words = page.original[clause[0] : max(end, clause[1])].strip()
    value = quantity.decimal_value
    note = "GB/s one way per GPU"
    if quantity.unit == "bytes":
        value = quantity.decimal_value / 1e9 / 8
        note = "Gbit/s"
    elif kind == "inter" and quantity.spelled == "gb/s":
        value, note = value / 8, "Gbit/s, as networks are named"
    if _BOTH_WAYS.search(clause_words) or (
        kind == "intra" and not _ONE_WAY.search(clause_words) and _is_vendor_figure(clause_words)
    ):
        value, note = value / 2, "both directions together, half of it one way"
    elif quantity.spelled[:2] in ("Gb", "Tb") or "bit" in quantity.spelled.lower():
        note = "Gbit/s"
    words = page.take(quantity.start, quantity.end)
    field = f"{kind}_node_bw_gb_s"
    if kind == "inter" and _PER_NODE.search(clause_words):
        claims.claim(f"{field}_per_node", value, f"{words} per node")
        return
    claims.claim(field, value, words)
    claims.reading(f"{words!r} read as {note}: {value:g} GB/s per GPU, one way")


def _is_vendor_figure(words: str) -> bool:
    """NVLink, NVSwitch, xGMI: their vendors print the sum of both directions."""
    return re.search(r"nv[\s\-]?link|nv[\s\-]?switch|xgmi|infinity", words, re.IGNORECASE) is not None
