"""What no reader took of a page: numbers, subjects and demands, listed as doubts.

Remarks that demand nothing raise none: that something is the only rule, what is still to be said, a ticket's number.
"""

from __future__ import annotations

import re

from .conflicts.claims import Claims
from .conflicts.statement_rank import STAYS
from .constraints.words import LEFT_TO_US
from .goals.objective import wants
from .lexicons.reserved import HARDWARE
from .model.names import leave_sizes_unread
from .patterns.gated import Gated
from .patterns.page import MODEL, OTHER, TAKEN, Page
from .patterns.quantities import find_quantities

_MOST_UNREAD = 50
_SHORT = 10
_OF_NO_MATTER = Gated(
    r"\s(?:of\s(?:us|you|them|(?:these|those)(?!\s(?:nodes?|servers?|machines?|box(?:es)?|hosts?|gpus?|cards?)(?![a-z]))|which)|(?:[a-z]{3,12}\s)?(?:things?|reasons?|options?|ways?|questions?|kinds?|sorts?|types?|times?(?!\s(?:that|this|it|as|the|our|what|today)(?![a-z]))|"
    r"teams?|people|persons?|weeks?|months?|years?|days?|hours?|minutes?|shifts?|points?|sites?|parts?|phases?|steps?|"
    r"sides?|products?|languages?|cases?|applications?|apps?|services?|pools?|stages?|numbers?|figures?|limits?|fix(?:es)?|changes?|corrections?|remarks?))(?![a-z])|[个种次天年月周]",
)
_MODELS = Gated(r"\smodels(?![a-z])|个?模型")  # "two models", of which one is planned
# "since 09:40", "by 6:00": times of a day ask for nothing; a window in which an amount comes was read before.
_CLOCK = Gated(
    r"(?<![\d:.])(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?![\d:])\s?(?:[ap]\.?m\.?(?![a-z])|uhr|h(?![a-z]))?",
)
# "19-22h", "from 9 to 6 pm", "after 18h": hours without minutes; "h" is a duration but beside words of the day.
_HOUR = r"(?:[01]?\d|2[0-4])"
_HOURS_OF_DAY = Gated(
    rf"(?<![A-Za-z0-9_:.])(?:(?:after|before|until|till|from|since|by|at)\s)?{_HOUR}(?:\s?(?:h|[ap]\.?m\.?|点钟?|时)?\s?(?:-|–|—|~|to|until|till|and|到|至)\s?{_HOUR})?"
    r"\s?(?:(?P<h>h(?![a-z])|点钟?|时(?![间延长]))|uhr|o'clock|[ap]\.?m\.?(?![a-z]))",
)
_OF_THE_DAY = Gated(
    r"(?<![a-z])(?:peaks?|busy|busiest|rush|quiet|evenings?|mornings?|afternoons?|nights?|noon|lunch|daytime|office|working|between|after|before|until|from|daily|weekdays?|window|open)(?![a-z])|高峰|峰|忙|闲|晚|早|夜|白天|时段",
)
# "DeepSeek V3 0324", "R1-0528": the month of a release, whose shape the name before it has.
_RELEASE = Gated(
    rf"(?<={MODEL})[\s\-]?(?:0[1-9]|1[0-2]|2[3-6])\d\d(?![\d.,]|\s?[a-z%\u4e00-\u9fff]*(?:tok|in|out|词))",
)
_ARTICLE = Gated(r"(?:a|an|one|single|一)(?![a-z])")
# Words that demand something.
_DEMAND = Gated(
    r"(?<![a-z])(?:must(?:n't)?|shall|disabled?|enforce|without|do(?:es)?\snot|don't|not\son|no(?=\s[a-z]{3,}\s?[a-z]*\s?(?:[,.;)\n]|$))|"
    r"(?:has|have|needs?)\sto(?!\s(?:know|see|understand)(?![a-z]))|required?|exactly|precisely|at\smost|at\sleast|"
    r"(?:not|n't)\s(?:across|over(?!\s\d)|between|beyond|outside|anything|anywhere)|nothing(?=\s(?:may|must|should|can|is\sto|crosses|spans|leaves|goes|across|over|beyond)(?![a-z]))|(?:except|unless|until|instead\sof)(?=\s)|avoid|stays?(?=\s(?:in|on|inside|within)\s)|no\smore\sthan|no\s(?:bigger|larger|wider|higher)\sthan|not\sallowed|forbidden|fixed|never|only)(?![a-z])|"
    r"必须|只能|不得|不能|不[做跨走搞想许准]|别(?![的人处家])|除非|除了|不要|禁止|不许|至少|至多|最多|恰好|不超过",
)
# What a request may want, by its field; where the field was read, the words only mention it again.
_SUBJECT = Gated(
    r"(?P<objective>(?<![a-z])(?:throughput|goodput|latency|cheap(?:er|est)?|fastest|costs?)(?![a-z])|吞吐|时延|延迟|成本)|"
    r"(?P<disaggregated>(?<![a-z])prefill(?=[^.;\n]{0,40}(?<![a-z])decode)(?![a-z]))",
)
# Words that decide a plan, whatever is said of them: in a clause that was not read and asks nothing.
_DECISIVE = Gated(
    r"(?<![a-z])(?:nodes?|machines?|servers?|hosts?|instances?|replicas?|copies|gpus?|cards?|spans?|spanning|cross(?:es|ing)?|across|"
    r"shard(?:ed|ing)?|soon(?:er|est)|idle|spare|stand-?by|failover|"
    r"redundan(?:t|cy)|quanti[sz](?:e|ed|ing|ation)|bf16|fp8|fp4|int4|int8)(?![a-z])|"
    r"跨机|跨节点|跨服务器|独立部署|副本|实例|备用|热备|冷备|预留|量化|换卡",
)
_ASKS = Gated(
    r"(?<![a-z])(?:how|which|what|whether|should|could|would|can|tell|show|suggest|recommend|as\s(?:many|few))(?![a-z])|[吗呢么]$|怎么|如何|什么|哪|多少|还是|推荐|是否",
)
_QUESTION = re.compile(r"[^.!;。\n]{0,200}[??]")
# A part of hardware that was counted before: the words may keep that part back.
_PART_OF_THEM = Gated(
    r"(?<![A-Za-z0-9.])(?:one|two|three|four|five|six|seven|eight|\d{1,2})\sof\s(?:them|those|these|its(?!\w)|the\s(?:gpus|cards|nodes|servers|boxes|machines))(?![a-z])|其中[一二两三四五六七八\d]{1,2}[张块台]",
)
_PEOPLE = Gated(
    r"(?<![a-z])(?:users?|people|persons?|dev(?:eloper)?s|agents?|engineers|staff|employees|customers|clients|lawyers|analysts|questions|requests|options|models|teams)(?![a-z])|用户|人|请求",
)
# A factor that changes a figure must not be passed over.
_CHANGES = Gated(
    r"(?<![a-z])(?:trebl(?:e[sd]?|ing)|tripl(?:e[sd]?|ing)|quadrupl(?:e[sd]?|ing)|doubl(?:e[sd]?|ing)(?![\s\-](?:check|precision|click))|halv(?:e[sd]?|ing)|"
    r"(?:twice|thrice)(?=\s(?:the|as|that|this|our|it)(?![a-z])))(?![a-z])|翻[一二两三四五六七八九十\d]*[倍番]|加倍|减半",
)
_ONLY = Gated(r"only")
# A clause that demands nothing in spite of its words.
_REMARK = Gated(
    r"(?:(?:and|but|so|well|ok|yes|please|oh)\s)*(?:"
    r"(?:that|this|it|these|those)(?:'?s|\s(?:is|are|was))?\s(?:really\s|basically\s|about\s|pretty\smuch\s)?(?:(?:the|my|our)\s)?(?:only|sole|one)\s(?:(?:real|hard|firm|fixed|strict|important)\s)*"
    r"(?:rule|requirement|constraint|limit|condition|restriction|thing|wish|demand|must|ask|target|slo)s?(?:\s(?:that\s)?(?:we|i|you|they)\s(?:have|know|need|got|care\sabout|must\skeep))?(?:\s(?:here|really|so\sfar|for\snow))?|"
    r"(?:(?:what|which|anything|is\sthere\sanything|tell\s(?:me|us)\swhat|let\s(?:me|us)\sknow\swhat)\s)(?:[a-z]{2,12}\s){0,3}?(?:would|do|did|could|might|should)?\s?(?:you|we|i)\s(?:[a-z]{4,12}\s){0,2}(?:need|want|have|require|miss)"
    r"(?:\sto\s(?:know|hear|see|decide|say|tell\syou|add))?(?:\s(?:from|of)\s(?:me|us|you))?|"
    r"(?:(?:there\s(?:is|are)|we\shave|i\shave)\s)?(?:no|not\sany|nothing)\s(?:(?:other|further|more|else|additional|special|particular)\s)+(?:(?:hard|firm|fixed|strict)\s)?"
    r"(?:(?:constraint|requirement|limit|restriction|rule|condition|wish|demand)(?:e?s)?)?\s?(?:(?:is|are)\s(?:fixed|required|given|set|decided|known|demanded))?|"
    r"(?:(?:it|this|that|which|the\smodel|we)(?:'s|'re|\s(?:is|are))?\s)?(?:(?:not|n't|never)\s(?:yet\s)?(?:published\s|released\s|available\s)?(?:on|in)\s(?:the|any)\s(?:hugging\s?face\s|hf\s)?hubs?(?:\s(?:yet|either))?)|"
    r"(?:we\s(?:do|use|want|take|buy)(?:n't|\snot)?\s)?(?:no|not|nothing|never|without)\s(?:on\s|any\s)?(?:spot|pre-?emptible|interruptible)(?:\s(?:instances?|stuff|vms?|capacity|nodes?|machines?|pricing|market|please)){0,2}|(?:不用|不要|不买|不考虑)竞价(?:实例)?|"
    r"(?:(?:the|this|that|these|those|which|all|it)\s)?(?:[a-z\-]{3,14}\s){0,3}?(?:(?:is|are)\swhat\s)?(?:(?:has|have|needs?)\sto|must)\sbe\s(?:met|served|survived|held|sustained|carried)|"
    r"(?:其[他它余]|另外)?(?:的)?(?:都|就|也)?(?:没有?|无)(?:其[他它]|别的)?(?:硬性|特别|特殊)?的?(?:要求|限制|约束|条件)了?|(?:这|那|以上)(?:就|也|才|些)?是?(?:唯一|仅有)的?(?:硬性|一条|一个)?(?:要求|限制|条件|指标|红线)|"
    r"(?:只有|就)这(?:一|么一)?[个条点](?:硬性?)?(?:要求|限制|条件)|(?:你|您)?还(?:需要|要|缺)(?:我|我们)?(?:补充|提供|告诉|给|说明)?(?:你|您)?(?:什么|哪些)?(?:信息|数据|参数)?(?:吗|么|呢)?)",
)
# Numbers of tickets and of findings: "[PLAT-4471]", "finding #17", "工单号 OPS-30817".
_ID = r"#?(?:[A-Z][A-Z0-9]{0,11}[-_/ ]?)?#?\d{1,10}(?:[-_/.]\d{1,6}){0,3}"
TICKET = Gated(
    r"(?<![\w#])#\d{4,10}(?![\w.])|[\[(]#?[A-Z][A-Z0-9]{1,11}[-_]\d{2,10}(?:-\d{1,6}){0,2}[\])]|(?:^|\n)\s?[A-Z]{2,11}-\d{3,10}(?=\s?[:,;|]|\s-|\s?\n|\s[A-Z][a-z])|"
    r"(?:(?<![A-Za-z])(?i:tickets?|issues?|jira|incidents?|ref(?:erence)?|cases?|changes?|requests?|tasks?)[.:]?\s|(?:[工需订]?[单求]|编号|任务|项目)(?:编?号|单)?\s?[:#]?\s?)"
    r"[A-Z]{2,11}[-_]\d{2,10}(?:-\d{1,6}){0,2}(?![A-Za-z0-9])",
    flags=0,
)
_NUMBERED_THING = Gated(
    rf"(?<![A-Za-z])(?i:tickets?|issues?|jira|incidents?|pr|mr|rfc|cr|bugs?|ref(?:erence)?|case\s(?:no|number|id)|change\s(?:request|no|number)|request\s(?:no|number|id)|order\s(?:no|number|id)|"
    rf"project\s(?:no|number|id)|contract\s(?:no|number|id)|article)(?i:\s(?:no|number|id|nr))?[.:]?\s?{_ID}(?![A-Za-z0-9])|"
    r"(?<![A-Za-z])(?i:findings?|items?|cases?|tasks?|story|epic|audit|changes?|requests?|points?|questions?|topics?|attempts?|options?)\s(?:#\d{1,7}|[A-Z]{2,12}-\d{1,10})(?![A-Za-z0-9])|"
    rf"(?:工单|编号|单号|需求|任务|合同|项目|案件?|流水|订单|问题|审计)(?:编?号|单号|ID)?\s?[:#]?\s?{_ID}",
    flags=0,
)


def _list_unread_subjects(page: Page, claims: Claims) -> None:
    """List subjects that a request may ask for, where nothing was read of them."""
    for match in list(page.search(_SUBJECT))[:_MOST_UNREAD]:
        words = page.clause_text(*match.span())
        if not claims.has(str(match.lastgroup)) and not LEFT_TO_US.search(words):
            claims.leave_unread(f"{match.group()!r} in {words[:80]!r} was not understood")


def _list_parts(page: Page, claims: Claims) -> None:
    """List words about a part of hardware that was counted before."""
    for match in page.search(_PART_OF_THEM):
        ends = [hardware.end() for hardware in HARDWARE.finditer(page.original, 0, match.start())]
        named = (claims.words.get(name, "") for name in ("accelerator", "gpus", "gpus_per_node", "nodes"))
        ends += [at + len(words) for words in named if words and (at := page.original.find(words)) >= 0]
        ends = [end for end in ends if end <= match.start()]
        if ends and not _PEOPLE.search(page.original, max(ends), match.start()):
            claims.leave_unread(
                f"{page.clause_text(*match.span())[:120]!r} says something of a part, which was not understood"
            )


def _list_demands(page: Page, claims: Claims) -> None:
    """List the clauses that demand something where nothing of the clause was read."""
    for match in list(page.search(_DEMAND))[:_MOST_UNREAD]:
        words = _unread_clause(page, claims, match)
        if words is None:
            continue
        left, _ = page.clause(*match.span())
        of_other = OTHER in page.text and STAYS.search(words)
        of_objective = _ONLY.fullmatch(match.group()) and wants(words, claims.values.get("objective"))
        # "(keep two cards free), 不能动"
        follows = len(words) <= _SHORT and TAKEN in page.text[max(0, left - 20) : left]
        if not (follows or of_other or of_objective):
            claims.leave_unread(f"{words[:120]!r} sounds like a demand and was not understood")


def _unread_clause(page: Page, claims: Claims, match: re.Match[str]) -> str | None:
    """The clause of a match; `None` where some of it was read, a note quotes it or it demands nothing."""
    left, right = page.clause(*match.span())
    words = page.original[left:right].strip()
    noted = (*claims.words.values(), *claims.readings, *claims.unread)
    is_read = page.text[left:right] != page.original[left:right] or any(words in note for note in noted)
    return None if is_read or _REMARK.fullmatch(words.strip(" -'\"")) else words


def _list_passed_over(page: Page, claims: Claims) -> None:
    """List the clauses with words that decide a plan, where nothing of the clause was read."""
    for match in list(page.search(_DECISIVE))[:_MOST_UNREAD]:
        words = _unread_clause(page, claims, match)
        is_asked = _QUESTION.match(page.original, page.clause(*match.span())[1])
        if words is not None and not (_ASKS.search(words) or LEFT_TO_US.search(words) or is_asked):
            claims.leave_unread(f"{match.group()!r} in {words[:80]!r} was not understood")


def list_unread(page: Page, claims: Claims) -> None:
    """List every number that no reader took, and every clause that demands something of which nothing was read."""
    page.take_all(_CLOCK, _RELEASE)
    for hours in page.search(_HOURS_OF_DAY):
        if not hours["h"] or _OF_THE_DAY.search(page.original, max(0, hours.start() - 30), hours.end() + 10):
            page.take(*hours.span())
    references = [match.span() for match in _NUMBERED_THING.finditer(page.original)]
    for quantity in find_quantities(page.text)[:_MOST_UNREAD]:
        is_figure = any(character.isdigit() for character in quantity.words)
        # "one of them", "two things": nothing is asked for.
        is_counted = quantity.unit != "count" or not _OF_NO_MATTER.match(page.text, quantity.end)
        is_named = any(start <= quantity.start and quantity.end <= end for start, end in references)
        if is_named or (OTHER in page.text and _MODELS.match(page.text, quantity.end)):
            continue
        if is_figure or (is_counted and (quantity.unit == "share" or not _ARTICLE.match(quantity.words))):
            words = page.clause_text(quantity.start, quantity.end)
            claims.leave_unread(f"{quantity.words!r} in {words[:80]!r} was not understood")
    _list_parts(page, claims)
    for match in page.search(_CHANGES):
        claims.leave_unread(f"{match.group()!r} in {page.clause_text(*match.span())[:80]!r} was not understood")
    leave_sizes_unread(page, claims)
    _list_unread_subjects(page, claims)
    _list_demands(page, claims)
    _list_passed_over(page, claims)
