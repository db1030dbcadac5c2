"""Memory of the host that keeps blocks of the KV cache, in words: how much of it each GPU has, and over which link."""

from __future__ import annotations

import re

from ...plan.kv_offload import KVOffload
from ..conflicts.claims import Claims
from ..load.prefixes import checked
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities
from .network import BOTH_WAYS, PER_GPU, PER_NODE

_KV = r"kv(?:[\s_-]?cache)?(?:\s?(?:blocks?|pages?|缓存))?"
_MOVED = r"(?:off-?load|spill|evict|swap|demot)(?:s|ed|ing|ped|ping|e|es)?"
_HOST = r"(?:host|cpu|system|main)\s?(?:(?:side\s)?(?:memory|d?ram)|内存)|(?:内存|主存)"
_OFFLOAD = Gated(
    rf"(?<![a-z]){_MOVED}\s(?:of\s)?(?:(?:the|our|its|all|evicted|cold|old|unused|idle)\s){{0,3}}{_KV}(?![a-z])"
    rf"|(?<![a-z]){_KV}[\s_-]{_MOVED}(?![a-z])"
    rf"|(?<![a-z]){_KV}\s(?:[a-z]+\s){{0,3}}(?:to|in|into|on)\s[^.;\n]{{0,20}}?(?:{_HOST})(?![a-z])"
    rf"|(?<![a-z])(?:{_HOST})\s(?:per|for\seach)\s(?:gpu|card)\s(?:[a-z]+\s){{0,3}}{_KV}(?:\s{_MOVED})?(?![a-z])"
    rf"|(?<![a-z]){_KV}\s?的?\s?(?:卸载|下沉|换出|溢出)|(?:卸载|下沉|换出|溢出)\s?{_KV}(?![a-z])"
    rf"|(?<![a-z]){_KV}\s?(?:放|存|换|写|移)?(?:到|在|进|至)\s?(?:主机|cpu|系统)?\s?(?:内存|主存)",
)
_DISK = Gated(r"(?<![a-z])(?:nvme|ssds?|disks?|storage|s3|nfs)(?![a-z])|硬盘|磁盘|固态")
_OTHER_LINK = Gated(r"nv[\s-]?link(?!-?c2c)|infini|(?<![a-z])(?:ib|roce|rdma|ethernet|network)(?![a-z])|网")
# As keys of files have it, units before the figure: "kv_offload_gb_per_gpu: 200".
_KEYED = Gated(
    r"(?<![a-z])kv[\s_-](?:cache[\s_-])?offload(?:ing)?[\s_](?:size[\s_])?(?P<unit>bytes|gi?b|ti?b)[\s_]per[\s_](?P<of>gpu|node)"
    r"\s?[:=]\s?(?P<n>\d[\d.,_]*)(?!\w)",
)
_SIZES = {"bytes": 1, "gb": 10**9, "gib": 2**30, "tb": 10**12, "tib": 2**40}
_HOST_LINK = Gated(
    r"(?<![a-z])(?:host|pci-?e(?:xpress)?|nvlink-?c2c|c2c)\s?(?:link|bw|bandwidth|带宽)?(?:\sgb\ss)?\s?(?:is|of|at|=|:|为|是)?"
    r"\s?(?P<n>\d[\d.]{0,8})\s?(?P<unit>gb/s)?(?=\s?(?:[,;.)\n]|$)|[^\w])|主机(?:链路)?带宽\s?(?:为|是|:)?\s?(?P<m>\d[\d.]{0,8})\s?gb/s",
)
# Claims that are no fields: bytes of a node, until its GPUs are counted; the host's link.
SIZE_OF_NODE, LINK = "kv_offload_per_node", "kv_offload_gb_s"


def read_offload(page: Page, claims: Claims) -> None:
    """Read how much memory of the host keeps blocks of the KV cache, per GPU or per node, and how fast its link is."""
    for match in page.search(_KEYED):
        words = page.take(*match.span())
        size = round(float(re.sub("[,_]", "", match["n"])) * _SIZES[match["unit"].lower()])
        _claim_size(claims, size, words, of_gpu=match["of"].lower() == "gpu")
    for match in page.search(_OFFLOAD):
        start, end = page.sentence(*match.span())
        if page.is_negated(*match.span()):
            page.take(*match.span())
            continue
        if claims.has("kv_offload") or claims.has(SIZE_OF_NODE):
            continue
        quantities = [figure for figure in find_quantities(page.text) if start <= figure.start and figure.end <= end]
        sizes = [figure for figure in quantities if figure.unit == "bytes"]
        words = page.original[match.start() : match.end()].strip()
        if _DISK.search(page.original[start:end]):
            claims.leave_unread(f"{words!r}: blocks of the KV cache on disks are not simulated")
        elif len(sizes) != 1:
            claims.leave_unread(f"{words!r}: say how many GB of host memory each GPU has for it")
        else:
            _claim(page, claims, sizes[0], [figure for figure in quantities if figure.unit == "GB/s"], (start, end))
        page.take(*match.span())
    if claims.has("kv_offload") or claims.has(SIZE_OF_NODE):
        for match in page.search(_HOST_LINK) if not claims.has(LINK) else ():
            if match["m"] or match["unit"] or "bw" in match.group().lower():
                claims.claim(LINK, float(match["m"] or match["n"]), page.take(*match.span()))


def _claim(page: Page, claims: Claims, size: Quantity, speeds: list[Quantity], sentence: tuple[int, int]) -> None:
    """Claim `size` per GPU or per node, by the words nearest to it."""
    marks = [(kind, mark) for kind in (PER_GPU, PER_NODE) for mark in kind.finditer(page.original, *sentence)]
    figure = page.original[size.start : size.end]
    if not marks:
        claims.leave_unread(f"{figure!r} of host memory for the KV cache: say whether each GPU or each node has it")
        page.take(size.start, size.end)
        return
    kind, mark = min(marks, key=lambda pair: max(pair[1].start() - size.end, size.start - pair[1].end()))
    words = page.original[min(size.start, mark.start()) : max(size.end, mark.end())].strip()
    for speed in speeds[:1]:
        if not _OTHER_LINK.search(page.original[sentence[0] : sentence[1]]):
            both = BOTH_WAYS.search(page.original[speed.end : speed.end + 30])
            claims.claim(LINK, speed.decimal_value / (2 if both else 1), page.take(speed.start, speed.end))
    page.take(size.start, size.end)
    page.take(*mark.span())
    _claim_size(claims, round(size.decimal_value), words, of_gpu=kind is PER_GPU)


def _claim_size(claims: Claims, size: int, words: str, *, of_gpu: bool) -> None:
    offload = checked(claims, KVOffload, {"bytes_per_gpu": size}, [words])
    claims.claim("kv_offload" if of_gpu else SIZE_OF_NODE, offload, words)


def settle_offload(claims: Claims) -> None:
    """Put the size and the link together; the memory of a node is that of its GPUs, where these are counted."""
    gb_s, link_words = claims.drop(LINK)
    if claims.has(SIZE_OF_NODE):
        _share_node(claims)
    offload, words = claims.values.get("kv_offload"), claims.words.get("kv_offload", "")
    if offload is not None and gb_s is not None:
        offload = checked(claims, KVOffload, {**dict(offload), "host_bw_gb_s": gb_s}, [link_words])
        claims.replace("kv_offload", offload, f"{words}, {link_words}")
    if offload is not None:
        claims.reading(f"{claims.words['kv_offload']!r} read as {offload}")


def _share_node(claims: Claims) -> None:
    offload, words = claims.drop(SIZE_OF_NODE)
    per_node = claims.gpus_of_node
    if not per_node:
        claims.leave_unread(f"{words!r}: host memory of a node is shared out only where its GPUs are counted")
        return
    claims.claim("kv_offload", offload.model_copy(update={"bytes_per_gpu": offload.bytes_per_gpu // per_node}), words)
