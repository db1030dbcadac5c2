"""How a statement ranks beside a rival: what holds now before what held once or holds for others.

Ranks count only where two statements differ; alone, each is read as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ..lexicons.reserved import NOT_FOR_US
from ..patterns.gated import Gated
from ..patterns.page import APART, between, breaks_of, parts

# Words by which a clause holds, whatever was said elsewhere.
_HOLDS = Gated(
    r"(?<![a-z])(?:final(?:ly)?|valid|binding|decided|agreed|settled|confirmed|correct(?:ed)?(?:\s(?:is|to))|go(?:ing)?\swith|"
    r"present\sstate|from\snow\son|as\sof\snow|now(?!\sand)|new\s(?:scope|plan|number|figure|target)|"
    r"ours(?=\s(?:is|are))|(?:we|i|they)\s(?:stay|keep|stick)\s(?:on|with|to|at)|still\svalid|chosen|picked|approved|granted)(?![a-z])|^\s?so(?!\sfar)(?![a-z])|^\s?所以|"
    r"最终|现在|只批|(?:今年|先|就|改)按|目前定|改[为成用到]|换成|拍板|定了|为准|按[^,;。\n]{0,12}[算来做规]",
)
_PREFERS = re.compile(
    r"(?<![a-z])(?:(?:i|we)(?:'d|\swould)?\s(?:(?:much|really|strongly)\s)?(?:prefer|rather|keep|stay|stick)(?!\snot(?![a-z]))|preferabl[ey]|let\sus\sstay\swith|let's\sstay\swith)(?![a-z])|更(?:想|倾向|希望)|优先用?(?=\s?[a-z])",
    re.IGNORECASE,
)
# Words about something that runs already, or that others plan.
_STAYS_ENGLISH = (
    r"(?:don't|do\snot|no\sneed\sto|never)\s(?:plan|size|count|touch|include|consider|move|want|need|take|use)\s(?:for\s|on\s|with\s|any\sof\s)?(?:it|that|this|these|them|those)|"
    r"(?:not|(?:is|are)n't)\s(?:to\sbe\s)?(?:planned|sized|touched|moved|in\sscope|part\sof|included|yours\sto\splan)|(?:must|may|can|should)(?:n't|\snot)\sbe\s(?:planned|touched|moved|changed)|out\sof\sscope|"
    r"already\s(?:running|runs?|deployed|live|served|in\splace|up|there|lives?|sits?|hosted|in\sproduction)|(?:runs?|running|lives?|sits?|served|deployed|hosted)\salready|"
    r"(?:leave|let|keep|count|hands?)\s(?:it|that|this|these|those|them|both)\s(?:alone|be|out|aside|away|off)|hands\soff|stays?\s(?:where|as\s(?:it|they|is)|that\sway|put)|(?:handled|planned|sized)\s(?:by|in\san?other|elsewhere|separately)|untouchable|(?:leave|count)\sout"
)
_STAYS_CHINESE = (
    r"不(?:用|需要|需|必|要)(?:规划|考虑|管|动|算)|已经?(?:在跑|跑着|部署|上线|在用)|不在(?:范围|规划|本次)|"
    r"[别不][能要]?动|另(?:外|行)规划"
)
STAYS = Gated(rf"(?<![a-z])(?:{_STAYS_ENGLISH})(?![a-z])|{_STAYS_CHINESE}")
_FOR_OTHERS = rf"(?:to|for)(?:\s(?!(?:ours?|my|now)(?![a-z])){NOT_FOR_US}[a-z]+|(?!\s?\w))"
# Hardware that others get: "booked by research", "goes back to QA", "training blocks them", "those are for CAD".
GIVEN_AWAY = (
    r"(?:(?:book|reserv|earmark|assign|allocat|promis|dedicat|claim|pledg|commit|hand|loan|leas)(?:t?ed|ied)|given|lent|spoken|taken|held)"
    rf"\s(?:only\s|all\s)?(?:(?:by|out|over)(?!\s(?:us|me|ours?|my|this|it|now)(?![a-z])|\s\ue000)|{_FOR_OTHERS})|"
    r"(?:went|gone)\sto|(?:go(?:es|ing)?|went|gone|sen[dt]s?|gets?|got|handed|given|gave|shipped|moved?)\s(?:them\s)?back\sto|returned\sto|(?:used|owned|needed|occupied|blocked)\sby(?!\s(?:us|me)(?![a-z]))|going\s(?:to|for)\s(?:the|an?other)|"
    r"(?<!we\s)(?<!i\s)(?<!you\s)(?:blocks?|owns?|keeps?|claims?|books|pays?\sfor)\s(?:it|them|those|these)|"
    rf"(?:those|these|they)(?:'re|\sare)\s(?:all\s|only\s)?{_FOR_OTHERS}"
)
# "the two cards that finance handed over", "which ops gave us".
_GIVEN_TO_US = Gated(
    r"(?<![a-z])(?:(?:that|which)\s)?(?!(?:we|i|you|is|are|was|were|has|have|had|been|will)\s)[a-z]{2,12}\s(?:(?:has|have|had|just|already)\s){0,2}"
    r"(?:(?:hand(?:s|ed)|pass(?:es|ed)|g[ai]ve[sn]?|le(?:ft|nt)|releas(?:es|ed)|promised)\s(?:(?:over|on|them|it)\s)?(?:to\sus|for\sus|us))(?![a-z])|"
    r"(?<![a-z])(?:that|which)\s(?!(?:we|i|you|is|are|was|were|has|have|had|been|will)\s)[a-z]{2,12}\s(?:handed|passed|left)\s(?:over|on|behind)(?!\sto\s(?!us))(?![a-z])"
)
# Words by which a clause or sentence held once, holds for others, may hold later, or is not meant.
_ASIDE = Gated(
    rf"(?<![a-z])(?:{_STAYS_ENGLISH}|"
    r"(?:don't|doesn't|do\snot|does\snot|can't|cannot)\s(?:do|support|have|run|handle|speak|know)|"
    r"(?:won't|will\snot|doesn't|does\snot|can't|cannot)\s(?:even\s)?(?:fit|leave|hold|suffice|be\senough)|"
    r"(?:was|were)(?!\s(?:\w+ly\s)?(?:approved|granted|confirmed|delivered|agreed|chosen|picked))|had|used\sto|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|earlier|before|old(?:er)?|"
    r"at\sfirst|first\s(?:draft|version|idea|plan|quote|estimate)|last\s(?:week|month|quarter|year|time|summer|autumn|winter|spring)|"
    r"v\d(?:\.\d)?\s(?:had|was|asked|number|draft|used|of|plan)|(?:in|the|from|since)\sv\d(?=[\s,.;:)])|back\sthen|(?:in|from|of)\s(?:19|20)\d\d|legacy|retired|decommissioned|today(?!'s)|current(?:ly)?|existing|so\sfar|"
    r"evaluated|tested|tried|considered|benchmarked|looked\s(?:at|into)|asked\sfor|requested|wanted|hoped\sfor|quoted?|superseded?s?|replaced?s?|replaces|"
    r"dead|dropped|drop|scrap(?:ped)?|forget|ignore[ds]?|disregard|no\slonger|not\sany\s?more|any\s?more|obsolete|history|void|"
    r"withdr[ae]wn?s?|(?:crossed|struck|stricken)\s(?:out|off)|(?:out\sof|(?:has|have|had|with)\sno|not\sin)\sstock|rejected|declined|denied|refused|revoked|lapsed|expired|sold|cancell?ed|no\sbudget|off\sthe\stable|off\slimits|not\s(?:this|that|the|selected|chosen|approved|meant|ours|relevant|valid)|"
    r"(?:is|are)\s(?:going\s(?:away|back)|being\s(?:retired|decommissioned|returned|phased\sout|removed)|leaving)|(?:is|are)(?:n't|\snot)\s(?:available|accessible|ours|for\sus)|stays?\sthere|(?:goes?|went|gone)\s(?:back|away)|"
    r"fell\sthrough|(?:is|are)\s(?:now\s|already\s)?(?:out|gone|unavailable)(?!\s\d)|out\sof\sthe\squestion|ruled\sout|"
    rf"{GIVEN_AWAY}|came\sup|(?:was|were)\sgonna|suggested|(?<!we\s)(?<!i\s)(?<!the\s)proposed|pitched|wrong|typo|mistake|too\s(?:optimistic|high|low|strict|expensive|slow|much|many|tight|loose)|outdated|deprecated|stale|"
    r"(?:vendor|supplier|partner)s?(?:'s)?\s(?:demo|poc|numbers?|claims?|slides?|deck|sheet)|poc|proof\sof\sconcept|follow-?ups?|demo\sdid|didn't|weren't|wasn't|(?:an)?other(?:'s)?\s(?:team|department|group|project|compan(?:y|ies)|cluster|site|lot|tenant|unit|product|service)s?|"
    r"(?:team|group|lot|site|phase|plan|option)\s(?:[a-z](?![a-z])|\d)|colleagues?|competitors?|sister|neighbou?rs?|(?:some|any|every|no)(?:one|body)\selse(?:'s)?|next\sdoor|"
    r"(?:their|his|her)\s(?:thing|business|budget|stuff)|(?:its|their|his|her)\sown|not\s(?:our|my|your)\s\w+(?=\s?[,.;:!)\n]|$)|(?:folks|guys|people)(?!\s(?:will|want|need|use|ask))|(?:remains?|stays?|stuck)\swith(?!\sus(?![a-z]))|"
    r"(?:none|nothing|not\sone)\sof\s(?:it|that|this|them|those|these|which)\s(?:is|are)\s(?:ours|for\sus|mine)|"
    r"(?:everyone|everybody|people|they|vendors?|some(?:one|body))(?:\s(?!and|but)\w+){0,3}\ssays?|(?:was|were)\stold|(?:'ve|have)\s(?:also\s)?(?:read|heard)|rumou?rs?|"
    r"burn(?:ed|t|s)?|(?:pre|post)?-?train(?:ing|ed|er|ers)|fine[\s\-]?tun(?:ing|ed)|died|misunderstanding|mix[\s\-]?up|mistaken(?:ly)?|"
    r"out\sof\s(?:service|order|use)|(?:broken|defective|dead)\s(?:psu|fan|board|card|node)s?|road\s?map|(?:a\s|an\sentirely\s)?different\s(?:budget|machine|team|project|cluster|box|system|site)s?|"
    r"(?:has|have|had|got)\snothing\sto\sdo\swith|(?:is|are)(?:n't|\snot)\s(?:affected|touched|concerned|involved|impacted)|"
    r"elsewhere|belongs?|embed(?:der|ding|dings)|rerank(?:er|ers|ing)?|retriev(?:al|er)|vector\s(?:store|db|database)|staging|"
    r"dev(?:elopment)?\s(?:box|cluster|environment)|test\s(?:box|cluster|environment)|(?:for|as)\s(?:a\s)?(?:comparison|reference)|(?<!this\s)(?<!for\sthe\s)(?<!for\sour\s)(?<!the\scurrent\s)(?:pilot|trial\srun)|(?:is|are|was)\sover(?=\s?[,.;:)\n]|\ssince)|has\sended|"
    r"next\s(?:year|quarter|month|spring|summer|autumn|winter)|eventually|when|once|dies|fails|crash(?:es|ed)?|some\s?day|in\sthe\s(?:long\srun|future)|"
    r"by\s(?:the\s)?end\sof|year[\s\-]end|would|could|might|maybe|perhaps|hypothetical(?:ly)?|if)(?![a-z])|"
    r"(?<!我)(?:给|归|是|还)了?(?!我|咱|本)[^,;。\n]{1,8}(?:组|团队|部门|同事|室|院)(?:了|的|用)?|不归我们|不是我们|没到货?|别人|撤[回销]|[别不]管|不参与|原[来先定计有值]|之前|以前|先前|早先|当时|一开始|最初|起初|上[次周月]|上一?期|上个月|去年|旧|第一版|初版|曾经?|过去|作废|废弃|不用了|"
    r"先不[管看算]|[别不](?:让|许|准|给|允许)[用上买]|暂不|暂时不|不要了|不再|不保留|没批|没货|停产|换掉|不[上用要买行]|不考虑|否决|放弃|取消|算了|太[夸高低严贵慢大小乐]|现网|现用|老(?:环境|机器|集群|系统|服务)|一期|[看算记搞]错|有误|写错|别按|不算|弃用|淘汰|隔壁|别的|其[他它](?:团队|部门|组|项目|业务)|"
    rf"{_STAYS_CHINESE}|"
    r"(?:跑|用|支持)不了|不支持|没法[跑用]|友商|(?:测试|开发|灰度)环境|训练|嵌入|向量|对比|参考|年底|明年|以后|将来|后续|可能|也许",
)
# "Last week we switched to ...", "上周定了换 ...": what was decided then holds now.
_DECIDED_THEN = Gated(
    r"(?<![a-z])(?:last\s[a-z]{3,9}|yesterday),?\s(?:we|they|i)\s(?:decided|settled|agreed|switched|moved|changed|went)(?![a-z])|"
    r"(?<![a-z])(?:decided|settled|agreed|switched|moved|changed)\s[^,.;\n]{2,60}\slast\s[a-z]{3,9}(?![a-z])|"
    r"(?:上[次周月]|上个月|昨天|前天|之前)[^,;。\n]{0,6}?(?:定了|定的是?|决定|拍板|敲定)"
)
_FORMER = Gated(
    r"(?:(?:mov(?:ed?|es|ing)|migrat\w{2,4}|switch\w{0,4}|go(?:ing|es)?)\s[^,;\n]{2,50}\sfrom|(?:mov(?:ed?|ing)|chang(?:ed?|ing)|migrat\w{2,4}|coming|upgrad\w{2,4}|switch\w{0,4})\s(?:away\s)?from|tried|used\sto\s(?:use|run|have)(?:\son)?|"
    r"previous(?:ly)?(?:\s(?:on|used|had|ran))?|formerly|(?:better|faster|cheaper|slower|quality)\sthan|compar(?:ed|able|ing)\s(?:to|with)|"
    r"(?:close|similar|equal)\sto|unlike|(?:以前|之前|原来|原先)(?:都|一直)?(?:使?用|是)?(?:的是|的)?|相比|不如|"
    r"(?<![a-z])not|rather\sthan|instead\sof|而?不是|而非)"
    r"(?:\s(?:the|our|an?|using|on|with|to|old|(?:pile|bunch|couple|set|handful)\sof))*\s?(?:\d{1,5}\s?[x张块台]?\s?)?$",
)
_CLAUSE_END = Gated(
    r"[,;.!?()\[\]\n。]|(?<=[^,;.!?()\[\]\n]{20}):|\s[-–—]{1,2}\s|\s(?:but|while|whereas|and\sthen)\s|而|但|不过",
)
_SENTENCE_END = re.compile(r"[.;!?()\[\]\n。]")
# Words of a clause about what held before.
_HELD_ONCE = Gated(
    r"(?<![a-z])(?:was|were(?!\s(?:given|handed|granted|promised|allocated|assigned|told|allowed)(?![a-z]))|had\sbeen|used\sto\sbe)(?![a-z])|之前是|原来是|那是",
)
_TOLD_END = Gated(r"[,;!?\n。]|\.(?=\s|$)|\s(?:but|and)\s")
# Later words that still speak of a name: the clause right behind it that begins so, or one of its next two with "them".
_REFERS = Gated(r"\s?(?:(?:and|but|so|no|or|sorry)\s)*(?:which|that|those|these|they|it)(?![a-z])")
_REFERS_TO_SEVERAL = Gated(r"(?<![a-z])(?<!\sof\s)(?:they|them|those|these|both)(?![a-z])|hands\soff")
# Up to where they do: another name, or other hardware.
_OTHER_THING = Gated(
    r"(?<![a-z])(?:[a-z]{1,3}\d{1,4}|(?<!those\s)(?<!these\s)(?:gpus?|cards?|nodes?|servers?|machines?|box(?:es)?)(?![a-z]))"
)
_MOST_PLACES = 16
_REFERRING = 120  # characters behind a name
_BEHIND = 40  # characters behind a name that speak of it
_BEHIND_NAME = Gated(r"s?(?:\s[a-z]{2,12})?\s?\((?P<said>[^()\n]{2,60})\)")
_APPOSED = Gated(r"s?\s?(?:[-–—:]{1,2}\s|\()(?P<said>[^,.;:()\n]{2,40})(?=[,.;:()\n]|$)")
_OPEN = Gated(r"(?<![a-z])(?:if|when|once|would|could|might|maybe|perhaps|eventually|next)(?![a-z])")
_BEHIND_FIGURE = Gated(r"[^\d()\n]{0,20}\((?P<said>[^()\d\n]{2,60})\)")
_MOST_IN_BRACKET = 80
_IN_BRACKET = re.compile(r"[(\[][^()\[\]\n]*$")
_REST_OF_BRACKET = re.compile(r"[^()\[\]\n]{0,80}(?=[)\]])")
_BEHIND_BRACKET = re.compile(r"[)\]][^.;!?()\[\]\n。]{0,80}")
# Behind a question: the answer is no.
_DENIED = Gated(
    r"\?\s{0,5}(?:\[?\d{1,2}:\d\d(?::\d\d)?\]?\s{0,3})?(?:[^\n:]{1,24}:(?:\d\d)?\s{0,3})?(?:(?:no(?=\s?(?:[,.;!\n]|$)|\s(?:our|the|my|we|it|that|this|they|i)(?![a-z])|\s(?:[a-z]+\s){1,2}(?:took|takes|has|have|got|gets|is|are|needs?|uses?|grabbed|owns?)(?![a-z]))|nope|nah|not|never)(?![a-z])|不|没|否)",
)


def standing(text: str, start: int, end: int, *, is_name: bool = False) -> int:
    """The rank of the words at `start`..`end`; of rivals the lowest counts. A name says nothing of itself.

    -1 where their clause says that it holds, 0 where nothing is said, 1 where their sentence speaks of something else
    or is a question that is denied, 2 where their own clause does.
    """
    if text.startswith(APART, text.rfind("\n", 0, start) + 1):
        return 2
    words = "_" if is_name else text[start:end]
    if is_name and (bracket := _BEHIND_NAME.match(text, end)) is not None:
        if _ASIDE.search(bracket["said"]):  # "8 A100 (training, untouchable)"
            return 2
        end = bracket.end()  # "Qwen3-4B (moderation) already runs"
    elif not is_name and (bracket := _BEHIND_FIGURE.match(text, end)) is not None and _ASIDE.search(bracket["said"]):
        return 2  # "95 requests per minute (ignore)"
    left, right = between(breaks_of(text, _CLAUSE_END), start, end, len(text))
    if rank := rank_of(f"{text[left:start]}{words}{text[end:right]}"):
        return rank
    if (bracket := _bracket_around(text, left, right)) is not None:  # "the old setup (2x A100, Llama 2)"
        left, right = bracket
        before, _ = between(breaks_of(text, _CLAUSE_END, 0, left), left, left, left)
        if (rank := rank_of(text[before:left])) > 0:
            return rank
        behind = _BEHIND_BRACKET.match(text, right)  # "Type D (8x B200), mentioned in an earlier mail, is withdrawn"
        if behind is not None and _ASIDE.search(behind.group()):
            return 2
    if is_name and any(_is_aside(text[start:end]) for start, end in _referring(text, right)):
        return 2
    left, right = between(breaks_of(text, _SENTENCE_END), start, end, len(text))
    if _DENIED.match(text, right) is not None:
        return 2
    return int(_is_aside(f"{text[left:start]}{words}{text[end:right]}"))


def _bracket_around(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The place of the bracket that opens before `start` and of the one that closes behind `end`; else `None`."""
    inside = _IN_BRACKET.search(text, max(0, start - _MOST_IN_BRACKET), start)
    rest = _REST_OF_BRACKET.match(text, end)
    return None if inside is None or rest is None else (inside.start(), rest.end())


def about(text: str, start: int, end: int) -> tuple[int, int]:
    """The clause of a name, with the later ones that speak of it."""
    left, right = between(breaks_of(text, _CLAUSE_END), start, end, len(text))
    return left, max((stop for _, stop in _referring(text, right)), default=right)


def _referring(text: str, end: int) -> Iterator[tuple[int, int]]:
    """The clauses behind the clause of a name, which ends at `end`, that speak of it by a pronoun."""
    pattern = _REFERS
    for place, clause in parts(text[end : end + _REFERRING].partition("\n")[0], _CLAUSE_END):
        if _OTHER_THING.search(clause):
            return
        if pattern.match(clause) or _REFERS_TO_SEVERAL.search(clause):
            yield end + place, end + place + len(clause)
        pattern = _REFERS if not clause.strip() else _REFERS_TO_SEVERAL


def rank_of(words: str) -> int:
    """The rank of words that stand alone, such as the head of a table's column."""
    if _PREFERS.search(words):
        return -1
    return 2 if _is_aside(words) else -1 if _HOLDS.search(words) else 0


def _is_aside(words: str) -> bool:
    """Whether words set something aside; neither what others handed over to us nor what was decided then does."""
    return _ASIDE.search(_DECIDED_THEN.sub(" ", _GIVEN_TO_US.sub(" ", words))) is not None


def is_given_up(text: str, end: int) -> bool:
    """Whether the words right behind a name, in its clause, call it given up or another's."""
    apposed = _APPOSED.match(text, end)  # "16x L40S – crossed out"
    if apposed is not None and not _OPEN.search(apposed["said"]) and _ASIDE.search(apposed["said"]):
        return True
    near = breaks_of(text, _CLAUSE_END, end, end + 2 * _BEHIND)
    right = min(end + _BEHIND, near[0][0] if near else len(text))
    return _is_aside(text[end:right])


def standing_of(text: str, words: str) -> int:
    """The lowest (best) rank of `words` at their first places in the text; 0 where they are not in it as written."""
    places = islice(re.finditer(re.escape(words), text), _MOST_PLACES) if words else ()
    ranks = [standing(text, *match.span()) for match in places]
    return min(ranks, default=0)


def is_former(text: str, start: int) -> bool:
    """Whether a name is a former one, or one that something is compared with ("moving from 8 A100s to ...")."""
    return _FORMER.search(text[max(0, start - 60) : start]) is not None


def tells_of_before(text: str, words: str) -> bool:
    """Whether the clause of `words` says that they held once."""
    start = text.find(words) if words else -1
    if start < 0:
        return False
    left, right = between(breaks_of(text, _TOLD_END), start, start + len(words), len(text))
    return _HELD_ONCE.search(text, left, right) is not None
