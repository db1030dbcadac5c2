"""What a request mentions and does not plan: things of the past, beside the matter, rejected or replaced.

They come off the page before anything is read of them, and a reading says so. Rivals without such words are weighed
where they differ (`statement_rank.py`).
"""

from __future__ import annotations

import re

from ...catalog import hardware, model_mentions
from ..lexicons.reserved import BUSY, COUNTED, DOWN, NUMBERED
from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.page import SENTENCE_END, Page, between, breaks_of, parts
from ..patterns.quantities import find_quantities
from .alternatives import WROTE
from .claims import Claims

# "I wrote that we have ten L4; that was the old offer", "(we said 40 at first, sorry)".
_WITHDRAWN = Gated(
    rf"{WROTE}\s(?:[^.;()\n]|\.(?=\S)){{1,80}}?[,;.]?\s(?:(?:sorry|wrong(?:ly)?|my\smistake|in\serror)(?=\s?[,.;)!\n]|$)|[^.;()\n]{{0,40}}?(?:we|i)(?:'ve|\shave)?\s(?:since\s|now\s)?(?:drop(?:ped)?|scrap(?:ped)?|abandon(?:ed)?|g[ai]ven?\sup|cancell?(?:ed)?|shelved?)\s(?:that|it|this)(?![a-z])|(?:that|this|which)\s(?:included|was\s(?:with|including|before|counting|for\sall))\s[^,.;()\n]{{2,40}}|(?:please\s)?(?:ignore|disregard|forget)(?:\s(?:that|it|this)(?![a-z])|(?=\s?[,.;)\n]|$))|"
    r"(?:that|this|which|it)(?:'s|\s(?:was|is))\s(?:(?:from|of)\s)?(?:(?:the|an?|my|our)\s)?(?:old|wrong|mistake|typo|error|outdated|obsolete|former|previous)(?![a-z])[^,.;()\n]{0,30})|"
    r"(?:[^,.;:!?()\n]|[.,](?=\d)){10,100}[,.;]\s(?:(?:that|which|this|it)\s(?:has\s(?:since\s)?been|was|is)\s(?:since\s|now\s)?)?(?:withdrawn|retracted|revoked|taken\sback)(?=\s?[,.;:)!\n]|$)|"
    r"(?:(?!(?:nodes?|servers?|gpus?|cards?|machines?|box(?:es)?)(?![a-z]))[^,.;:!?()\n]|\([^()\n]{1,60}\)|[.,](?=\d)){10,140}(?:,|\sand)\s(?:so\s)?(?:please\s)?(?:don't|do\snot)\s(?:use|count|take|plan\s(?:for|by)|go\sby|rely\son)\s(?:it|that|this)(?![a-z])|"
    r"(?:(?<=[.!?]\s)|(?<=\n))(?:it\s|that\s|there\s)?(?:was|were|had\sbeen)\s(?:[^.;!?\n]|\.(?=\d)){5,140},\s(?:please\s|so\s)?(?:ignore|disregard|forget)\s(?:it|that|this)(?![a-z])|"
    r"(?:[^.;!?\n]|\.(?=\d)){5,140}[;,.]\s(?:that|this|it|they|those|which)\s(?:was|were|is|are)\s(?:sized|planned|meant|bought|built|made|intended)\sfor\s(?:another|something|other|an?\sdifferent|somebody|someone)[^.;\n]{0,60}|"
    r"(?:(?<=[.,;\n]\s)|(?<=[,;。\n]))(?:the\s)?\d[\d,.]{0,8}(?:\s?[a-z]{1,6}|[个张台路秒])?\s?(?:(?:is|was|were|are)\s(?:(?:just|only|from|of|still)\s){0,2}(?:last\s(?:quarter|year|month|week|spring|summer|autumn|winter)(?:'s)?|before)(?![a-z])|是(?:上个?(?:季度|月|周|年|版)|去年|之前|以前|原来|旧))[^,.;。\n]{0,30}|"
    r"(?:v\d[\d.]{0,6}|上一?版|旧版|初版|之前(?:的)?版本)\s?(?:中|里|的)?[^,;。\n]{1,30}?(?:有误|不对|写错了?|错了|作废|过时)|"
    r"(?:之前|先前|上次|昨天|前面)[^,;。\n]{0,8}[写说填报提](?:的是?|成|了)?[^,;。\n]{1,30}[,;。]\s?[那这它]?[个份些]?是?(?:旧|过时|错|有误|作废|不对|不算)[^,;。\n]{0,12}",
)
_FORMER = Gated(
    r"[(\[](?:it\s)?(?:was|were|previously|formerly|originally|before|used\sto\sbe|old|instead\sof|原来?为?|之前是?|此前)(?![a-z])[^()\[\]\n]{1,120}[)\]]",
)
# "1500 ms (in v2: 2500)": what an earlier version said. Which version is the earlier is asked of `_is_earlier`.
_OF_VERSION = Gated(
    r"[(\[](?:(?:in|for|since|from|per)\s)?v(?P<version>\d{1,2}(?:\.\d{1,2})?)(?:\s(?:said|had|was|were|asked(?:\sfor)?|listed|stated|draft|quote))?\s?[:=]?\s[^()\[\]\n]{1,120}[)\]]|"
    r"[(\[]\s?v(?P<cn>\d{1,2}(?:\.\d{1,2})?)\s?(?:版本?)?(?:里|中|的)?(?:写的?是|是|为|写了|:)[^()\[\]\n]{1,60}[)\]]"
)
_VERSION = Gated(r"(?<![a-z\d])v(\d{1,2}(?:\.\d{1,2})?)(?![\w.]*\d)")
# "(signed 350 but those start later, ignore)": a bracket that says of itself that it counts for nothing.
_IN_BRACKETS = Gated(
    r"[(\[][^()\[\]\n]{2,200}(?:(?<![a-z])(?:(?:please\s)?(?:ignore|disregard)(?:\s(?:it|that|this|them|those))?|(?:that|this|the)\s(?:number|figure|one)\s(?:doesn't|does\snot)\smatter(?:\shere)?|"
    r"(?:doesn't|does\snot)\smatter(?:\shere)?|not\srelevant(?:\shere)?|,\sno(?:t\s(?:your|our|my)\s(?:problem|concern|business|job|topic))?)|忽略|不用管|不算|(?:别|不要?|勿)(?:算|计|统计)(?:入|进[来去]|在内|上)?|(?:do\snot|don't)\scount\s(?:it|them|those|that))\s?[.!]?\s?[)\]]",
)
# "Background you may skip: ...", "This isn't about the 70B, which ...", "Oslo has ten L4, not our concern": to the
# end of the sentence.
_ASIDE = Gated(
    r"(?:(?<=[.!?;:\n]\s)|(?<=[\n。])|^)(?:[^.!?;:\n]|\.(?=\S)){1,160}?(?<![a-z])(?:is|are)\s(?:none\sof\s|not\s|no\s)(?:your|our|my)\s(?:concern|business)(?:[^.!?;\n。]|\.(?=\S)){0,300}|"
    r"(?<![a-z])(?:(?:the|a|an|their|some|our)\s)?(?:vendor|supplier|competitor|rival)(?:'s|s)?\s(?:demos?|pocs?|blogs?|slides?|numbers?|decks?|says?|said|claims?|claimed|gets?|got|reached|showed|did|ran)(?![a-z])"
    r"(?:[^.;!?\n。]|\.(?=\S)){0,160}|"
    r"(?:(?<=[.!?;]\s)|(?<=\n)|^)(?:not\srelevant|irrelevant|unrelated|off[\s\-]topic)(?![a-z])[^.:\n]{0,40}:(?:[^.!?\n]|\.(?=\S)){1,300}|"
    r"(?<![a-z])(?:and\s)?(?:the|our|those|these)\s\d[\d,]{0,7}\s[a-z]{3,16}\s(?:are(?:n't|\snot)|do(?:n't|\snot)|will\snot|won't)\s(?:be\s)?(?:the\s|our\s)?(?:users?|using\sit|use\sit|counted|count|relevant)(?![a-z])|"
    r"(?:(?<=[,.;]\s))[^,.;\n]{2,30}\s(?:the|our|my)\s[a-z]{3,16}\s(?:said|say|says|told\sus)\sno(?![a-z])|"
    r"(?:(?<=[。;\n])|^)[^。;\n]{4,80}[,]\s?[那这它](?:个|些|份)?(?:数字?|数据|指标)?不(?:作|算)数|"
    r"[^,。;\n]{2,80}[,]?\s?(?:与|和|跟)(?:本单|本次|本项目|本方案|这次|此次|规划|本期)(?:评估|规划|申请|采购)?(?:无关|没关系|没有关系)|"
    r"(?<![a-z])(?:(?:background|history|context|fyi|for\s(?:context|reference))\s?[^.:;\n]{0,24}(?:skip|ignore|disregard)[^.:;\n]{0,16}:"
    r"|(?:(?:this|the)\s(?:e?-?mail|request|note|message|brief|question|ticket)|this|that|it|we|i)(?:'s|'re|'m|\s(?:is|are|am))?(?:n't|\snot)\s(?:(?:talking|speaking|asking|writing)\s)?about\s[^,.;\n]{1,60},\s?(?:which|who|that|it)(?![a-z]))"
    r"(?:[^.!?。\n]|\.(?=\S)){1,500}|(?:背景|历史)[^。:\n]{0,10}(?:可(?:以)?(?:跳过|忽略|略过)|仅供参考|不用看)[^。:\n]{0,4}:[^。\n]{1,300}|"
    r"(?:这|本)(?:次|封|个)?[^。\n]{0,6}(?:不是(?:关于|讨论|说)|不(?:涉及|讨论|包括))[^。\n]{1,120}",
)
# "Not in scope: the reranker (2x L4, 300 rps), it is healthy", "What I don't need: …", "Parked: …", to the end of the
# sentence; what is ruled out without hardware ("out of scope: pipeline parallelism") is a demand and no other system.
_NOT_IN_SCOPE = Gated(
    r"(?:(?<=[.!?;]\s)|(?<=[\n。;])|^)[^\S\n]?(?:[-*•]\s)?(?:(?:explicitly\s)?(?:not\s(?:in|part\sof)|out(?:side)?(?:\sof)?)(?:\s(?:the|this|our))?\s(?:scope|request|plan|exercise|sizing)|"
    r"(?:what|things|stuff)\s(?:i|we|you)\s(?:(?:do|need)(?:n't|\snot)|can)\s(?:(?:need|want)(?:\sto\s(?:plan|size|care\sabout|look\sat))?|(?:have\sto\s)?(?:care\sabout|plan|size|look\sat)|ignore|skip|leave\sout)(?:\s(?:here|now|today|yet))?|"
    r"parked|deferred|postponed|backlog|(?:not\s)?for\slater|not\s(?:needed|asked(?:\sfor)?|affected)(?:\s(?:here|now|today))?|"
    r"(?:不在|超出)(?:本次|这次)?(?:规划|评估)?范围(?:之?内)?(?:的是?)?|范围之?外|(?:这次|本次)?不(?:需要|用)(?:考虑|规划|管)的?(?:有|是)?|(?:先|暂时?)(?:搁置|不做|不考虑))\s?[:：](?P<what>(?!\s?\d)(?:[^.!?;\n。]|\.(?=\S)){3,300})"
)
# "坏卡已换好", "the two cards are repaired", "node 2 is back": hardware that an earlier sentence calls broken.
_RESTORED = Gated(
    r"(?:[坏那这]|故障)[^,;。\n]{0,8}?(?:已经?|都)?(?:全部)?(?:换[好新了回]|修[好复]|恢复|回来)了?|第?[一二三四\d]\s?(?:[台张]|号机?)[^,;。\n\d]{0,6}?(?:已经?)?(?:修[好复]|换好|恢复)了?|"
    r"(?<![a-z])(?:nodes?|gpus?|cards?|servers?|machines?|box(?:es)?|hosts?|they|both|all|it)(?:\s#?\d{1,2})?\s?(?:is|are|was|were|has\sbeen|have\sbeen|'s|'re|got|came|come)\s(?:(?:now|all|since|both|again|already)\s){0,2}"
    r"(?:repaired|restored|replaced|swapped|fixed|healthy|back(?:\s(?:in\sservice|online|up|in))?|returned|usable\sagain|available\sagain)(?![a-z])"
)
_NOT_BACK = Gated(
    r"(?<![a-z])(?:if|when|once|until|till|unless|should|as\ssoon|after|will|next|tomorrow|soon|by|on|expected|not|before)(?![a-z])|"
    r"如果|要是|等|待|预计|下周|明天|后天|下个?月|将|没|未|才"
)
_BROKEN_ONCE = Gated(
    f"{DOWN.pattern}|{BUSY.pattern}|坏|(?<![a-z])(?:died|failed|fell\\sout|drop(?:ped|s)\\sout|lost)(?![a-z])"
)
# Where a clause may begin, and who says something in it: anybody but the writer.
_BEGIN = (
    r"(?:(?:(?<=[.!?;:,(]\s)|(?<=[\n。;,(])|(?<=\s-\s)|^)(?:[-*•]\s)?|"
    r"(?<=\sand\s)|(?<=\sbut\s)|(?<=\swhile\s)|(?<=\sthough\s))"
)
_KNOWING = r"(?:(?:i|we)(?:'m|\sam|'re|\sare)?\s(?:all\s|do\s)?(?:know|heard|read|saw|aware|understand)(?:\sthat)?\s)?"
_SOMEBODY = r"(?:(?!(?:i|we|you|us|if|not)(?![a-z]))[a-z](?:[\w'&/-]|\.(?=\w))*\s(?:#?\d{1,2}\s)?){1,6}?"
_SAYS = (
    r"(?:(?:is|are|was|were|'s|'re)\s(?:\w+ly\s)?(?:convinced|certain|sure|adamant|of\sthe\sopinion|asking\sfor|pushing\sfor|talking\sof|in\sfavou?r\sof)|"
    r"(?:(?:has|have|had|'s|'ve|also|still|always|often|usually|\w+ly|keeps?|kept|would|'d)\s){0,2}"
    r"(?:think|thought|claim|say|said|want|insist|believe|argue|swear|swore|suggest|propose|recommend|demand|ask|request|push|vote|pitch|prefer|like|love|"
    r"quote|cite|use|show|list|report|give|assume|state|advertise|mention|promise|talk|hope|expect|reckon|figure|guess|estimate|tell|told|has|have|had|ran|run)"
    r"(?:s|ed|d|ing)?(?:\s(?:us|me|everyone|everybody))?)(?![a-z])"
)
_OPINION = Gated(
    rf"{_BEGIN}{_KNOWING}{_SOMEBODY}{_SAYS}|"
    r"(?:(?<=[\s.,;:。\n(])|^)(?!我|咱|本人|你|您)[a-z\u4e00-\u9fff]{1,10}?(?:都|还|一直|总|就|又)?(?:说|觉得|认为|建议|坚持|主张|提议|要求|希望|以为|声称|断言|打算|非要|想|推荐|宣称|(?:在[^,;。\n]{1,10}[上里]|之前|原来){1,2}写了?)",
)
# That the writer does not share it: to the end of its clause, so that "I disagree that int4 is" rejects something else.
_REJECTS = (
    r"(?:i|we)(?:'ve|\shave|\shad|'d)?\s(?:already\s|since\s|just\s|now\s)?(?:overrul\w{1,3}|overrode|overridden|reject(?:ed)?|refused?|declined?|vetoe?d?|dismiss(?:ed)?|"
    r"(?:decided|chose|agreed|are\sgoing)\sto\s(?:ignore|skip|drop|disregard|overrule|leave\sout)|said\sno|turned\s(?:him|her|them|it|that|this)\sdown|(?:told|said\sto)\s\w+(?:\s\w+)?\sno)|"
    r"(?:i|we)\s(?:\w+ly\s)?(?:disagree|beg\sto\sdiffer|object(?:ed)?|do\snot\s(?:agree|buy|believe|want|share|support|accept|think\sso)|don't\s(?:agree|buy|believe|want|share|support|accept|think\sso)|"
    r"didn't\s(?:agree|accept|allow)|won't\s(?:do|have|allow|accept))|"
    r"(?:he|she|they|it|that|this|which)(?:'s|'re|\s(?:is|are|was|were|got|has\sbeen|have\sbeen))\s(?:(?:just|simply|plain|clearly|totally|completely|all|been)\s)?"
    r"(?:wrong|nonsense|rubbish|bogus|mistaken|incorrect|overkill|not\s(?:happening|going\sto\shappen|an\soption|true)|off\sthe\stable|out\sof\sthe\squestion|overruled|rejected|vetoed|declined|turned\sdown)(?:\sfor\s(?:us|(?:our|this)\s\w+))?|"
    r"not\s(?:for|with)\s(?:us|me)|(?:please\s)?(?:ignore|disregard|forget)\s(?:him|her|them|that|it|this|(?:the|our|their|my)\s(?P<who>[a-z]+))"
)
_REJECTION = Gated(
    rf"(?<![\w'])(?:{_REJECTS})(?:\s(?:with\s|to\s|on\s)?(?:that|it|this|him|her|them)(?!\s\w))?(?=\s?(?:[,.;:!?)\n]|$)|\s(?:-|and|so|because|since)\s)|"
    r"(?:但|不过|可)?是?(?:我们?|咱们?)?(?:没有?|不|并?不)(?:同意|答应|认同|认可|赞成|采纳|接受|批准?|准|以为然)(?=了?\s?(?:[,.;:!)\n。]|$))|被(?:我们?)?(?:否|驳|拒)(?:决|回|绝|掉)?了?|"
    r"(?:但|不过)?我们?(?:给|已经?)?(?:否决|驳回|拒绝|否|驳)了|别(?:听|理|管)(?:他|她)们?|(?:别|不要|不能|不)(?:当作?|作为?)(?:输入|真|数|依据|参考)|别参考|不作数|(?:他|她)们?(?:说|搞|弄|记)?错了|我们?(?:觉得|认为|看)?[这那它]?个?(?:方案|说法|想法)?太?不(?:靠谱|现实|合理|可行|对)(?=[,;。\n]|$)",
)
# Between what somebody says and the writer's verdict on it: "… across nodes. I think that's nonsense".
_OWN_VIEW = Gated(r"(?:i|we)\s(?:\w+ly\s)?(?:think|believe|find|say|feel|guess)\s$|(?:honestly|frankly|imho|imo),?\s$")
# Words by which an opinion is about something other than the plan.
_BEHIND_BENCH = r"(?:\s(?:number|figure|setting|setup|config(?:uration)?|value|case|load|run|stuff|deck|page)s?)?"
_BENCH = (
    r"(?:just|only|merely|purely|simply)\s(?:for\s|from\s|in\s|what\s)?(?:(?:an?|the|some|their|his|her|its)\s)?(?:\w+\s)?"
    rf"(?:benchmark(?:s|ing)?|demos?|marketing|brochure|examples?|toy|placeholder|template|slideware|showcase|leaderboard|sales|theory){_BEHIND_BENCH}"
)
_NOT_OURS = Gated(
    rf"(?<![\w'])(?P<it>that|this|it|those|these|they|which)?(?:'s|'re|\s?(?:is|are|was|were))\s{_BENCH}(?=\s?(?:[,.;:!)\n]|$)|\s(?:-|and|but|so)\s)|"
    r"(?<![\w'])(?:that|this|it|those|these|they|which)(?:(?:'s|'re|\s(?:is|are|was|were))\snot|\s(?:is|are|was|were)n't)\s(?:us|ours|our\s(?:traffic|load|workload|case|setup|situation|problem|business|concern|profile|pattern|reality|numbers?))"
    r"(?=\s?(?:[,.;:!)\n]|$)|\s(?:-|and|but|so)\s)|"
    r"(?:that|this|it|those|these|they|which)(?:'s|'re|\s(?:is|are|was|were))\s(?:their|his|her|somebody\selse's|someone\selse's)s?(?:\s\w+)?(?:,\snot\s(?:us|ours|mine))?(?=\s?(?:[,.;:!)\n]|$))|"
    r"(?P<na>[那这]些?)?(?:都|就)?(?:只|仅仅?|不过)是(?:为了|用来|用于)?(?:跑分|评测|基准|测试|演示|宣传|示例|例子|demo)[^,;。\n]{0,6}|(?:跟|和|与)我们(?:无关|没关系|不一样|不同)",
)
# An opinion that something cannot or need not be had: whoever rejects that may well want it.
_DENIES = Gated(
    r"(?<![a-z])(?:not|no|never|can't|cannot|won't|isn't|don't|doesn't|without|impossible|too(?=\s(?!but|and|so)[a-z])|unrealistic|enough|suffic\w+|hardly)(?![a-z])|不|没|别|太|够",
)
# A rejection by which the opinion is to be ignored, whatever it says.
_IGNORED = Gated(r"(?<![a-z])(?:ignore|disregard|skip|forget)(?![a-z])|当作?(?:输入|真|数|依据|参考)|参考|作数")
_DENIAL = Gated(
    r"(?:(?<![a-z])(?:not|isn't|aren't|nowhere\snear|not\s(?:even\s)?close\sto|far\s(?:below|from|under|away\sfrom))\s(?:the\s|our\s)?|不是\s?|并非\s?)$",
)
_ONE = ("one", "a", "an", "sin")  # "not one of them", "not a single"
_MOST_SAID = 240  # characters of what somebody says
_HAS = Gated(r"(?:ha[sd]|have)$")  # a fact, which nobody rejects
_WRITER = Gated(r"(?<![a-z])(?:we|our|my|i)(?![a-z])|我")
_WRITER_REJECTS = Gated(r"(?:i|we)(?![a-z])|[但不过可是]*我|被")
# The replaced setup: up to its replacement, or to the end of its clause.
_WITH_BRACKETS = r"(?:\([^()\n]{0,200}\)|[^.,;:!?()\n。]|\.(?=\S)|(?<=\d),(?=\d{3}))"
_WITH_COMMAS = r"(?:[^.;!?\n。]|\.(?=\S))"
_REPLACED = Gated(
    rf"(?<![a-z])(?:(?:replac|retir|decommission)(?:e[ds]?|ing)|swap(?:s|ped|ping)?(?:\sout)?)\s(?P<a>{_WITH_COMMAS}{{1,200}}?)(?<!\srun)(?<!\sruns)(?<!\sran)(?<!running)(?<!served)\s(?:by|with|for|in\sfavou?r\sof)(?=\s)|"
    rf"(?<![a-z])(?:mov|migrat|switch|swap|upgrad|convert|port)(?:e[ds]?|ing|ed|ping|ped|s)?\s(?:\w+\s){{0,3}}?(?:away\s)?from\s(?P<b>{_WITH_COMMAS}{{1,200}}?)\s(?:on)?to(?=\s)|"
    rf"(?<![a-z])(?:(?:replac|supersed)(?:e[ds]?|ing)(?!\sby\s)|(?:replacement|successor|substitute)s?\s(?:for|of|to)|tak(?:es?|ing)\sthe\splace\sof)\s(?P<c>{_WITH_BRACKETS}{{1,200}}(?:,\s(?:which|that|who){_WITH_BRACKETS}{{1,160}})?)|"
    r"把\s?(?P<d>[^。;\n]{1,160}?)\s?(?:全部?|都|整体)?(?:替?换|更换|升级|迁移|切换)(?:成|为|到|掉)|从\s?(?P<e>[^。;\n]{1,160}?)\s?(?:迁移?|换|升级|切换?)(?:成|到|至|为)|"
    rf"(?:替换|取代|替代|顶替|换下)(?:掉|了)?\s?(?P<f>{_WITH_BRACKETS}{{1,160}})",
)
# "We upgraded from the 4-GPU one", "grew out of two servers with 2 cards each", "从4卡机升上来的": what there was.
_COME_FROM = Gated(
    r"(?<![a-z])(?:(?:mov|migrat|switch|upgrad|scal|expand|extend|downsiz|reduc|com)(?:e[ds]?|ing)|came|gr[eo]wn?|shr[aiu]nk|went|up|down)\s(?:\w+\s){0,2}?(?:from|out\sof)\s"
    rf"(?=[^,.;:()\n]{{0,30}}?(?<![\w.])(?:\d{{1,4}}|{ENGLISH_NUMBER})[\s\-]?(?:x\s?)?(?:[a-z]{{1,3}}\d{{2,4}}|gpu|card|node|server|machine|box|host))(?P<a>(?:(?!\s(?:to|onto|into|and|but|now|so)(?![a-z]))[^,.;:()\n]){{1,80}})|"
    r"[从由]\s?(?P<b>[^,。;\n]{0,12}?\d{1,3}\s?[张块卡台][^,。;\n]{0,12}?)\s?(?:升级?|迁移?|换|扩容?|搬)(?:上|过)?来"
)
# "Row 19 replaces row 14", "ignore #2", "option A is void": a row of a list that counts for nothing, by its number.
_ROW = r"(?:(?:row|line|item|entry|option|variant|position|pos\.?)\s(?:no\.?\s|#)?|#)"
_ROW_GONE = Gated(
    rf"(?<![a-z])(?:(?:replac|supersed|overrid|ignor|disregard|skip|drop|forget|scrap|strik|delet)(?:e?s|e|ing)?|tak(?:es?|ing)\sthe\splace\sof)\s(?:the\s)?(?:old\s)?{_ROW}(?P<a>\d{{1,4}}|[a-z])(?!\w|\.\w)|"
    rf"(?<![a-z]){_ROW}(?P<b>\d{{1,4}}|[a-z])\s(?:is|was|has\sbeen|got)\s(?:now\s|since\s)?(?:replaced|superseded|overridden|withdrawn|obsolete|outdated|void|dead|dropped|cancell?ed|out|gone|off\sthe\stable)(?![a-z])|"
    r"第\s?(?P<c>\d{1,3}|[一二三四五六七八九十])\s?[行条项](?:已?作废|已?撤[回销]|不算|已?取消|不用看|被[^,;。\n]{1,8}(?:取代|替换|替代))|(?:取代|替换|替代|忽略)第\s?(?P<d>\d{1,3}|[一二三四五六七八九十])\s?[行条项]"
)
# A row of such a list: "Row 14: …", "#2 …", "| 14 | …", "4. …", "B) …", "第3条 …".
_LISTED = re.compile(
    rf"^[ \t]*(?:[>*|\-][ \t]*)?(?P<label>{_ROW}|第\s?)?(?P<number>\d{{1,4}}|[a-z]|[一二三四五六七八九十])"
    r"(?(label)(?![.,]?[a-z0-9_])|[ \t]*(?:[|)]|[.:](?!\d)))[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)
# Whether or when it will be replaced is open; or the words are about something else that moves.
_NOT_YET = Gated(
    r"(?<![a-z])(?:might|may|could|would|if|once|when|unless|whether|later|next\s(?:year|quarter|month|spring|summer|autumn|winter)|some\s?day|eventually|prefill|decode)(?![a-z])|"
    r"如果|要是|万一|明年|以后|将来|后续|可能|也许|预填|解码",
)


def set_aside_former(page: Page, claims: Claims) -> None:
    """Take former setups ("(was: H100)") and words that are said to be beside the matter off the page."""
    versions = [match for match in page.search(_OF_VERSION) if _is_earlier(page, match)]
    for match in (*page.search(_FORMER), *versions, *page.search(_IN_BRACKETS), *page.search(_WITHDRAWN)):
        claims.reading(f"{page.take(*match.span())!r} says what held before, and is not planned for")
    out_of_scope: list[re.Match[str]] = []
    for match in _NOT_IN_SCOPE.finditer(page.original):  # marks of a list are taken, and end a line too
        if any(hardware.mentions(match["what"])):
            out_of_scope.append(match)
        else:
            claims.leave_unread(
                f"{page.take(*match.span())!r} rules something out; say for each that there is to be none"
            )
    for match in (*out_of_scope, *page.search(_ASIDE)):
        cards = [mention for mention in hardware.mentions(page.text) if mention.accelerator is not None]
        inside = [card for card in cards if match.start() <= card.start and card.end <= match.end()]
        # A card that is named nowhere else is meant, and stays.
        ends = [*(card.start for card in inside if len(inside) == len(cards)), match.end()]
        for start, end in zip([match.start(), *(card.end for card in inside)], ends, strict=False):
            page.take(start, end)
        claims.reading(f"{match.group().strip()[:300]!r} is said to be beside the matter, and was set aside")


def set_aside_restored(page: Page, claims: Claims) -> None:
    """Take hardware off the page that was broken and is said to be in use again, with what was planned meanwhile."""
    for match in page.search(_RESTORED):
        broken: tuple[int, int] | None = None
        left, right = page.clause(*match.span())
        if _NOT_BACK.search(page.original, left, right):
            continue
        start, _ = between(breaks_of(page.text, SENTENCE_END), *match.span(), len(page.text))
        for place, sentence in parts(page.text[:start], SENTENCE_END):
            if _BROKEN_ONCE.search(sentence) and (COUNTED.search(sentence) or NUMBERED.search(sentence)):
                broken = place, place + len(sentence)
        if broken is not None:
            page.take(*match.span())
            claims.reading(
                f"{page.take(*broken)[:300]!r} held before {match.group().strip()!r}, and is not planned for"
            )


def _is_earlier(page: Page, bracket: re.Match[str]) -> bool:
    """Whether a bracket speaks of an earlier version: a higher one is named, or none and a figure stands before it."""
    version = float(bracket["version"] or bracket["cn"])
    others = {float(match[1]) for match in _VERSION.finditer(page.original)} - {version}
    before = find_quantities(page.text[max(0, bracket.start() - 24) : bracket.start()])
    return max(others) > version if others else bool(before)


def set_aside_denied(page: Page, claims: Claims) -> None:
    """Take denied figures off the page where no correction replaces them: "it's not 24 GPUs"."""
    for quantity in reversed(find_quantities(page.text)):
        denial = _DENIAL.search(page.text, max(0, quantity.start - 24), quantity.start)
        is_number = any(character.isdigit() for character in quantity.words) or quantity.words[:3].lower() not in _ONE
        if denial is None or not is_number or quantity.unit == "share" or page.text.startswith("/", quantity.end):
            continue
        words = page.clause_text(quantity.start, quantity.end)
        page.take(denial.start(), quantity.end)
        claims.leave_unread(f"{words[:200]!r}: a figure that is said not to be; say what it is")


def _set_aside_rows(page: Page, claims: Claims) -> None:
    """Take the rows of a list off the page that are said to count for nothing."""
    rows = list(_LISTED.finditer(page.original))
    for match in _ROW_GONE.finditer(page.original) if len(rows) > 1 else ():
        number = next(filter(None, match.groups())).lower()
        meant = [
            row for row in rows if row["number"].lower() == number and not row.start() <= match.start() < row.end()
        ]
        if len(meant) == 1:
            claims.reading(f"{page.take(*meant[0].span())[:300]!r} counts for nothing: {page.take(*match.span())!r}")


def set_aside_replaced(page: Page, claims: Claims) -> None:
    """Take replaced rows and a replaced setup off the page, with all its details."""
    _set_aside_rows(page, claims)
    for match in page.search(_REPLACED):
        group = str(match.lastgroup)
        sentence = between(breaks_of(page.text, SENTENCE_END), *match.span(), len(page.text))
        named = (*hardware.mentions(match[group]), *model_mentions.mentions(match[group])) if group == "b" else (True,)
        if _NOT_YET.search(page.text, *sentence) or not named or not re.search(r"\d", match[group]):
            continue
        if not page.is_negated(match.start(), match.start(group)):
            claims.reading(f"{page.take(*match.span(group))[:300]!r} is what is replaced, and counts for nothing")
        elif group in "abde":
            words = page.take(match.end(), page.clause(match.end(), match.end())[1])
            claims.reading(f"{words[:300]!r} is not to replace {match[group].strip()[:300]!r}, and counts for nothing")
    for match in page.search(_COME_FROM):
        claims.reading(f"{page.take(*match.span(str(match.lastgroup)))[:300]!r} is what was there before")


def set_aside_rejected(page: Page, claims: Claims) -> None:
    """Take opinions of others off the page that the writer rejects, or calls those on something else."""
    opinions = list(_OPINION.finditer(page.text))
    claimed = [opinion for opinion in opinions if not _HAS.search(opinion.group())]
    for match in page.search(_REJECTION):
        start = _opinion_before(page, claimed, match)
        words = page.original[match.start() if start is None else start : match.end()].strip()
        if start is not None and (_IGNORED.search(words) or not _DENIES.search(page.text, start, match.start())):
            page.take(start, match.end())
            claims.reading(f"{words[:300]!r}: what is rejected counts for nothing")
        elif start is not None or _WRITER_REJECTS.match(match.group()):
            claims.leave_unread(f"{words[:300]!r} rejects something; say plainly what is wanted")
    for match in page.search(_NOT_OURS):
        start = _opinion_before(page, opinions, match)
        if start is None and not (match["it"] or match["na"]):
            left, _ = page.clause(*match.span())
            start = None if _WRITER.search(page.text, left, match.start()) else left
        if start is not None and re.search(r"\d", page.text[start : match.start()]):
            words = page.take(start, match.end())
            claims.reading(f"{words[:300]!r}: what is said of something else counts for nothing")


def _opinion_before(page: Page, opinions: list[re.Match[str]], match: re.Match[str]) -> int | None:
    """The start of the last opinion before `match`, in its sentence or the one before; `None` if there is none."""
    who = match.groupdict().get("who") or ""
    opinion = next((opinion for opinion in reversed(opinions) if opinion.end() <= match.start()), None)
    opinion = opinion if opinion and who in opinion.group() else None
    if opinion is None:
        return None
    content = _OWN_VIEW.sub("", page.text[opinion.end() : match.start()]).rstrip()
    is_it = content and len(content) <= _MOST_SAID and not SENTENCE_END.search(content[:-1])
    return opinion.start() if is_it else None
