"""Replicas that a request asks for: how many (exactly, at least or at most, in all or on each node), and in one node.

"Keep every replica inside one box", "副本不跨机": all groups of a replica (TP, EP, the pipeline) then stay in a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from ...plan.constraints import Constraint, PlacementConstraint, Primitive, ReplicasConstraint
from ..conflicts.claims import Claims
from ..lexicons import reserved as lex
from ..model.unknown_names import INSTANCE
from ..patterns.gated import Gated
from ..patterns.number_words import AT_LEAST, AT_MOST, NUMBER
from ..patterns.page import SENTENCE_END, Page, parts
from ..patterns.quantities import read_whole

_REPLICA = r"(?:(?P<phase>prefill|decode)\s)?(?:replicas?|cop(?:y|ies)|instances)(?:\sof\sthe\smodel)?|副本|实例"
_REPLICAS = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>{NUMBER}|single)\s?[个套份]?\s?(?:(?:互相|相互|完全|彼此)?独立的?|(?:identical|independent|separate|equal|full|complete|serving|model)\s)?(?:{_REPLICA})|"
    rf"(?:(?:replicas?|copies)(?:\s(?:count|number|min(?:imum)?|max(?:imum)?))?|number\sof\sreplicas|副本数?|实例数?)\s?(?:量)?(?:\s?(?:is|are|must|be|has\sto|should|equals?|equal\sto|fixed|at|exactly|必须|恰好|正好|固定|要求|不多不少|就|是|为|=|:|{AT_LEAST}|{AT_MOST}|[<>]=)){{1,6}}\s?(?P<m>{NUMBER})",
)
_OF_MACHINES = Gated(r"instances?(?![a-z]|\sof\sthe\smodel)|实例")
# Claims that are no fields: replicas on each node, on each GPU.
_ON_EACH_NODE, _ON_EACH_GPU = "replicas_on_each_node", "replicas_on_each_gpu"
# "One replica per box", "two copies at each of the three sites", "每县一个副本,共三个": on each node, GPU or place.
_ON_EACH = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>a|{NUMBER})\s(?:(?:independent|separate|full|whole|single|model|complete)\s)?"
    rf"(?:replicas?|cop(?:y|ies)|instances?)\s(?:of\sit\s)?(?:per|(?:for|on|at|in)\s(?:each|every))\s(?:of\s(?:the|our|these)\s)?(?:(?P<count>{NUMBER})\s)?"
    rf"(?:(?P<node>{lex.NODE})|(?P<gpu>gpus?|cards?)|(?!tp|pp|ep|dp|phase|stage|model|type|kind|side|hour|day|user|request)(?P<place>[a-z]{{3,16}}?)s?)(?![a-z])|"
    rf"每(?:(?P<node2>台\s?(?:{lex.NODE})?|个?\s?(?:{lex.NODE}))|[张块]?(?P<gpu2>卡)|个?(?P<place2>[^\s\d,;。:各都放跑部有要一两三二个台]{{1,4}}?))(?:各|都)?\s?(?:放|跑|部署|有|要)?\s?(?P<n2>{NUMBER})\s?[个套份]?(?:副本|实例)",
)
# Right behind it: how many that makes.
_MAKES = Gated(
    rf"[,;]?\s?\(?(?:(?:so|i\.e\.|that\sis|that's)\s)?(?:(?P<total>{NUMBER})\s(?:replicas\s|copies\s)?(?:in\s(?:all|total)|altogether|overall)|(?:一?共|总共|合计|共计|总计)\s?(?P<total2>{NUMBER})\s?[个套份]?(?:副本|实例)?)\)?(?![a-z\d])"
)
_EXACT = lex.cues(
    r"exactly|precisely|must|shall|need(?:s|ed)?|requires?|has\sto|have\sto|wants?|independent|identical|separate|not?\s(?:one\s)?(?:more|less|fewer)|has\sto\sbe|fixed|demanded|(?:not|non)[\s\-]negotiable|settled|final|equals?|"
    r"can't\s(?:move|change)",
    "正好|恰好|必须|独立|整整|不多|不可更改|不可调整|写死|固定",
)
_LEAST = Gated(AT_LEAST)
_OR_MORE = Gated(r"\s?(?:or\smore|at\sleast|(?:as\san?\s)?minimum|及?以上|起)(?![a-z])")
_OF_KEY = Gated(r"(?:replicas?|copies)\s(?:(?P<least>min)|max)")
_MOST = Gated(AT_MOST)
_ASKED = Gated(r"[^.;,\n]{0,30}\?|,?\s{0,3}(?:or|还是)(?![a-z])")
# How many characters before a number of replicas its least ("never be fewer than") and its most are looked for.
_LEAST_AHEAD, _MOST_AHEAD = 22, 16
# "Keep every replica inside one box", "no instance may span servers", "副本不跨机".
_ONE_REPLICA = (
    r"(?:(?:model|serving|engine|single|one)\s)?(?:replicas?|instances?|cop(?:y|ies)|pipelines?|deployments?|pods?)"
    r"(?:\sof\s(?:the|a|our|any)\smodel)?"
)
_NODES = (
    r"(?:nodes?|workers?|azs?|zones?|servers?|machines?|box(?:es)?|hosts?|sites?|chassis|instances?|vms?|"
    r"data\s?cent(?:er|re)s?)"
)
_SPAN = (
    r"(?:span(?:s|ning)?|touch(?:es|ing)?|sit(?:s|ting)?\s(?:on|across)|(?:be\s)?split\s(?:over|across)|"
    r"cross(?:es|ing)?|straddl(?:e|es|ing)|leav(?:e|es|ing)|stretch(?:es|ing)?\s(?:over|across)|"
    r"spread(?:s|ing)?\s(?:over|across)|(?:go(?:es|ing)?|run(?:s|ning)?|reach(?:es|ing)?|extend(?:s|ing)?)?\s?(?:across|over|beyond|between))"
)
_MAY = r"(?:(?:may|can|could|must|should|shall|will|is\sto|are\sto|has\sto|have\sto|allowed\sto|be|is|are)\s){0,3}"
_WHICH = (
    r"(?:(?:the|its|their|our|a|one|single|more\sthan\s(?:one|a|1)|two|both|several|multiple|different|physical|"
    r"separate)\s){0,4}"
)
_INSIDE = r"(?:inside|within|in|on|fit(?:s)?\s(?:in|into|on|inside)|stays?\s(?:in|inside|within|on)|local\sto)"
KEPT_WHOLE = Gated(
    rf"(?<![a-z])(?:no|never\s(?:let\s)?(?:an?|one|any)|not\s(?:an?|one|any)(?:\ssingle)?|don't\s(?:let|have)\s(?:an?|one|any))\s{_ONE_REPLICA}\s{_MAY}{_SPAN}\s{_WHICH}{_NODES}(?![a-z])|"
    rf"(?<![a-z])(?:an?|one|any|each|every|the|our|single)?\s?{_ONE_REPLICA}\s(?:(?:may|can|could|must|should|shall|will|do|does|is|are|has|have)(?:\sto)?(?:\s?(?:not|never)|n't)|cannot|never|goes\snot)\s(?:be\sallowed\sto\s|be\s)?"
    rf"{_SPAN}\s{_WHICH}{_NODES}(?![a-z])|"
    rf"(?<![a-z])(?:keep|put|place|hold|fit|confine|contain|pack)(?:ing|s)?\s(?:each|every|all|any|the|whole|an?|one|entire|our)\s(?:entire\s|whole\s)?{_ONE_REPLICA}\s(?:{_MAY})?{_INSIDE}\s(?:a|one|the|its|their|single|same|own|each|exactly|just|\s){{1,4}}\s?{_NODES}(?![a-z])|"
    rf"(?<![a-z])(?:each|every|all|any|an?|one|the|our)\s(?:entire\s|whole\s)?{_ONE_REPLICA}\s(?:must|should|shall|has\sto|have\sto|needs?\sto|is\sto|are\sto|will)\s(?:(?:completely|entirely|fully|always|all|be|kept|stay|remain|live|sit|fit|run)\s){{0,4}}{_INSIDE}\s"
    rf"(?:(?:a|one|the|its|their|single|same|own|each|exactly)\s){{1,3}}{_NODES}(?![a-z])|"
    rf"(?<![a-z]){_NODES}\s(?:can't|cannot|can\snot|must\snot|may\snot|don't|do\snot|aren't\sallowed\sto|are\snot\sallowed\sto)\s(?:talk|speak|communicate)\s(?:to|with)\s(?:each\sother|one\sanother)|"
    rf"(?:(?<![a-z])(?:nothing|no\s(?:group|model|parallelism|traffic))|(?:(?<![a-z])not|n't)\s(?:want|like|have|allow|accept|let|use)\s(?:any(?:thing|\s{_ONE_REPLICA}|\sgroup)|a\s{_ONE_REPLICA}))\s{_MAY}{_SPAN}\s(?:them|both(?:\sof\sthem)?|{_WHICH}{_NODES})(?![a-z])|"
    rf"(?<![a-z])(?:no|without\s(?:any|a))\s(?:configurations?|layouts?|setups?|plans?|splits?)\s(?:where|in\swhich|that|which|with)\s(?:(?:one|a|any|single)\s){{0,2}}(?:requests?|{_ONE_REPLICA}|models?)?\s?{_MAY}{_SPAN}\s{_WHICH}{_NODES}(?![a-z])|"
    r"每[台个](?:机器|节点|服务器)?(?:各自|都|单独)?独立(?:部署|跑|服务|运行)|(?:模型|单个?模型|部署|推理)?不(?:做|搞|走|考虑|接受)跨\s?(?:机|节点|服务器|台)(?:器)?(?:部署|切分|通信|并行)?|"
    r"(?:单个?|每个?|任何一?个?|同一个?)?(?:副本|实例|模型(?:实例)?)(?:都)?(?:不|别|禁)(?:能|要|得|允许|可以?|许|止)?(?:跨|超出)(?:越|过)?(?:节点|机器|服务器|主机|机房|机)|"
    r"(?:不|别|禁)(?:能|要|得|允许|可以?|许|止)?跨(?:越|过)?(?:节点|机器|服务器|机)(?:去)?(?:切|拆|部署|放|切分)?(?:一个)?(?:模型|副本|实例)|"
    r"(?:副本|实例)(?:都)?(?:必须|要|得|只能|须|需)(?:放|落|跑|留|限制)?在(?:同一|单|一)(?:个|台)?(?:节点|机器|服务器|主机)(?:内|里|上|之内)?",
)
_GROUPS: tuple[Primitive, ...] = ("tp", "ep", "pp")


def read_replicas(page: Page, claims: Claims) -> Iterator[Constraint]:
    """Yield the numbers of replicas that are demanded, and take their words."""
    yield from _on_each(page, claims)
    yield from _in_all(page)


def _on_each(page: Page, claims: Claims) -> Iterator[Constraint]:
    """ "One replica per box": how many on each, until nodes and GPUs are counted (`settle_on_each_node`)."""
    for match in page.search(_ON_EACH):
        clause = page.clause_text(*match.span())
        if _ASKED.match(page.text, match.end()):
            continue
        relation: Any = ">=" if _LEAST.search(clause) else "<=" if _MOST.search(clause) else None
        each = read_whole((match["n"] or match["n2"]).lower()) or 1
        makes = _MAKES.match(page.text, match.end())
        words = page.take(match.start(), (makes or match).end())
        places = None if match["place"] is None and match["place2"] is None else _places(page, match)
        total = read_whole(next(filter(None, makes.groups())).lower()) if makes else places and each * places
        if total:
            yield ReplicasConstraint(kind="replicas", value=total, relation=relation, words=words)
        elif match["node"] or match["node2"]:
            claims.claim(_ON_EACH_NODE, (each, relation), words)
        elif match["gpu"] or match["gpu2"]:
            claims.claim(_ON_EACH_GPU, (each, relation), words)
        else:
            claims.leave_unread(f"{words!r}: how many replicas that makes was not said")


def _places(page: Page, match: re.Match[str]) -> int | None:
    """How many places there are of the kind that a match names; `None` where no words, or several, count them."""
    if match["count"]:
        return read_whole(match["count"].lower())
    place = re.escape(match["place"] or match["place2"])
    counted = re.compile(rf"(?<![\w.])(?P<n>{NUMBER})\s?个?(?:\w{{2,12}}\s)?{place}", re.IGNORECASE)
    others = list(counted.finditer(page.original))
    if len({read_whole(other["n"].lower()) for other in others}) != 1:
        return None
    for other in others:
        page.take(*other.span())
    return read_whole(others[0]["n"].lower())


def settle_on_each_node(claims: Claims) -> Iterator[Constraint]:
    """As many replicas as are wanted on each of the nodes, or GPUs, that were counted."""
    for name, number, what in (
        (_ON_EACH_NODE, claims.values.get("nodes"), "nodes"),
        (_ON_EACH_GPU, claims.gpus, "GPUs"),
    ):
        each, words = claims.drop(name)
        if each is not None and number is None:
            claims.leave_unread(f"{words!r}: how many {what} there are was not said")
        elif each is not None and number is not None:
            value, relation = each[0] * number, each[1]
            yield ReplicasConstraint(kind="replicas", value=value, relation=relation, phase=None, words=words)


def _in_all(page: Page) -> Iterator[Constraint]:
    counts_machines = INSTANCE.search(page.original) is not None  # "p5.48xlarge, at most 3 instances"
    for start, sentence in list(parts(page.text, SENTENCE_END)):
        for match in _REPLICAS.finditer(sentence):
            if counts_machines and _OF_MACHINES.search(match.group()):
                continue
            near = sentence[max(0, match.start() - 40) : match.end() + 60]
            count = read_whole(match["n"] or match["m"])
            if page.original[start + len(sentence) : start + len(sentence) + 1] == "?":
                continue  # "TP2 or two independent replicas?"
            relation, begin, end = _bounds(sentence, match)
            if not count or not (relation or _EXACT.search(near)) or (relation == ">=" and count < 2):
                continue
            phase: Any = (match["phase"] or "").lower() or None
            words = page.take(start + begin, start + end)
            yield ReplicasConstraint(kind="replicas", value=count, relation=relation, phase=phase, words=words)


def _bounds(sentence: str, match: re.Match[str]) -> tuple[Literal[">=", "<="] | None, int, int]:
    """Whether a number of replicas is the least or the most, with the span of the words that say so."""
    if (key := _OF_KEY.search(match.group())) is not None:
        return ">=" if key["least"] else "<=", *match.span()
    if match["m"] and _LEAST.search(match.group()):
        return ">=", *match.span()
    if match["m"] and (_MOST.search(match.group()) or "<=" in match.group()):
        return "<=", *match.span()
    if (before := _LEAST.search(sentence, max(0, match.start() - _LEAST_AHEAD), match.start())) is not None:
        return ">=", before.start(), match.end()
    if (before := _MOST.search(sentence, max(0, match.start() - _MOST_AHEAD), match.start())) is not None:
        return "<=", before.start(), match.end()
    behind = _OR_MORE.match(sentence, match.end())
    return (None, *match.span()) if behind is None else (">=", match.start(), behind.end())


def read_kept_whole(page: Page) -> Iterator[Constraint]:
    """Yield the constraints that keep each replica in a node, and take their words."""
    for match in page.search(KEPT_WHOLE):
        words = page.clause_text(*match.span())[:500]
        page.take(*match.span())
        yield from (PlacementConstraint(kind="within_node", value=group, words=words) for group in _GROUPS)
        return
