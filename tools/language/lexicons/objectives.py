"""The words in which people say what to make best, in English and Chinese (used by `goals/objective.py` alone).

Four tiers, the first that speaks wins: `first` names the objective or ranks it ("latency first", "optimise for cost"),
`best` asks for an extreme ("lowest latency", "成本最低"), `weak` only leans to one side ("low latency", "批处理"),
`bare` is the word alone (", throughput,").
"""

from __future__ import annotations

from ..patterns.gated import Gated

_PER_DOLLAR = r"\s?(?:per|/)\s?(?:dollar|\$|usd|eur(?:o)?|buck|yuan|cost)"
_TOKENS_PER_S = r"(?:output\s)?(?:tokens?|toks?)(?:/s(?:ec)?|\sper\ssec(?:ond)?)"
_THROUGHPUT = rf"(?:(?:through|thru)[\s\-]?put|tput|tpt|goodput|tps|{_TOKENS_PER_S})"
_PER_GPU = r"(?:\s?/\s?|\s(?:per|of\seach|for\seach)\s)(?:gpu|card|accelerator|device|chip)s?(?![a-z])"
# (English, Chinese) words for each objective.
_SUBJECTS: dict[str, tuple[str, str]] = {
    "latency": (
        r"(?:latency|latencies|response\stimes?|delays?|responsiveness|turnaround(?:\stime)?|reaction\stimes?|ttft|tpot|"
        r"time[\s\-]to[\s\-]first[\s\-]token|first[\s\-]token(?:\s(?:latency|time))?|"
        r"lat(?=\s(?:prio|first|>))|(?<!min\s)(?<!minimum\s)(?<!minimal\s)(?<!least\s)speed(?!\sof\s)|(?:tokens?|toks?)(?:/s(?:ec)?|\sper\ssec(?:ond)?)(?:/|\sper\s)user)",
        r"(?:延迟|时延|延时|响应(?:时间|速度)?|首字|首\s?token|(?<!最低)(?<!最小)速度)",
    ),
    "throughput": (
        rf"{_THROUGHPUT}(?:{_PER_GPU})?(?!{_PER_DOLLAR}|(?:/|\sper\s)user)",
        r"(?:(?:每张?卡的?)?吞吐(?:量|率)?|处理能力|(?<!最)产出)",
    ),
    "cost": (
        rf"(?:costs?(?:\sof\sownership)?|price|spend(?:ing)?|bills?|budget|money|expenses?|expenditure|tco|opex|usd|dollars?|\$|"
        rf"(?:throughput|tokens?|perf(?:ormance)?|tok/s){_PER_DOLLAR})",
        r"(?:成本|费用|花费|价格|花钱|省钱|开销|支出|预算|性价比)",
    ),
}  # fmt: skip
_MOST = (
    r"(?:best|max(?:imum|imal|ed)?|highest|most|peak|top|greatest|maximi[sz](?:e[ds]?|ing|ation\sof)|biggest|largest)"
)
_LEAST = (
    r"(?:lowest|minimum|minimal|min|minimi[sz](?:e[ds]?|ing|ation\sof)|least|smallest|best|shortest|reduc(?:e|ing)|"
    r"fastest|tightest|cut(?:ting)?(?:\sdown)?)"
)
_FILL = (
    r"(?:\s(?:the|possible|overall|total|aggregate|our|my|end-to-end|e2e|per-token|per-user|token|decode|system|output|"
    r"for|of|on|first|user|inference|serving|achievable|attainable|tokens)){0,3}"
)
_EXTREME = (
    r"(?:as\s(?:high|low|lowest|highest|large|small|great|short|much|little|big|good|cheap)\sas\s(?:possible|it\sgets|"
    r"can\sbe|(?:you|we|they|i)\s(?:possibly\s)?can)|maximi[sz]ed|minimi[sz]ed|maximal|minimal|"
    r"(?:at|to)\s(?:its|an?|the)\s(?:absolute\s)?(?:minimum|maximum|lowest|highest|bare\sminimum))"
)
_BE = (
    r"(?:is|are|be|being|it\sis|was|has\sto\sbe|have\sto\sbe|must\sbe|should\sbe|shall\sbe|is\sto\sbe|to\sbe|"
    r"needs\sto\sbe|=|:)"
)
_RANK = (
    r"(?:top|main|first|primary|highest|biggest|number[\s\-]one|no\.?\s?1|#1|key|only|sole|chief|overall|"
    r"overriding|prime)"
)
_AIM = (
    r"(?:prio(?:rit(?:y|ies))?|goals?|obj(?:ectives?)?|aim|concern|focus|metric(?:\son\sthe\s[xy][\s\-]axis)?|figure\sof\smerit|criterion|kpi|emphasis|"
    r"optimi[sz]ation(?:\s(?:target|goal|objective))?|optimi[sz]ing|target|(?:decid|judg|rank|choose|chosen|compar|sort|scor)(?:e[ds]?|ed)?\s(?:on|by)|评判标准|优先考虑|(?:mode|preference|profile)(?=\s?[:=]))"
)
_CARE = (
    r"what\s(?:really\s|actually\s)?(?:counts|matters)(?:\smost)?(?:\shere)?|"
    r"what\s(?:we|i|you|they)\s(?:should\s|must\s|want\sto\s|need\sto\s)?optimi[sz]e\sfor|"
    r"(?:all|the\sonly\sthing)\s(?:that\s)?(?:(?:we|i|you|they|users)\s(?:really\s|actually\s)?(?:care\sabout|want|need)|counts|matters)|"
    r"what\s(?:we|i|they|users)(?:'re|\sare)?\s(?:really\s|mostly\s|mainly\s|only\s)?(?:care\sabout|want|need|after)"
)
_LEAD = r"(?:(?:1[.)]|the|an?|our|my|all|by\sfar|really|clearly|everything)\s){0,3}"
_VERB = (
    r"(?:optimi[sz](?:e[ds]?|ing)|tun(?:e|ed|ing)|prioriti[sz](?:e[ds]?|ing)|prefer(?:s|red)?|favou?r(?:s|ing)?|focus(?:ed|ing)?|"
    r"emphasi[sz]e|aim(?:ing)?|go(?:ing)?(?=\sfor)|shoot(?:ing)?|care[sd]?|(?<='re\s)after|(?<=\sare\s)after|chas(?:e|ing)|geared|push(?:ing)?|squeez(?:e|ing)(?:\sout)?|crank(?:\sup)?|drive|boost|want(?:s|ed)?|need(?:s|ed)?|get|all(?=\sabout))"
)
# "Rank the candidates by goodput", "we are judged on cost", "which of them wins on tok/s?".
_JUDGED_BY = (
    r"(?:(?:which(?:ever)?\s[^.?!;\n]{0,40}?(?:wins?|winning|(?:is|are|does|do|looks|performs|comes\sout)\s(?:the\s)?(?:better|best|ahead|stronger)(?:\s(?:one|of\s(?:them|both|the\stwo)))?)\s|(?:rank|sort|order|scor|judg|rat|grad|measur|evaluat|compar|select|choos|pick|decid)(?:e[ds]?|ed|ing|s)?\s"
    r"(?:(?:them|it|us|all|these|those|what|the|your|our|each|every|success|results?|everything|runs?|plans?|candidates?|layouts?|options?|offers?|bids?|"
    r"strateg(?:y|ies)|config(?:uration)?s?|variants?|answers?|proposals?|winner)\s){0,3})(?:by|on|in|for|at|with|according\sto)\s(?:the\s|our\s|their\s|its\s|total\s|best\s|low\s){0,2}|"
    r"which(?:ever)?\s[^.?!;\n]{0,40}?(?:has|gives|gets|brings|shows|offers)\s(?:us\s)?(?:the\s)?(?:better|best|lower|lowest|higher|highest)\s)"
)
_TO = (
    r"(?:\s(?:is|for|on|the|to|towards?|about|mostly|most|more|only|mainly|purely|primarily|solely|just|low(?:er|est)?|"
    r"high(?:er|est)?|best|max(?:imum)?|min(?:imum)?|total|overall|aggregate|raw|pure|sheer|good|output|us|our|everything)){0,5}"
)
# A figure right behind: a limit ("target latency of 2 s"), not an objective.
_NO_FIGURE = (
    r"(?!(?:[\s:=<>≤≥~()]|of|in|under|below|within|at|is|least|most|around|about|p\d\d|max|to|be|must|should|stay|no|more|"
    r"than|延迟|时延|时间|不超过|小于|低于|不高于|控制在|平均|均值|最多|约){0,12}\d[\d.,]{0,8}k?\s?(?:ms|s|sec|seconds?|tok|tokens?|t/s|tps|毫秒|秒)(?![a-z]))"
)
_AS_IT_CAN = (
    r"as\s(?:possible|(?:we|you|it|they|i|(?:the|this|that|these|those)\s[a-z]{2,10})(?:'ll|'d|\swill|\swould)?\s(?:(?:possibly|ever)\s)?"
    r"(?:can|could|allows?|permits?|takes?|gives?|manages?|delivers?|yields?|bears?)(?![a-z]))"
)
_LESS = r"(?:then|and|or|the|a|is|to|on|for|with|of)(?![a-z])"
_PHRASES: dict[tuple[str, str], str] = {
    ("best", "latency"): (
        r"as\s(?:fast|quick(?:ly)?|responsive|snappy|interactive)\sas\s(?:possible|it\sgets|(?:you|we)\scan|it\scan\sbe)|"
        r"the\s(?:quicker|faster|sooner|snappier)\sthe\sbetter|(?:fast|quick|speedi|snappi)est(?:\s(?:possible|response|replies|answers?|way))?|(?:finish(?:es|ed)?|respond(?:s|ed)?|answer(?:ed|s)?|done|completed?|appears?|returned|arrives?|comes?|there)\s(?:asap(?![a-z])|as\ssoon\sas\spossible|soonest|earliest|quickest|fastest)|"
        r"尽(?:快|可能快)|越快越好|最快|快就是王道"
    ),
    ("best", "throughput"): (
        r"as\smany\s(?!gpus?|cards?|nodes?|servers?|machines?)(?:[\w/]+\s){1,3}?(?:(?:per|an?|each|every)\s\w+\s)?(?:(?:out\sof|from|through|on)\s[^.,;\n]{1,40}?\s)?"
        rf"{_AS_IT_CAN}|most\stokens|gets?\sthe\smost\s\w+\sthrough|"
        r"as\smuch\s(?:total\s|overall\s|aggregate\s)?(?:throughput|output|tokens?)\s(?:[^.,;\n]{2,24}\s)?"
        rf"{_AS_IT_CAN}|"
        r"(?:squeeze|push|crank|get)\s(?:out\s)?(?:the\smost|as\smuch\sas\spossible|everything)\s(?:out\sof|from)|"
        r"(?:多多益善|越多越好)"
    ),
    ("best", "cost"): (
        r"(?:\$|dollars?|usd|costs?|price|cents?)\s?(?:per|/)\s?(?:(?:1\s?)?m(?:illion|n)?|1k|thousand|output)\s?(?:output\s)?tok(?:en)?s?|cheapest|costs?\s(?:us\s)?(?:(?:the\s)?least|less(?!\sthan|\s(?:money\s)?per))|for\sless(?!\sthan)|(?:best|most)\sbang\sfor\s(?:the|your|our)\sbuck|bang\sfor\s(?:the|your|our)\sbuck|best\s(?:value|"
        r"price[\s\-]performance|price/performance)(?:\sfor\s(?:the\s)?money)?|as\scheap(?:ly)?\sas\s(?:possible|we\scan|it\sgets)|"
        rf"(?:throughput|tokens?|perf(?:ormance)?|tok/s){_PER_DOLLAR}|"
        r"least\s(?:expensive|costly)|most\s(?:cost[\s\-]?(?:effective|efficient)|economical)|"
        r"最(?:便宜|省钱|划算|经济|省)|最?少的?钱|少花(?:点|些)?钱|能省(?:就|则)省|省(?:点|着)钱|最省|性价比最高"
    ),
    ("weak", "latency"): (
        r"low(?:er|ish)?[\s\-](?:latency|ttft|tpot|response\stimes?)|(?:latency|response\stime)(?:[\s\-](?:sensitive|critical|bound|"
        r"optimi[sz]ed|oriented|focus(?:s?ed)?)|\s(?:is\s)?(?:matters|counts|is\simportant|should\sbe\slow|low))|"
        r"interactive(?:ly)?|real[\s\-]?time|snappy|responsive|(?<!same\s)(?<!any\s)(?<!one\s)(?<!given\s)instant(?:ly|aneous)?|"
        r"(?:quick|fast|rapid|speedy)\s(?:replies|reply|responses?|answers?|reactions?|first\stoken)|"
        r"(?:answers?|repl(?:y|ies)|responses?|respond(?:s|ing)?|react(?:s|ing)?)(?:\s(?:very|really|are|is|be|must|should|to|need|as))*\s(?:quick(?:ly)?|fast|promptly)|"
        r"(?:be|feel|feels|make\sit|keep\sit|super|very|really)\sfast|"
        r"低(?:延迟|时延)|(?:延迟|时延|延时)(?:敏感|要?低(?!于|至))|实时|交互式?|(?:响应|反应|回复|回答)(?:要|得|速度)?快|体验流畅|秒回"
    ),
    ("weak", "throughput"): (
        r"high(?:er)?[\s\-]?(?:throughput|volume|tput)|(?:pure|sheer|raw)\sthroughput|throughput(?:\s(?:is\s)?(?:the\sthing|(?:that\s|what\s)?(?:we|i)\scare\sabout)|[\s\-](?:bound|optimi[sz]ed|oriented|focus(?:s?ed)?|mode|heavy|centric|driven)|"
        r"\s(?:matters|counts|is\simportant))|offline(?!\s(?:fallback|backup|copy|mode|use)(?![a-z]))|batch\s(?:processing|inference|jobs?|workloads?|scoring|run|mode|pipeline)|"
        r"(?:night-?ly(?!\s(?:ev|tests?|builds?|ci|backups?|benchmarks?|(?:re)?train))|(?<!/s\s)(?<!rps\s)(?<!qps\s)(?<!second\s)(?<!minute\s)(?<!fewer\s)(?<!less\s)(?<!quiet\s)overnight(?!\s(?:(?:it's|it\sis|there(?:'s|\sis|\sare)|maybe|only|about|perhaps|roughly|around|just|almost)\s){0,2}(?:half|a\s(?:third|quarter|fifth|tenth|few)|fewer|less|nothing|nobody|quiet|\d)(?![a-z])))|(?:daily|weekly)\s(?:batch|job|run)(?:es|s)?|bulk|backfill|"
        r"高吞吐|大吞吐|吞吐(?:量)?(?:要|尽量)?(?:高|大)|离线|批处理|批量(?:处理|推理|任务|跑)|跑批"
    ),
    ("weak", "cost"): (
        r"(?<![\ue000-\ue006]\sis\s)(?<![\ue000-\ue006]\sare\s)cheap(?:ly|er)?|low(?:er)?[\s\-]cost|cost[\s\-]?(?:effective(?:ly|ness)?|efficient(?:ly)?|efficiency|sensitive|conscious|"
        r"optimi[sz]ed|oriented|aware)|(?:costs?|spend(?:ing)?|bills?|price)\s(?:low|down|matters|counts|is\simportant)|economical(?:ly)?|"
        r"sav(?:e|ing)\smoney|(?:on\sa\s)?(?:tight|small|limited|shoestring)\sbudget|(?:budget|money)(?:'s|\sis)\s(?:very\s|really\s|rather\s|quite\s|a\sbit\s|pretty\s)?(?:tight|limited|small|low|short|scarce)|inexpensive(?:ly)?|frugal(?:ly)?|"
        r"便宜|省钱|低成本|成本(?:要)?低|性价比(?:高|优先)?|(?<![不])划算(?!吗|不)|经济(?:型)?|预算(?:很)?(?:有限|紧张?|不多)|节省(?:成本|费用|预算)"
    ),
}  # fmt: skip

_SUBJECT = "|".join(part for pair in _SUBJECTS.values() for part in pair)
_NOT_CARED = (
    r"(?:not|isn'?t|aren'?t|doesn'?t|no)\s(?:really\s|so\s|that\s|very\s|super\s|much\s|too\s|of\s)*(?:matter|important|an?\s(?:concern|problem|priority|"
    r"factor|issue|big\sdeal)|critical|object|relevant|issue|crucial)|(?:is\s|are\s|comes\s)?second(?:ary)?(?![a-z\d])|irrelevant|can\swait|be\sdamned"
)
INDIFFERENT = Gated(
    rf"(?:优先)?(?:{_SUBJECT})\s?(?:优先)?\s?(?:还是|(?<![a-z])or(?![a-z]))\s?(?:for\s|优先)?(?:{_SUBJECT})[^?？,.;。]{{0,12}}[?？]|"
    rf"(?<![a-z])(?:(?:{_SUBJECT})\s(?:is\s|are\s|itself\s)?(?:{_NOT_CARED})|"
    rf"(?:don'?t|do\snot|doesn'?t|not)\s(?:really\s|much\s)?(?:car(?:e|ing)|worry|mind|worried)\s(?:much\s|that\smuch\s|so\smuch\s)?(?:about|abt|for)\s(?:the\s|low(?:est)?\s)?(?:{_SUBJECT})|"
    rf"(?:nobody|no\sone|none\sof\sus|(?:we|i)\s(?:do|are|am)(?:n't|\snot))\s(?:really\s|ever\s|here\s)?(?:cares?|minds?|looks?|asks?|watch(?:es)?|checks?|after)\s(?:much\s)?(?:about\s|at\s|for\s|on\s)?(?:the\s)?(?:{_SUBJECT})(?:\shere)?|"
    rf"(?:{_SUBJECT})\s(?:(?:plays?|has)\s(?:no|little)\s(?:role|part|weight)|(?:is|are)\s(?:of\sno\s(?:concern|interest|importance)|nobody's\s(?:concern|problem|business)))|faster\sthan\s(?:people|anyone|one|you|we|humans?)\s(?:can\s)?reads?|"
    rf"(?:no|without)\s(?:hard\s|specific\s|strict\s)?(?:{_SUBJECT})\s(?:requirements?|constraints?|targets?|limits?|pressure|concerns?|slo|sla)|"
    rf"(?:regardless|irrespective)\sof\s(?:the\s)?(?:{_SUBJECT})|(?:{_SUBJECT})[\s\-](?:insensitive|tolerant)|no\s(?:rush|hurry)|whatever\sthe\s(?:{_SUBJECT}))(?![a-z])|"
    rf"(?:没人?|没有人|谁也不)(?:看|管|在乎|关心|在意|盯)\s?(?:{_SUBJECT})|(?:不(?:太|是很|怎么)?(?:在乎|关心|考虑|计较?|在意|看重|追求|要求|敏感于|强调|care)|无所谓)\s?(?:低|高)?(?:{_SUBJECT})|"
    rf"(?:{_SUBJECT})\s?(?:本身)?(?:都|也|倒|可以)?(?:不(?:太|是很|那么|怎么)?(?:重要|敏感|要求|限|是问题|关键|着急)|无所谓|没有?(?:什么)?要求|其次|次要|随意|放宽|高(?:一)?点(?:也)?(?:没关系|无所谓|可以|能接受))",
)
# An objective that is ranked lower, by its stem.
_OTHER = (
    r"(?:latenc|through-?put|thruput|tput|cost|price|spend|speed|budget|money|tokens?|tps|ttft|tpot|response)\w{0,6}"
)
# Between two wishes: the second comes after the first ("maximise throughput while keeping cost minimal").
SUBORDINATE = Gated(
    r"(?<![a-z])(?:while|whilst|subject\sto|then|if\spossible|ideally|secondly|secondary|provided|as\slong\sas)(?![a-z])|同时|其次|然后|再|前提",
)


def _tier_first(english: str, chinese: str) -> str:
    """Words that name the subject as what counts, or rank it first."""
    any_tongue = rf"(?:{english}|{chinese})"
    state = r"(?:\s(?:low|down|high|up|minimal|under\scontrol))?"
    after = (
        rf"{english}(?:\s(?:only|it\sis)(?=\s?(?:[,.;!)\n]|$)))|{english}{state}(?:[\s\-](?:first(?![\s\-]token)|prio(?:rity)?(?![a-z])|priorit\w{{4,6}}|above\s(?:all|everything|anything)|(?:is\swhat\s)?decides(?:\sit)?(?=\s?[,.;!\n]|$)|has\s(?:preference|priority|precedence)(?![a-z])|trumps|beats\s\w+|wins|comes\sfirst|"
        rf"(?:over|before|rather\sthan|instead\sof)\s(?:low\s|high\s|raw\s|pure\s)?(?:{_OTHER})|"
        rf"(?:is\s)?(?:counts|matters?|important)\s(?:the\s)?(?:most|(?:way\s|far\s|much\s)?more))"
        rf"|,?\s(?:and\s)?not\s(?:the\s)?(?:{_OTHER})|\s?>{{1,3}}\s?(?:{_OTHER})"
        rf"|\s?{_BE}\s{_LEAD}(?:{_CARE}|(?:the\s)?most\simportant|more\simportant|{_RANK}(?:\s{_AIM})?|{_AIM}|critical|everything|king|paramount|crucial|decisive)(?![a-z]))"
    )
    before = (
        rf"(?:(?:{_RANK}\s)?{_AIM}|{_CARE}|most\simportant(?:\sthing)?|{_RANK}(?=\s?:))\s?(?:{_BE}|-|→|on|for)?\s?{_LEAD}"
        rf"(?:(?:keep(?:ing)?|get(?:ting)?|low(?:er|est)?|high(?:er|est)?|max(?:imum|imi[sz]e|imi[sz]ing)?|min(?:imum|imi[sz]e|imi[sz]ing)?|best|overall|total|good|to|reduce|reducing|the)\s){{0,4}}{english}{_NO_FIGURE}"
        rf"|{_JUDGED_BY}{english}{_NO_FIGURE}"
        rf"|{_VERB}{_TO}(?:\s?[:=|]\s?|\s)(?!{_LESS}){english}{_NO_FIGURE}"
        rf"|(?:pure(?:ly)?|sheer|just|only)\s{english}(?=\s?(?:[,.;!)\n]|$))|nothing\s(?:else\s)?(?:matters|counts)\s(?:but|except)\s{english}|only\s(?:the\s)?{english}\s(?:really\s)?(?:counts|matters|is\simportant)"
        rf"|but\s(?:the\s)?{english}\s(?:is|does)(?=\s?[,.;!\n]|$)|it'?s\s(?:all\sabout\s)?{english}\sthat"
    )
    tongue = (
        rf"{any_tongue}\s?(?:是|要|应|需|放在?)?\s?(?:我们的?)?(?:优先|第一(?!个)|首(?:要|位)|为主|为先|为王|至上|最重要|最要紧|最关键|最关心|才?是(?:关键|重点|核心|王道)|说了算|(?:的)?优先级最高)"
        rf"|(?:(?:^|[,;。\n])\s?(?:我们?|大家|客户|这次|主要|就|先|还是)*看|按照?|根据)\s?{any_tongue}\s?(?:的?高低|大小|多少)?(?:来)?(?:排(?:序|名|一下)?|选(?:型|择)?|比(?:较)?|评(?:分|判|估)?|定)?(?=\s?(?:[,;。\n.]|$))"
        rf"|以\s?(?:低|高|最低|最高)?\s?{any_tongue}\s?(?:为|作为)(?:主|先|目标|重|准|首要)"
        rf"|(?:优先(?:考虑|保证|优化)?|侧重|看重|只要|只看|只求|(?:只|最|更|主要|重点|比较)(?:关心|在乎|在意|看重|关注|考虑|看|追求|优化|care)|(?:优化)?目标(?:是|为|:)?|偏重|偏向|优化指标(?:是|为|:)?|(?:要|想要|图)的?是)"
        rf"\s?(?:的|是)?\s?(?:最?低|最?高|降低|提高|最大化?|最小化?)?\s?(?:整体|总体?|整个集群的?)?\s?(?:token)?\s?{any_tongue}{_NO_FIGURE}"
    )
    return rf"(?<![a-z])(?:{after}|{before})(?![a-z])|{tongue}"


def _tier_best(name: str, english: str, chinese: str) -> str:
    """Words that ask for an extreme."""
    superlative = _MOST if name == "throughput" else _LEAST
    any_tongue = rf"(?:{english}|{chinese})"
    return (
        rf"(?<![a-z])(?:{superlative}{_FILL}[\s\-]{english}{_NO_FIGURE}|{english}(?:\sof\s[^\s,.;]{{1,60}})?\s(?:kept\s|stays?\s)?(?:{_BE}\s)?{_EXTREME}|{english}[\s\-]optimal|"
        rf"as\s(?:low|high|little|much|short){_FILL}\s(?:an?\s)?{english}\sas)(?![a-z])|{_PHRASES['best', name]}"
        rf"|{any_tongue}\s?(?:要|应|需|能|可以)?\s?(?:(?:压|降|控制|控|做|提|拉|提升|降低)(?:到|至|在)?\s?)?(?:最(?:低|小|高|大|少|短|优|快|佳)(?:化|限度)?|拉满|打满|跑满|"
        rf"尽(?:量|可能)(?:要|地)?(?:低|高|大|小|少|短|快)|越(?:低|高|大|小|少|短|快)越好|能(?:多)?(?:低|高)(?:就|则)(?:多)?(?:低|高))"
        rf"|(?:最(?:低|小|高|大|少|短|优)(?:化|的)?|降低|压缩|优化|追求|提高|提升|节约|极致(?:的)?)\s?(?:的)?\s?(?:低|高|总|整体)?\s?{any_tongue}"
    )


def _tier_bare(english: str, chinese: str) -> str:
    """Nothing but the word, between two commas or with a plea."""
    return (
        rf"(?:(?:^|[,;.|/\n(])\s?)(?:{english}|{chinese})(?:\s(?:pls|plz|please))?\s?(?=[,;.|/\n)!]|$)"
        rf"|(?<![a-z]){english}\s(?:pls|plz|please|ftw)(?![a-z])"
    )


# A tier's pattern, with a group for each subject.
def _tier(name: str) -> Gated:
    return Gated("|".join(f"(?P<{subject}>{_wish(name, subject)})" for subject in _SUBJECTS))


def _wish(tier: str, name: str) -> str:
    english, chinese = _SUBJECTS[name]
    if tier == "weak":
        return rf"(?<![a-z])(?:{_PHRASES['weak', name]})(?![a-z])"
    if tier == "bare":
        return _tier_bare(english, chinese)
    return _tier_first(english, chinese) if tier == "first" else _tier_best(name, english, chinese)


PER_GPU = Gated(rf"{_THROUGHPUT}{_PER_GPU}|每张?卡的?吞吐")
TIERS = tuple(map(_tier, ("first", "best", "weak", "bare")))
"""The tiers, the strongest first; the group of a match is the objective."""
