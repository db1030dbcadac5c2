"""What a request keeps from the plan: GPUs, nodes and memory that stay free; and an exact number of replicas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..catalog.hardware import find_accelerator
from ..plan.constraints import Constraint, FreeMemoryConstraint, ReplicasConstraint, ReservedConstraint
from .claims import Claims
from .gated import Gated
from .number_words import ENGLISH_NUMBER
from .page import BOX, CARD, OTHER, TAKEN, Page
from .quantities import read_number, read_whole
from .standing import STAYS

_NUMBER = rf"\d{{1,6}}(?![\d.])|(?:{ENGLISH_NUMBER})(?![a-z])|[一二两三四五六七八九十]{{1,3}}"
_NODE = r"nodes?|servers?|machines?|box(?:es)?|hosts?|systems?|节点|整?机器?|服务器"
_GPU = rf"gpus?|cards?|accelerators?|devices?|显?卡|{CARD}++s?"
# "two of the six servers", "two of those whole systems"; "one GPU out of the 8 H100": what it is a part of.
_OF = (
    rf"(?:\s(?:of|out\sof)\s(?:the|our|these|those|its|my)?\s?(?:(?:{_NUMBER})\s)?)?"
    r"(?:\s?(?:whole|entire|single|spare|full|complete|other|of\sthe|of\sthose)){0,2}"
)
_PART = rf"(?:\s(?:of|out\sof|from)\s(?:the|our|these|those|its|my)\s(?:\d{{1,5}}\s?x?\s?)?(?:{_NODE}|{_GPU}))?"
_COUNTED = Gated(
    rf"(?<![A-Za-z0-9.\-×x*第])(?P<n>{_NUMBER}|a\ssingle)\s?(?:[个台张块]\s?)?{_OF}\s?"
    rf"(?:(?P<node>{_NODE}|(?<=台))|(?P<gpu>{_GPU}|(?<=[张块])))(?![A-Za-z]){_PART}(?!\s?(?:with|of|each|holding|having|都不|\(\s?\d))",
)
_GONE = (
    r"(?:lent|loaned|promised|reserved|taken|used|busy|needed|occupied|dedicated|allocated|assigned|blocked|booked|earmarked|"
    r"given|on\sloan|out\sof|down|broken|faulty|off\slimits|spares?)(?![a-z])"
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = "|".join((*_ORDINALS, "other"))
# "two of the eight", "of which one": part of what was counted before.
_PART_OF_IT = Gated(
    rf"(?<![A-Za-z0-9.])(?<!every\s)(?<!each\s)(?<!any\s)(?:(?P<n>{_NUMBER})\sof\s(?:them|those|these|which|(?:the|our|those|these)\s(?:{_NUMBER}))|"
    rf"of\s(?:which|these|those|them),?\s(?P<m>{_NUMBER}))(?![A-Za-z\-]|\s?(?:{_NODE}|{_GPU}))|其中\s?(?P<k>{_NUMBER})\s?[台张块]|"
    rf"(?<![A-Za-z0-9.])(?<!every\s)(?<!each\s)(?<!any\s)(?P<i>{_NUMBER})\s(?:(?:must|should|shall|have\sto|has\sto|needs?\sto)\s(?:stay|remain|sit|be\s(?:kept|left))|(?:stay|remain)s?)(?![a-z])|"
    rf"(?<![A-Za-z0-9.])(?<!every\s)(?<!each\s)(?P<l>{_NUMBER})\s(?:are|is|were)\s{_GONE}|"
    rf"(?<![A-Za-z0-9.])(?P<p>{_NUMBER})\s(?:kept|held|set|left|put)\s(?:back|aside|free|alone|in\sreserve)(?![a-z])|"
    rf"(?<![a-z])(?:hold|keep|set|put|leave)(?:ing)?\s(?:those\s|these\s|the\s)?(?P<j>{_NUMBER})\s(?:back|aside|free|alone|in\sreserve)(?![a-z])|"
    rf"(?<![a-z])(?:the|our)\s(?P<o>last|(?:{_ORDINAL}))(?:\s(?:one|{_NODE}))?,?\s(?:is|stays?|remains?|must|has\sto|will)(?![a-z])",
    needs="of|其中|hold|keep|set|put|leav|left|held|kept|must|sh|ha|need|stay|remain|are|is|were|will",
)
# The last of these before it says what is counted.
_HARDWARE = re.compile(rf"(?P<node>{_NODE}|{BOX}++s?|[台])|(?P<gpu>{_GPU}|[张块])", re.IGNORECASE)


_ONE_NODE = re.compile(r"node|server|machine|box|host|system", re.IGNORECASE)


def cues(english: str, chinese: str = "", *, needs: str = "") -> Gated:
    """Any of the words: English ones whole, Chinese ones as they stand; `needs` as in `Gated`."""
    return Gated(rf"(?<![a-z])(?:{english})(?![a-z])" + (f"|{chinese}" if chinese else ""), needs=needs)


# A key of a file: "keep free nodes: 1", "reserved gpus 2".
_KEYED = re.compile(
    rf"(?<![a-z])(?:keep|kept|leave|reserved?|spare|free|idle|stand[\s\-]?by)(?:\s(?:free|idle|aside|back|unused))?\s"
    rf"(?:(?P<node>{_NODE})|gpus?|cards?)\s?[:=]\s?(?P<n>\d{{1,4}})(?![\d.])",
    re.IGNORECASE,
)
_OF_WHICH = re.compile(r"其中|(?<![a-z])(?:of\swhich|of\sthem|except|but)(?![a-z])", re.IGNORECASE)
# Nodes and GPUs by their numbers ("nodes 2 and 5", "GPU 6 and GPU 7"), and what puts them out of use.
_NUMBERED = re.compile(
    rf"(?<![A-Za-z0-9])(?<!in\s)(?<!on\s)(?<!of\s)(?:(?P<node>{_NODE})|gpus?|cards?)\s#?"
    r"(?P<list>\d{1,3}(?:(?:\s?[,&]\s?|\sand\s)(?:node\s|gpu\s)?\d{1,3}(?!\s(?:nodes|gpus)))*)(?![\d.]|\s?(?:to|x|-)\s?\d|\s?[a-z]?\d)|"
    r"(?P<list2>(?:\d{1,3}\s?号?\s?[和与及,]\s?){0,8}\d{1,3}\s?号)\s?(?:(?P<node2>机器?|节点|服务器)|显?卡)(?!的?\s?\d)",
    re.IGNORECASE,
)
_DOWN = cues(r"down|broken|dead|faulty|flaky|offline|out\sof\s(?:order|service)|exclude", "坏|掉卡|故障|维修|没修|宕机")
# Words that keep something from the plan, wherever in the sentence.
_AWAY = cues(
    r"off[\s\-]?limits|hands\soff|on\sloan|(?:lent|loaned|assigned|allocated|dedicated|given)\s(?:out\s)?to|(?:left|leave)(?:\s\w{1,8}){1,3}\salone|"
    r"reserv(?:e|ed|ing)(?!\s(?:[a-z0-9.]+\s)?(?:instances?|capacity|pricing))|"
    r"(?:leav(?:e|ing)|keep(?:ing)?|sav(?:e|ing))(?=\s(?:\d{1,3}|one|two|three|four|a)\s(?:gpus?|cards?|nodes?|servers?)\s(?:for|to|out|over)(?![a-z]))|"
    r"set(?:ting)?\saside|kept\saside|keep\saside|(?:hold|keep|set)(?:ing)?\s(?:\w+\s){0,3}back|(?:held|kept)\sback|belongs?\sto|promised\sto|dibs|"
    r"(?:do|does|must|may|can|should|shall|will)(?:n't|not|\snot)\s(?:be\s)?"
    r"(?:touch(?:ed)?|used?|part\sof|scheduled?|occup(?:y|ied)|allocated?|available|count(?:ed)?)|dont\stouch|squats?|"
    r"(?:must|should|has\sto|have\sto|needs?\sto|shall)\sbe\sleft\s(?:for|to)|"
    r"(?:must|should|has\sto|have\sto|needs?\sto|shall)\s(?:sit|stay|remain|be\s(?:left|kept)|be)\s(?:entirely\s|completely\s)?(?:idle|empty|free|unused|alone|out)|"
    r"stays?\swith|goes\sto(?=\s(?:the\s|our\s)?(?:train|other|another|research|staging|dev))|"
    r"(?:not|never)\s(?:be\s)?planned\s(?:in|with)|exclud(?:e|ed)|steer\sclear|plan\saround|earmarked|untouched|unavailable|spare\s(?=one|two|three|four|\d)",
    r"(?:预留|保留)(?!实例)|留给|留出|空着|(?:不能|别|不要|不准|不许)动|动不得|已经给了|"
    r"不(?:允许|能|可|要)(?:占用?|使用|用)|别(?:用|算)|避开|占着|被.{1,8}占|不可用|(?:保持|须|要)空闲|[热冷]备(?!份)|备用|备机|[灾容]备|不参与",
    needs="lent|loan|assign|alloc|dedic|giv|leav|sav|keep|left|off|hand|reserv|aside|back|belong|promis|dibs|not|n't|dont|touch|squat|must|should|ha[sv]|need|shall|stay|goes|plan|exclu|steer|earmark|unavail|spare|留|空|动|给|不|别|避|占|备",
)
# What is busy is kept away where it is said; what is free only where that is demanded: else it is a fact.
_BUSY = cues(
    r"busy|taken|occupied|standby|in\suse",
    needs="busy|taken|occup|standby|use",
)
_FREE = cues(
    r"(?:free|idle|unused|empty|alone|unallocated|spare)(?!\s(?:tier|users?|plan|trial))",
    "(?<!预)留|空(?!闲)",
    needs="free|idle|unused|empty|alone|unalloc|spare|留|空",
)
_DEMAND = cues(
    r"must|should|shall|has\sto|have\sto|needs?|stays?|remains?|keep|kept|leave|leaving|left(?!\sover)|reserv(?:e|ed|ing)|"
    r"set\saside|wants?|required?|requires|budget|no\sless\sthan|at\sleast|headroom|with|taken|occupied|hands\soff",
    "留|空出|必须|至少|占",
)
# Memory that stays free as a share is read elsewhere.
_SHARE = re.compile(r"\d\s?%|(?<![a-z])(?:percent|gib|gb)(?![a-z])|显存", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<!\d)[.!?](?=\s|$)|[。！？\n;；]")
_CLAUSE_END = re.compile(r"[,;:()。，；\n]|(?<!\d)\.(?=\s|$)|\s(?:but|(?:al)?though|while|so)\s|但是?", re.IGNORECASE)
_BYTES = re.compile(
    r"(?<![A-Za-z0-9.])(?P<n>\d{1,5}(?:\.\d{1,3})?|(?:five|ten|fifteen|twenty|thirty|forty))\s?"
    r"(?P<unit>gib|gigabytes?|gigs?|gb|g)(?![A-Za-z/])",
    re.IGNORECASE,
)
_EACH = cues(
    r"(?:each|every|all|per|any)(?:\s(?:of\sthe|the|single|one|\d|two|four|eight))?\s?"
    r"(?:gpus?|cards?|devices?|accelerators?|one)?|a\scard",
    r"每\s?[张块个]?\s?(?:卡|gpu|显卡)",
)
# Memory that is no GPU's.
_HOST = cues(r"host|ram|disk|ssd|nvme|storage|swap|cpu", "硬盘|内存|磁盘")
_LEFT = cues(
    r"free|leave|leaving|left|keep|keeping|kept|reserv(?:e|ed|ing)|headroom|spare|unused|unallocated|clear|untouched|"
    r"empty|available|budget|taken|occupied|hands\soff",
    "预留|保留|留|空|占",
)
_REPLICA = r"(?:(?P<phase>prefill|decode)\s)?(?:replicas?|cop(?:y|ies)|instances)(?:\sof\sthe\smodel)?|副本|实例"
_REPLICAS = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>{_NUMBER}|single)\s?[个套份]?\s?(?:(?:互相|相互|完全|彼此)?独立的?|(?:identical|independent|separate|equal|full|complete|serving|model)\s)?(?:{_REPLICA})|"
    rf"(?:replicas?(?:\s(?:count|number))?|number\sof\sreplicas|副本数?|实例数?)\s?(?:量)?(?:\s?(?:is|are|must|be|has\sto|should|equals?|equal\sto|fixed|at|exactly|必须|恰好|正好|固定|要求|不多不少|就|是|为|=|:)){{1,6}}\s?(?P<m>{_NUMBER})",
    needs="replica|cop|instances|副本|实例",
)
_OF_EACH_NODE = re.compile(rf"(?:per|each|every)\s(?:{_NODE})|每(?:[台个])?\s?(?:{_NODE})", re.IGNORECASE)
# Memory that is there to plan with; what has to be left free is read before.
_USABLE = re.compile(
    r"(?<![a-z])(?:only|just)\s(?P<n>\d{1,3}(?:\.\d)?\s?gi?b)\s(?:of\s[^,.;\n]{2,30}\s|on\s[^,.;\n]{2,30}\s|per\s(?:card|gpu)\s)?(?:is|are|remains?)\s"
    r"(?:still\s)?(?:free|left|available|usable|ours|yours)(?:\sfor\s(?:you|us|it|this|the\smodel))?(?![a-z])|"
    r"(?:只剩|还剩|剩下?|只有)\s?(?P<m>\d{1,3}(?:\.\d)?)\s?gi?b?\s?(?:显存)?\s?(?:能用|可用|可以用|空闲)",
    re.IGNORECASE,
)
# A claim that is no field: replicas that are wanted on each node.
ON_EACH_NODE = "replicas_on_each_node"
_PER_NODE = re.compile(
    rf"(?<![A-Za-z0-9.])(?P<n>one|a|1|{_NUMBER})\s(?:(?:independent|separate|full|whole|single|model|complete)\s)?"
    rf"(?:replica|copy|instance)\s(?:of\sit\s)?(?:per|for\seach|on\seach|on\severy|in\seach)\s(?:{_NODE})(?![a-z])|"
    rf"每[台个]\s?(?:{_NODE})\s?(?:放|跑|部署)?\s?(?:一|1)\s?个?(?:副本|实例)",
    re.IGNORECASE,
)
_EXACT = cues(
    r"exactly|precisely|must|shall|need(?:s|ed)?|requires?|has\sto|have\sto|wants?|independent|identical|separate|not?\s(?:one\s)?(?:more|less|fewer)|has\sto\sbe|fixed|demanded|(?:not|non)[\s\-]negotiable|settled|final|equals?|"
    r"can't\s(?:move|change)",
    "正好|恰好|必须|独立|整整|不多|不可更改|不可调整|写死|固定",
)
_LEAST = cues(r"at\sleast|min(?:imum)?|or\smore|up\sto|at\smost", "至少|最多|不少于")
# "The rest belongs to another team": what was counted before it is what there is.
_REST = re.compile(r"(?:rest|others|remainder|其余|剩下)(?:的|\sof\s(?:it|them))?\s?(?:都|is\s|are\s)?$", re.IGNORECASE)
_OTHERS_AWAY = re.compile(f"{_DOWN.pattern}|{_FREE.pattern}", re.IGNORECASE)
# How many characters before, and behind, such a word what it is about is looked for.
_BEFORE, _BEHIND = 80, 25


def read_reserved(page: Page, claims: Claims) -> Iterator[Constraint]:
    """Yield what is kept from the plan, and take its words."""
    yield from _free_memory(page)
    yield from _usable_memory(page, claims)
    _note_on_each_node(page, claims)
    yield from _replicas(page)
    yield from _reserved(page, claims)


def _parts(text: str, end: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The pieces of a text between two ends, each with its place."""
    start = 0
    for one in end.finditer(text):
        yield start, text[start : one.start()]
        start = one.end()
    yield start, text[start:]


def _free_memory(page: Page) -> Iterator[Constraint]:
    for start, sentence in list(_parts(page.text, _SENTENCE_END)):
        amount = _BYTES.search(sentence)
        if (
            amount is None
            or not (_EACH.search(sentence) and _LEFT.search(sentence))
            or _HOST.search(sentence)
            or not _DEMAND.search(sentence)
        ):
            continue
        value = read_number(amount["n"].lower()) or 0.0
        size = round(value * (2**30 if amount["unit"].lower() == "gib" else 10**9))
        if size >= 2**20:
            span = start + amount.start(), start + amount.end()
            words = page.clause_text(*span)[:500]
            page.take(*span)
            yield FreeMemoryConstraint(kind="free_bytes_per_gpu", value=size, words=words)


def _usable_memory(page: Page, claims: Claims) -> Iterator[Constraint]:
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


def _note_on_each_node(page: Page, claims: Claims) -> None:
    """ "One replica per box": how many on each, until the nodes are counted (`settle_on_each_node`)."""
    for match in page.search(_PER_NODE):
        clause = page.clause_text(*match.span())
        if page.text[match.end() : match.end() + 40].lstrip().startswith("?") or _LEAST.search(clause):
            continue
        claims.claim(ON_EACH_NODE, read_whole(match["n"]) or 1, page.take(*match.span()))


def settle_on_each_node(claims: Claims) -> Iterator[Constraint]:
    """As many replicas as are wanted on each of the nodes that were counted."""
    each, words, nodes = claims.values.get(ON_EACH_NODE), claims.words.get(ON_EACH_NODE), claims.values.get("nodes")
    claims.drop(ON_EACH_NODE)
    if each is None or words is None:
        return
    if nodes is None:
        claims.leave_unread(f"{words!r}: how many nodes there are was not said")
        return
    yield ReplicasConstraint(kind="replicas", value=each * nodes, phase=None, words=words)


def is_beyond(constraint: Constraint, nodes: int) -> bool:
    """Whether what is kept back is the node after those that were counted: "two nodes (the third is on loan)"."""
    if not isinstance(constraint, ReservedConstraint) or constraint.kind != "reserved_nodes":
        return False
    part = _PART_OF_IT.search(constraint.words)
    return part is not None and part["o"] in _ORDINALS and 0 < nodes == _ORDINALS.index(part["o"])


def _replicas(page: Page) -> Iterator[Constraint]:
    for start, sentence in list(_parts(page.text, _SENTENCE_END)):
        for match in _REPLICAS.finditer(sentence):
            near = sentence[max(0, match.start() - 40) : match.end() + 60]
            count = read_whole(match["n"] or match["m"])
            if (
                not count
                or not _EXACT.search(near)
                or _LEAST.search(sentence[max(0, match.start() - 14) : match.start()])
            ):
                continue
            phase: Any = (match["phase"] or "").lower() or None
            words = page.take(start + match.start(), start + match.end())
            yield ReplicasConstraint(kind="replicas", value=count, phase=phase, words=words)


def _reserved(page: Page, claims: Claims) -> Iterator[Constraint]:
    """GPUs or nodes that are counted beside a word that keeps them away."""
    for start, sentence in list(_parts(page.text, _SENTENCE_END)):
        away = _AWAY.search(sentence)
        if away is not None and _REST.search(sentence, 0, away.start()) and not _OTHERS_AWAY.search(sentence):
            continue
        bare = _PART_OF_IT.search(sentence)  # "all 72 are ours, though eight have to remain idle"
        is_bare = bare is not None and bare["i"] and _FREE.search(sentence, bare.end())
        found = _KEYED.search(sentence) or (None if is_bare else _counted_away(sentence) or _counted_beside(sentence))
        if (out := _out_of_use(page, start, sentence)) is not None:
            yield out
        elif found is None and (part := _part_kept_away(page, start, sentence)) is not None:
            yield part
        elif found is not None and not found["node"] and _OF_EACH_NODE.search(sentence):
            words = page.take(start + found.start(), start + found.end())
            claims.leave_unread(
                f"{words!r} of each node: GPUs are kept back in all; say how many in all, or whole nodes"
            )
        elif found is not None:
            yield _taken(page, start, found)
        elif TAKEN not in sentence and _AWAY.search(sentence) and not _SHARE.search(sentence):
            words = page.original[start : start + len(sentence)].strip()
            claims.leave_unread(f"{words[:200]!r} sounds like something that must not be used and was not understood")


def _out_of_use(page: Page, start: int, sentence: str) -> Constraint | None:
    """Nodes or GPUs that are named by their numbers and cannot be used: as many are kept back."""
    numbered = _NUMBERED.search(sentence)
    if numbered is None or not (_DOWN.search(sentence, numbered.end()) or _AWAY.search(sentence, numbered.end())):
        return None
    span = start + numbered.start(), start + numbered.end()
    words, count = page.clause_text(*span)[:500], len(re.findall(r"\d+", numbered["list"] or numbered["list2"]))
    page.take(*span)
    kind: Any = "reserved_nodes" if numbered["node"] or numbered["node2"] else "reserved_gpus"
    return ReservedConstraint(kind=kind, value=count, words=words)


def _part_kept_away(page: Page, start: int, sentence: str) -> Constraint | None:
    """What stays free of hardware that was counted before ("two of the eight have to stay free")."""
    part = _PART_OF_IT.search(sentence)
    if part is None or not (
        part["j"]
        or part["p"]
        or _AWAY.search(sentence)
        or _is_beside(sentence)
        or (_FREE.search(sentence) and _DEMAND.search(sentence))
    ):
        return None
    count = 1 if part["o"] else read_whole(next(filter(None, part.groups())))
    found = _HARDWARE.finditer(page.text, 0, start + part.end())
    before = [one for one in found if not (one["node"] and (count or 0) > 1 and _ONE_NODE.fullmatch(one.group()))]
    if not count or not before:
        return None
    words = page.clause_text(start + part.start(), start + part.end())[:500]
    page.take(start + part.start(), start + part.end())
    # "the sixth" is hardly said of one card.
    is_node = any(one["node"] for one in before) if part["o"] else before[-1]["node"]
    return ReservedConstraint(kind="reserved_nodes" if is_node else "reserved_gpus", value=count, words=words)


def _counted_away(sentence: str) -> re.Match[str] | None:
    """What is counted and kept away in a sentence: beside a weak word, or nearest to a strong one."""
    if not any(words.may_be_in(sentence) for words in (_BUSY, _FREE, _AWAY)):
        return None
    counted = list(_COUNTED.finditer(sentence))
    for start, clause in _parts(sentence, _CLAUSE_END):
        inside = [one for one in counted if start <= one.start() and one.end() <= start + len(clause)]
        near = _around(clause, inside[-1], start) if inside else ""
        if _BUSY.search(near) or (_FREE.search(near) and _DEMAND.search(clause)):
            return inside[-1]
    away = _AWAY.search(sentence)
    # The hardware as a whole is named with its card.
    counted = [one for one in counted if CARD not in sentence[one.start() : one.end() + 2]]
    if away is None or not counted or _SHARE.search(sentence):
        return None
    counted = [one for one in counted if not _OF_WHICH.search(sentence, one.end(), max(one.end(), away.start()))]
    gaps = {one: away.start() - one.end() if one.end() <= away.start() else one.start() - away.end() for one in counted}
    near = [one for one in counted if gaps[one] <= (_BEFORE if one.end() <= away.start() else _BEHIND)]
    return min(near, key=lambda one: gaps[one], default=None)


_BOUND = re.compile(r"(?:than|most|least|up\sto|超过|最多|至少)\s?$", re.IGNORECASE)


def _is_beside(sentence: str) -> bool:
    """Whether a sentence speaks of a model that runs already and is not planned."""
    return OTHER in sentence and STAYS.search(sentence) is not None


def _counted_beside(sentence: str) -> re.Match[str] | None:
    """What such a model takes, where it is counted; with its card it is other hardware, unless it is a part of it."""
    counted = _COUNTED.finditer(sentence) if _is_beside(sentence) else ()
    return next(
        (
            one
            for one in counted
            if (CARD not in one.group() or " of " in one.group()) and not _BOUND.search(sentence, 0, one.start())
        ),
        None,
    )


def _around(clause: str, match: re.Match[str], start: int) -> str:
    """The words of a clause near what is counted, without itself."""
    begin, end = match.start() - start, match.end() - start
    return clause[max(0, begin - 25) : begin] + " " + clause[end : end + 40]


def _taken(page: Page, start: int, match: re.Match[str]) -> Constraint:
    count, span = read_whole(match["n"]) or 1, (start + match.start(), start + match.end())
    words = page.clause_text(*span)[:500]
    page.take(*span)
    kind: Any = "reserved_nodes" if match["node"] is not None else "reserved_gpus"
    return ReservedConstraint(kind=kind, value=count, words=words)
