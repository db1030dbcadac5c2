"""Primitives of parallelism in words, and what their clauses demand of them.

A demand is a bound with a number, a node that groups may not leave, or a denial; a stated degree is a strategy.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from msgspec import Struct

from ...plan.constraints import (
    Constraint,
    DegreeBound,
    DegreeConstraint,
    ForbiddenDegree,
    PlacementConstraint,
    ReplicasConstraint,
)
from ..conflicts.claims import Claims
from ..lexicons.reserved import cues
from ..patterns.gated import Gated
from ..patterns.number_words import AT_LEAST, NUMBER
from ..patterns.page import CLAUSE_END, TAKEN, Page, breaks_of
from ..patterns.quantities import read_whole

PRIMITIVES = {
    "tp": r"tp|tensor[\s\-]?parallel(?:ism)?|tensor\s(?:degree|ranks?|group)|张量并行",
    "pp": (
        r"pp|pipelin(?:e|ing)[\s\-]?parallel(?:ism)?|pipeline\s(?:stages?|depth|degree|length)|pipelining|stages?\sof\s(?:(?:a|any|one|the|each|every)\s){1,2}pipeline|"
        r"pipeline(?=\s(?:deep|long))|(?<=no\s)pipelines?(?=\s?(?:[,.;!)\n]|$|please|either|at\sall))|流水线?(?:并行|级数?|段数?)"
    ),
    "ep": r"ep|expert[\s\-]?parallel(?:ism)?|expert\s(?:all[\s\-]to[\s\-]all|dispatch|traffic|group)|专家并行",
    "sp": r"sp|(?:sequence|context)[\s\-]?(?:\(context\)\s)?parallel(?:ism)?|(?:序列|上下文)并行",
    "dp": r"(?<!attention\s)(?:dp|data[\s\-]?parallel(?:ism)?)(?![\s\-]?attention)|数据并行",
}
_NAMES = "|".join(f"(?P<{name}>{words})" for name, words in PRIMITIVES.items())
_TO_NUMBER = r"(?:[\s\-]?(?:size|degree|width|group|ways?|度))?\s?(?:=|:|of|to|is|为)?[\s\-_]?"
# A primitive with the number that states its degree, after it ("TP8", "tp=8") or before ("8-way TP").
PRIMITIVE = Gated(
    rf"(?:(?<![A-Za-z0-9])(?P<before>{NUMBER})(?:[\s\-](?:way|fold)|[\s\-]?[路级])[\s\-]?)?(?<![A-Za-z0-9])(?:{_NAMES})"
    rf"(?:{_TO_NUMBER}(?P<after>\d{{1,6}}(?!\d|\.\d)|(?:two|four|eight|sixteen)(?![a-z])))?(?![A-Za-z])",
)
_LEAST = Gated(AT_LEAST)
_ANY = rf"(?<![A-Za-z0-9])(?:{'|'.join(words for name, words in PRIMITIVES.items() if name != 'dp')})"
_IS = r"(?:\s(?:degree|size|width))?\s?(?:(?:must|should|has\sto|needs?\sto|is|of)\s(?:be\s)?)?"
_N = r"\d{1,4}(?!\w|\.\d|\s?(?:gpus?|cards?|nodes?|servers?|replicas?)(?![a-z]))"
# "TP at least 2", "at least TP2", "TP4 or more".
_FROM_BELOW = Gated(
    rf"{_ANY}{_IS}{AT_LEAST}\s?{_N}|{AT_LEAST}\s?{_ANY}{_TO_NUMBER}{_N}|{AT_LEAST}\s?\d{{1,4}}[\s\-]way\s{_ANY}|"
    rf"{_ANY}{_TO_NUMBER}{_N}\s(?:or|and)\s(?:more|higher|above|wider|larger|up)(?![a-z])"
)
# "TP must not be 4", "TP != 4"; what "not TP4" leaves out is said where degrees are read.
_BUT_ONE = Gated(rf"{_ANY}(?:\s(?:must|should|may|can|shall)\s?(?:not|n't)\s(?:be\s)?|\s?!=\s?){_N}")
_MOST = cues(
    r"at\s(?:the\s)?(?:very\s)?most|is\s(?:the\s)?(?:very\s)?most(?=\s?(?:[,.;)\n]|$))|max(?:imum|imal|imally)?(?![-_](?:model|num|seq|batch))|(?:no|not|never|n't)(?:\s[a-z]+)?\s(?:more|larger|wider|greater|higher|bigger|deeper)(?:\sthan)?|"
    r"cap(?:ped|s)?|limit(?:ed|s)?|up\sto|as\s(?:far|wide|high|deep|many)\sas|or\s(?:lower|less|fewer|smaller|below|under)|tops|exceed(?:s|ing)?|(?:beyond|past|above|over(?!\s\d{1,4}\s(?:ranks?|gpus?|cards?|devices)))(?=\s(?:a\s|[a-z]{2}\s?)?(?:\d|two|four|eight|sixteen))|but\snot\sbeyond|(?:wider|larger|higher|more|deeper)\sthan|"
    r"(?P<less>(?:under|below|less\sthan|fewer\sthan|smaller\sthan|lower\sthan|低于|小于|少于)(?!\s?\d[\d.,]*\s?(?:m?s|sec\w*|%|毫?秒)(?![a-z])))",
    r"<=|≤|不(?:能|可|得|要|可以|许|想|希望|应该?|宜)?(?:超过|大于|高于|多于)|以内|最大|最多|至多|顶多|最高|最深|别超过|上限|(?P<less_sign><)",
)
_COUNT = Gated(
    rf"(?<![A-Za-z0-9.,])(?P<n>{NUMBER})(?!\s?(?:[a-z]*\s)?(?:users?|concurren|requests?|clients?|sessions?|chats?|streams?|ms|seconds?|s\b|tok|k\b|%|g?i?b\b|gpus?|cards?|nodes?|servers?|hosts?|machines?|boxes|replicas?|个副本|张|块|台|卡|并发|路|人))",
)
_NODE = r"(?:nodes?|servers?|machines?|instances?|vms?|box(?:es)?|hosts?|chassis|nvlink|nvswitch|节点|机器?|服务器)"
_CROSSING = cues(
    r"(?:across|between|span(?:s|ning|ned)?|cross(?:es|ing|ed)?|leav(?:e|es|ing)|straddl(?:e|es|ing)|different|several|multiple|beyond|over|outside|inter)[\s\-]?"
    rf"(?:[a-z]+\s){{0,2}}(?:more\sthan\s(?P<many>{NUMBER})\s)?(?:{_NODE}|infiniband|ib|ethernet|network|rdma|roce|efa|slingshot|omni-?path|fabric|wire|cable|uplinks?|nics?|lan)|"
    r"(?:cross(?:es|ing)?|leav(?:e|es|ing))\s(?:it|them|that|this|those)|between\s(?:the\s)?(?:two|both|three|them)",
    r"跨\s?(?:越)?(?:节点|机|服务器|网络)|(?:机器?|节点|服务器)(?:之)?间|出(?:节点|机器|单机)|走\s?(?:以太网|网络|网卡|IB|RoCE|RDMA|InfiniBand)",
)
_INSIDE = cues(
    rf"(?:inside|within|in|on|intra)[\s\-]?(?:(?:of|a|an|the|one|each|single|same|every|its|any)\s){{0,3}}{_NODE}|"
    rf"(?:one|same|single)[\s\-]{_NODE}|(?:inside|within)\s(?:them|those)(?=\s?(?:[,.;)\n]|$))",
    rf"(?:单|同一?台?|一台|本台?)(?:节点|机器?|服务器)(?:内|里|上)?|{_NODE}(?:以)?内",
)
# Behind a bound: "TP at most 8 and not across nodes", "TP: max 8, must stay inside a node", "TP不超过8, 不跨机".
_STAYS_TOO = Gated(
    r"[\s,;]{1,3}(?:(?:and|but|it|they|that|just|al?though)\s){0,2}(?:(?:must|should|may|shall|can|has\sto|have\sto)\s?)?"
    rf"(?:(?:not|never|n't|cannot)\s(?:be\s|to\s)?(?:across|cross(?:es|ing)?|span(?:s|ning)?|leav(?:e|es|ing)|beyond|over)\s(?:[a-z]+\s){{0,3}}{_NODE}|"
    rf"(?:(?:only|always)\s)?(?:stay(?:s|ing)?|remain|be|kept|keep|sit)?\s?(?:inside|within)\s(?:of\s)?(?:an?|the|one|each|single|same)\s(?:single\s)?{_NODE})(?![a-z])|"
    r"[\s,;]{0,3}(?:且|而且|并且|但是?|不过)?(?:也)?(?:(?:不(?:能|要|可以?|许|得)?|别|禁止)跨\s?(?:越)?(?:节点|机器?|服务器)|只(?:能|许|限)?(?:在|于)?(?:(?:同?一[台个]|单[台个]?)?(?:机器?|节点|服务器))(?:以)?内)",
)
# "EP may go over both nodes, TP may not": this denies what the clause before says.
_MAY_NOT = Gated(
    r"\s(?:may|must|should|shall|can|could|will|is|are)\s?(?:not|n't)\s*$|\scannot\s*$|(?:不行|不可以|不能|不许|就不)\s*$"
)
_ALLOWS = cues(
    r"may|can|could|might|(?:is|are)\s(?:allowed|permitted|free|welcome|able)|allowed|permitted", "可以|允许|能"
)
_BEFORE_IT = 80  # characters
# The same, where the clause before only names the primitive.
_BEHIND = Gated(
    r"[\s,]{1,3}(?:但是?|不过|but\s)?(?:(?:it\sis|it's|is)\s)?(?:不(?:许|准|能|可以?|让)用|禁用|不用|(?:not|never)\s(?:allowed|permitted)|forbidden|"
    r"(?:不(?:要|能|得|可|许)?超过|最多|最大|至多|at\smost|max(?:imum)?|(?:but\s)?(?:no|not)\smore\sthan|up\sto)\s?(?P<n>\d{1,4}))(?![\w.])",
)
_OF_EACH_NODE = Gated(rf"\s(?:inside|within|in|per)\s(?:(?:each|every|the|a)\s)?{_NODE}(?![a-z])")
_IN_EACH_NODE = re.compile(rf"每\s?[台个]?\s?{_NODE}(?:内部?|里)")
_STRICT = cues(
    r"must|only|has\sto|have\sto|needs?\sto|stays?|remains?|keep|kept|sits?|should|shall|confined?|always|lives?|intra|limited|restrict(?:ed)?|inside|within|scope",
    "只能|必须|限|不出|内|待在|要在",
)
# "PP across nodes": a demand where nothing else stands in the clause, or a word that demands.
_DEMANDS = cues(r"must|has\sto|have\sto|needs?\sto|should|shall|always", "必须|一定|只能")
_AND_SHOULD = Gated(r",?\s(?:and|in\sfact)\s(?:should|must|shall|wanted)(?![a-z])|,?\s?(?:而且)?也?(?:应该|应当|必须)")
_NOTHING_ELSE = re.compile(
    r"(?:[\s,:]|(?:use|using|run(?:s|ning)?|put|do(?:es)?|with|want|the|go(?:es)?|is|both|all|and|then)(?![a-z])|[用做走要的])*"
)
_DENIAL = cues(
    r"none|no(?![\s\-](?:need|problem|limit|(?:strong\s)?(?:preference|idea|opinion|view|clue|knowledge|feeling)|objection|more|longer|larger|wider|higher|bigger|greater|deeper|less|fewer|smaller|lower))|not(?!\s(?:needed|necessary|required|a\sproblem|sure))|never|without|w/o|avoid(?:ing)?|disabl(?:e|ed|ing)|"
    r"forbid(?:den)?|disallow(?:ed)?|ban(?:ned)?|rul(?:e|es|ed|ing)[a-z\s]{0,8}\sout|exclud(?:e|ed|ing)|prohibit(?:ed)?|(?:stay|keep)\saway|steer\sclear|veto(?:ed)?|forget\sabout|skip|drop|refuse|non[\s\-]?starter|off(?![\s\-]?(?:line|load))|out(?=\s?(?:[:,.;!)]|$|of\sthe\squestion|as\swell|too))|cannot|unsupported|(?:do|ca|wo|does|is)nt",
    r"n't(?![a-z])(?!\s(?:need|mind|care))|别|不(?!需要|必|超过|大于|高于|错|少于)|禁|勿|无需?(?=使?用?张|使?用?流)|避免|关闭|关掉",
)
# "What is not allowed: pipeline stages, EP": what the clause before a colon forbids, with all before the one at hand.
_FORBIDS = Gated(
    r"(?:(?<![a-z])(?:not\s(?:allowed|permitted|wanted|acceptable|an\soption)|forbidden|prohibited|banned|off\slimits|ruled\sout)|"
    rf"禁止|禁用|不允许|不可用)\s?:\s?(?:(?:{_ANY}|(?:across|between)\s(?:the\s)?{_NODE}|跨{_NODE}|any|the|and|or|[,/和与及或])\s?){{0,8}}\Z"
)
_CLAUSE_END = Gated(rf"\s(?:because|since)\s|而且|但是|因为|{CLAUSE_END.pattern}")
_WITHOUT = cues(r"without|w/o|with\sno|(?:must|shall|may|can)(?:\snot|n't|not)", "不用|不做|不得|不允许|禁止")
_HEARSAY = cues("claims?|heard|blogs?|rumou?rs?|whether|why", "听说|要不要|是不是|为什么")
_ASKS_WHETHER = re.compile(r"([\u4e00-\u9fff])不\1")  # "EP跨不跨你们看着办"
_LISTED = re.compile(r",\s?\d{1,5}(?:\s?,|\s(?:or|and)\s)")
PHASE = Gated(r"(?P<prefill>(?<![a-z])prefill|预填充?)|(?P<decode>(?<![a-z])decod|解码)")
_SCOPE = Gated(
    rf"\s{{0,3}}(?:(?:for|in|during|on)\s(?:the\s)?)?(?:{PHASE.pattern})[a-z]{{0,4}}(?:\s?(?:phase|stage|阶段|侧|端))?\s?[,:]",
)
# "TP别开太大", "TP not too wide": less of it, not none.
_NOT_TOO = Gated(
    r"(?:别|不要?|勿)[^,。;\n]{0,4}?[太过][大高多宽]|(?<![a-z])(?:not|don't)\s(?:[a-z]{2,6}\s){0,3}too\s(?:high|large|wide|big|far|much)(?![a-z])"
)
ONE_LEFT_OUT = "one degree alone cannot be left out: bound it (tp <= 2) or state another (tp = 8)"
# More primitives than any request names.
MOST_READ = 200
_LONGEST_CLAUSE = 400
# The most characters between a stated degree and the word that makes it a bound.
_NEAR = 14
# "TP8 is fine", "I accept PP2 or a second replica": may be had, and need not.
PERMITS = Gated(
    r"(?<![a-z])(?:(?:is|are|would\sbe)\s(?:(?:also|all|perfectly)\s)?(?:fine|ok(?:ay)?|acceptable|tolerable|conceivable)|(?:i|we)(?:'d|\s(?:can|could|would|will))?\s(?:also\s)?(?:accept|tolerate|live\swith))(?![a-z])|可以接受|能接受|也行|也可以",
)


class _Clause(Struct, frozen=True):
    """The clause around a primitive: its place, its words, the primitive with its degree, and what comes after it."""

    start: int
    text: str
    written: str  # the same, with the words that were taken before
    match: re.Match[str]
    following: str
    key: str  # what stands before its colon
    scope: str | None  # the phase that its sentence begins with ("For decode, …")
    is_ruled_out: bool  # by what stands before a colon

    @property
    def name(self) -> Any:
        return next(name for name in PRIMITIVES if self.match.group(name))

    @property
    def is_asked(self) -> bool:
        """Whether the clause asks, or reports what others say."""
        asks = self.following.startswith(("?", "？")) and _WITHOUT.search(self.text) is None
        return asks or any(words.search(self.text) for words in (_ASKS_WHETHER, _HEARSAY))

    @property
    def denies(self) -> bool:
        """Whether the clause, or what stands before its colon, denies something."""
        return self.is_ruled_out or (_DENIAL.search(self.text) is not None and _NOT_TOO.search(self.text) is None)

    @property
    def words(self) -> str:
        return self.written.strip().strip(":：").strip()[:500]

    @property
    def phase(self) -> Any:
        """The phase that the clause, or else its sentence, names; `None` for several or none."""
        named = {str(match.lastgroup) for match in PHASE.finditer(self.key + self.text)}
        return named.pop() if len(named) == 1 else self.scope if not named else None

    @property
    def stated(self) -> int | None:
        """The degree that stands beside the primitive."""
        return read_whole(self.match["after"] or self.match["before"])


def leave_unbounded(page: Page, claims: Claims) -> None:
    """List what no constraint on a degree can state: a lower bound, and a single excluded value."""
    for match in page.search(_FROM_BELOW):
        words = page.take(*match.span())
        claims.leave_unread(f"{words!r}: a degree has no least here, only a most (tp <= 4), one value (tp = 4) or none")
    for match in page.search(_BUT_ONE):
        claims.leave_unread(f"{page.take(*match.span())!r}: {ONE_LEFT_OUT}")


def read_primitives(page: Page) -> list[Constraint]:
    """The demands on each primitive that the page names; their words are taken."""
    demands: list[Constraint] = []
    # A line ends a clause, even where the words at its end were taken.
    lines = [match.span() for match in re.finditer("\n", page.original)]
    breaks = sorted({*breaks_of(page.text, _CLAUSE_END), *lines})
    for match in list(page.search(PRIMITIVE))[:MOST_READ]:
        clause = _clause_of(page, match, breaks)
        if clause.stated and PERMITS.search(clause.text):
            continue
        if clause.name == "dp":
            demand = _one_replica(clause)
        else:
            demand = _bounded(clause) or _placed(clause) or _not_either(page, clause) or _forbidden(clause)
        if demand is not None:
            _take(page, clause, demand)
            demands.append(demand)
        if demand is None and clause.name != "dp" and (later := _said_behind(page, clause)) is not None:
            demands.append(later)
            continue
        # "EP is fine, but only inside one machine"
        is_named = demand is None and clause.name != "dp" and clause.stated is None and not clause.is_asked
        is_bound = isinstance(demand, DegreeConstraint)
        stays = _STAYS_TOO.match(page.text, clause.start + len(clause.text)) if is_bound or is_named else None
        if stays is not None and not page.text[stays.end() : stays.end() + 2].lstrip().startswith("?"):
            page.take(*clause.match.span())
            page.take(*stays.span())
            words = page.original[clause.start : stays.end()].strip()[:500]
            primitive: Any = clause.name
            demands.append(PlacementConstraint(kind="within_node", value=primitive, words=words))
    return demands


def _said_behind(page: Page, clause: _Clause) -> Constraint | None:
    """What the next clause demands of a primitive whose own demands nothing: "EP 可以用, 但不要超过 16"."""
    behind = _BEHIND.match(page.text, clause.start + len(clause.text))
    if behind is None or clause.stated is not None or clause.is_asked:
        return None
    words = page.original[clause.start : behind.end()].strip()[:500]
    page.take(*clause.match.span())
    page.take(*behind.span())
    degree = read_whole(behind["n"])
    bound = ForbiddenDegree(name=clause.name, relation="forbidden")
    value = bound if degree is None else DegreeBound(name=clause.name, relation="<=", degree=degree)
    return DegreeConstraint(kind="degree", value=value, phase=clause.phase, words=words)


def _clause_of(page: Page, match: re.Match[str], breaks: list[tuple[int, int]]) -> _Clause:
    """The clause from the last break or colon before the primitive to the first break behind it."""
    text = page.text
    after = bisect_left(breaks, (match.start(), match.start()))
    left = max(breaks[after - 1][1] if after else 0, match.start() - _LONGEST_CLAUSE)
    right = next((start for start, _ in breaks[after:] if start >= match.end()), len(text))
    right = min(right, match.end() + _LONGEST_CLAUSE)
    first, left = left, max(left, text.rfind(":", left, match.start()) + 1)
    colon = text.find(":", match.end(), right)
    # What stands behind a colon is about this primitive, unless it names another.
    if colon >= 0 and PRIMITIVE.search(text, colon, right):
        right = colon
    begins = max(text.rfind(end, 0, match.start()) for end in ".;。\n") + 1
    scope = _SCOPE.match(page.original, begins)
    named = None if scope is None else PHASE.search(scope.group())
    phase = None if named is None else str(named.lastgroup)
    written = page.original[left:right]
    is_ruled_out = _FORBIDS.search(page.original, begins, match.start()) is not None
    return _Clause(
        left, text[left:right], written, match, text[right : right + 12], text[first:left], phase, is_ruled_out
    )


def _take(page: Page, clause: _Clause, constraint: Constraint) -> None:
    """Mark what was read: the primitive with its degree, the number of a bound, the node that is not left."""
    if not isinstance(constraint, PlacementConstraint) or clause.stated is None:
        page.take(*clause.match.span())
    if isinstance(constraint, PlacementConstraint):
        for place in (*_INSIDE.finditer(clause.text), *_CROSSING.finditer(clause.text)):
            page.take(clause.start + place.start(), clause.start + place.end())
    bound = constraint.value if isinstance(constraint, DegreeConstraint) else None
    if isinstance(bound, DegreeBound) and clause.stated is None:
        for count in _COUNT.finditer(clause.text):
            if read_whole(count["n"]) in (bound.degree, bound.degree + 1):
                page.take(clause.start + count.start("n"), clause.start + count.end("n"))
                break


def _bounded(clause: _Clause) -> Constraint | None:
    """The most that a degree may be: a word of a bound, and the number that it bounds."""
    if _LEAST.search(clause.text):
        return None
    words = list(_MOST.finditer(clause.text))
    left, right = clause.match.start() - clause.start, clause.match.end() - clause.start
    degree = clause.stated
    if degree is not None:
        words = [word for word in words if -_NEAR <= word.end() - left <= 0 or 0 <= word.start() - right <= _NEAR]
    elif words:
        counts = [count for count in _COUNT.finditer(clause.text) if TAKEN not in count.group()]
        near = min(counts, key=lambda count: min(abs(count.start() - word.end()) for word in words), default=None)
        degree = None if near is None else read_whole(near["n"])
    # A list of degrees is no bound.
    if not words or degree is None or _LISTED.match(clause.following):
        return None
    if any(word["less"] or word["less_sign"] for word in words):
        degree -= 1
    if degree < 1:
        return None
    value = DegreeBound(name=clause.name, relation="<=", degree=degree)
    return DegreeConstraint(kind="degree", value=value, phase=clause.phase, words=clause.words)


def _placed(clause: _Clause) -> Constraint | None:
    """Groups that stay on a node, since they must be inside or must not cross, or that have to leave one."""
    denied = clause.denies
    crosses = _crosses(clause)
    inside = not crosses and _INSIDE.search(clause.text) is not None and _STRICT.search(clause.text) is not None
    if clause.stated is not None:  # "TP=8 inside each node and PP=2 across", "每台机器内部四路张量并行"
        behind = _OF_EACH_NODE.match(clause.text, clause.match.end() - clause.start)
        inside = (behind or _IN_EACH_NODE.search(clause.text)) is not None and not denied
        crosses = denied = False
    if crosses and not denied and _demands_crossing(clause):
        return PlacementConstraint(kind="across_nodes", value=clause.name, words=clause.words)
    if clause.is_asked or crosses != denied or not (crosses or inside):
        return None
    return PlacementConstraint(kind="within_node", value=clause.name, words=clause.words)


def allows_crossing(page: Page, match: re.Match[str]) -> bool:
    """Whether a clause allows a primitive to leave a node ("EP may span nodes"), which it may in any case."""
    left, right = page.clause(*match.span())
    clause = page.original[left:right]
    return all(words.search(clause) for words in (_CROSSING, _ALLOWS)) and not _DENIAL.search(clause)


def _demands_crossing(clause: _Clause) -> bool:
    """Whether a clause about leaving a node demands it, and does not only allow or report it."""
    crossing = _CROSSING.search(clause.text)
    if clause.is_asked or crossing is None or _ALLOWS.search(clause.key):
        return False
    if _DEMANDS.search(clause.text) or _AND_SHOULD.match(clause.following):
        return True
    left, right = clause.match.start() - clause.start, clause.match.end() - clause.start
    (_, first), (second, _) = sorted(((left, right), crossing.span()))
    begins, ends = min(left, crossing.start()), max(right, crossing.end())
    parts = clause.text[:begins], clause.text[first:second], clause.text[ends:]
    return all(_NOTHING_ELSE.fullmatch(part) for part in parts)


def _not_either(page: Page, clause: _Clause) -> Constraint | None:
    """Groups that may not leave a node, where the clause before allows others to."""
    before = page.original[max(0, clause.start - _BEFORE_IT) : clause.start]
    if clause.is_asked or not _MAY_NOT.search(clause.text) or not _CROSSING.search(before):
        return None
    return PlacementConstraint(kind="within_node", value=clause.name, words=clause.words)


def _crosses(clause: _Clause) -> bool:
    """Whether a clause speaks of leaving a single node; "more than two nodes" does not."""
    crossing = _CROSSING.search(clause.text) or (_CROSSING.search(clause.key) if clause.denies else None)
    return crossing is not None and (crossing["many"] is None or read_whole(crossing["many"]) == 1)


def _is_denied(clause: _Clause) -> bool:
    """Whether the primitive itself is ruled out: not a degree of it, nor that it crosses nodes."""
    if clause.is_asked or clause.stated is not None or any(map(_CROSSING.search, (clause.text, clause.key))):
        return False
    return clause.denies


def _forbidden(clause: _Clause) -> Constraint | None:
    if not _is_denied(clause):
        return None
    value = ForbiddenDegree(name=clause.name, relation="forbidden")
    return DegreeConstraint(kind="degree", value=value, phase=clause.phase, words=clause.words)


def _one_replica(clause: _Clause) -> Constraint | None:
    """ "No data parallelism": one replica. Other bounds speak of replicas by name and are read elsewhere."""
    return ReplicasConstraint(kind="replicas", value=1, words=clause.words) if _is_denied(clause) else None
