"""Memory of each GPU that stays free, is held by something else, or is all that is left."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...catalog.hardware import find_accelerator
from ...plan.constraints import FreeMemoryConstraint
from ..conflicts.claims import Claims
from ..lexicons import reserved as lex
from ..patterns.gated import Gated
from ..patterns.page import SENTENCE_END, Page, parts
from ..patterns.quantities import read_number

_BYTES = Gated(
    r"(?<![A-Za-z0-9.])(?P<n>\d{1,5}(?:\.\d{1,3})?|(?:five|ten|fifteen|twenty|thirty|forty))\s?"
    r"(?P<unit>gib|gigabytes?|gigs?|gb|g)(?![A-Za-z/])",
)
_EACH = lex.cues(
    r"(?:each|every|all|per|any)(?:\s(?:of\sthe|the|single|one|\d|two|four|eight))?\s?"
    r"(?:gpus?|cards?|devices?|accelerators?|one)?|a\scard",
    r"每\s?[张块个]?\s?(?:卡|gpu|显卡)",
)
_OF_CARDS = lex.cues(r"vram|(?:gpu|video|device)\smem(?:ory)?|hbm", "显存")
# Memory of something other than a GPU.
_HOST = lex.cues(r"host|ram|disk|ssd|nvme|storage|swap|cpu", "硬盘|内存|磁盘")
_LEFT = lex.cues(
    r"free|leave|leaving|left|keep|keeping|kept|reserv(?:e|ed|ing)|headroom|spare|unused|unallocated|clear|untouched|"
    r"empty|available|budget|taken|occupied|hands\soff",
    "预留|保留|留|空|占",
)
# Memory that something else takes of each card; a plan works out the memory of the model itself.
_USED = lex.cues(
    r"(?:needs?|takes?|taking|uses?|using|occup(?:y|ies)|eats?(?:\sup)?|consumes?|hogs?|holds?|claims?|los(?:e|es|ing))\s"
    r"(?:about\s|around\s|roughly\s|some\s|~\s?|up\sto\s|another\s){0,2}(?=\d|five|ten|fifteen|twenty|thirty|forty)|"
    r"keeps?|keeping|held\sback",
    "占用?|要用|吃掉?",
)
_OTHER_MODEL = Gated(
    r"(?<![a-z])(?:embedd(?:ing|er)|rerank(?:er|ing)?|guard(?:rail)?|speech|asr|tts|ocr|vision|another|other|second|whisper|draft)\s(?:model|engine|instance)s?"
)
_PLANNED_MODEL = lex.cues(
    r"weights?|kv|caches?|activations?|model|vllm|sglang|engine|replicas?|instances?|it|they|parameters?|tokens?|requests?",
    "权重|模型|缓存",
)
# Memory that is left to plan with; demands for free memory are read before.
_USABLE = Gated(
    r"(?<![a-z])(?:only|just)\s(?P<n>\d{1,3}(?:\.\d)?\s?gi?b)\s(?:of\s[^,.;\n]{2,30}\s|on\s[^,.;\n]{2,30}\s|per\s(?:card|gpu)\s)?(?:is|are|remains?)\s"
    r"(?:still\s)?(?:free|left|available|usable|ours|yours)(?:\sfor\s(?:you|us|it|this|the\smodel))?(?![a-z])|"
    r"(?:只剩|还剩|剩下?|只有)\s?(?P<m>\d{1,3}(?:\.\d)?)\s?gi?b?\s?(?:显存)?\s?(?:能用|可用|可以用|空闲)",
)


def read_free_memory(page: Page, claims: Claims) -> Iterator[FreeMemoryConstraint]:
    """Yield the memory that each GPU keeps free, and take its words."""
    yield from _kept_free(page)
    yield from _left_to_use(page, claims)


def _kept_free(page: Page) -> Iterator[FreeMemoryConstraint]:
    for start, sentence in list(parts(page.text, SENTENCE_END)):
        amount = _BYTES.search(sentence)
        if amount is None or _HOST.search(sentence):
            continue
        is_of_cards = _EACH.search(sentence) or _OF_CARDS.search(sentence)
        is_left = is_of_cards and _LEFT.search(sentence) and lex.DEMAND.search(sentence)
        if not is_left and not _is_used_by_others(page, start + amount.start(), start + amount.end()):
            continue
        value = read_number(amount["n"]) or 0.0
        size = round(value * (2**30 if amount["unit"].lower() == "gib" else 10**9))
        if size >= 2**20:
            words = page.take_clause(start + amount.start(), start + amount.end())
            yield FreeMemoryConstraint(kind="free_bytes_per_gpu", value=size, words=words)


def _is_used_by_others(page: Page, start: int, end: int) -> bool:
    """Whether the amount at `start`..`end` is memory of each card that something else holds."""
    left, right = page.clause(start, end)
    clause = page.original[left:right]
    subject = page.original[left:start]
    return (
        _EACH.search(clause) is not None
        and _USED.search(clause) is not None
        and _PLANNED_MODEL.search(_OTHER_MODEL.sub("", subject)) is None
    )


def _left_to_use(page: Page, claims: Claims) -> Iterator[FreeMemoryConstraint]:
    """ "Only 56 GB of our H100 are free for you": the rest of each card's memory stays free."""
    for match in page.search(_USABLE):
        kind = claims.values.get("accelerator")
        clause = page.clause_text(*match.span())
        if kind is None or _HOST.search(clause):
            continue
        usable = float(re.findall(r"[\d.]+", match["n"] or match["m"])[0]) * 1e9
        card = find_accelerator(kind).memory_bytes()[0]
        words = match.group().strip()
        page.take(match.start(), match.end("n") if match["n"] else match.end())
        if not 0 < usable < card:
            claims.leave_unread(f"{words!r}: a {kind} has {card / 1e9:.0f} GB")
            continue
        claims.reading(f"{words!r} read as {usable / 1e9:g} of the {card / 1e9:.0f} GB of each card")
        yield FreeMemoryConstraint(kind="free_bytes_per_gpu", value=round(card - usable), words=words)
