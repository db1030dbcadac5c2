"""The words for latency limits and speeds, in English and Chinese (used by `goals/limits.py` alone)."""

from __future__ import annotations

from ...plan.latency_limits import LATENCY_LIMITS
from ..patterns.gated import Gated
from ..said import Statistic

_ANSWER = (
    r"(?:response|answer|repl(?:y|ie)|request|generation|completion|output|message|summar(?:y|ie)|suggestion|letter|call|text|document|"
    r"doc|result|report|draft|translation|review|memo|e?-?mail|verdict|note|article|opinion|query|classification|extraction)"
)
# "latency per call", "delay of each answer", "request latency"; not "latency per request to the first token".
_OF_ANSWER = (
    rf"(?:latency|latencies|delay)[\s\-](?:per|of|for)[\s\-](?:(?:an?|one|each|every|the|any|single|whole)\s){{0,2}}{_ANSWER}s?(?!\s(?:to|until|till)\s)|"
    rf"(?:per[\s\-])?{_ANSWER}[\s\-](?:latency|latencies|delay|duration|turnaround)"
)
_OUT = r"(?:(?:output|generated|new|decoded)[\s\-])?"
_ROLES: tuple[tuple[str, str], ...] = (
    (
        "ttft",
        r"(?<![a-z])(?:(?:time|latency|delay)[\s\-](?:to|until|till|of|for|before)[\s\-](?:the[\s\-])?(?:very[\s\-])?(?:first|1st)(?:[\s\-](?:output[\s\-])?(?:token|word|byte|response))?|"
        r"ttft(?:[\s_\-]?ms)?(?:_max)?|(?:the\s)?(?:very\s)?(?:first|1st|initial)[\s\-](?:(?:output|answer|response|reply)[\s\-])?(?:token|word|character|byte)s?(?:'s)?(?:[\s\-](?:latency|time|delay))?|"
        r"(?:star(?:e|es|ing)|look(?:s|ing)?)\sat\s(?:an?|the)\s(?:empty|blank)\s(?:box|screen|page|window)|"
        r"(?:prefill|prompt\sprocessing)[\s\-](?:latency|time)|(?:initial|first)\sresponse(?:[\s\-](?:time|latency))?|"
        r"(?:answers?|responses?|repl(?:y|ies)|completions?|output|text|streaming|generation)\s(?:should\s|must\s|to\s|has\sto\s|have\sto\s)?(?:start|begin|appear|kick\sin)(?:s|ing|ning)?|(?:has\sto|have\sto|must|should)\s(?:start|begin)(?=\s(?:with)?in)|(?:start(?:s|ing)?|begin(?:s|ning)?)\s(?:streaming|responding|answering|replying|talking|typing|generating))(?![a-z])"
        r"|首\s?(?:个\s?)?(?:token|字|词元?|包|响)\s?(?:的)?(?:生成|响应|返回)?(?:延迟|时延|时间|耗时)?|第一个\s?(?:token|字|词)|预填充(?:延迟|时间|时延|耗时)",
    ),
    (
        "tpot",
        r"(?<![a-z])(?:time[\s\-]per[\s\-](?:output[\s\-]|generated[\s\-])?token|tpot(?:[\s_\-]?ms)?(?:_max)?|itl|tbt|"
        r"inter[\s\-]?token(?:[\s\-](?:latency|delay|time|gap|interval))?|(?:time|gap|delay|latency|interval)[\s\-](?:between|per|for\s(?:each|every)|of\seach)[\s\-](?:two\s|successive\s|consecutive\s)?"
        rf"{_OUT}tokens?|token[\s\-]to[\s\-]token(?:\slatency)?|"
        rf"(?:per|each|every|one|a|subsequent|next|following|later|further|additional|remaining)[\s\-](?:subsequent\s|next\s|following\s|later\s|further\s|additional\s)?{_OUT}tokens?(?:[\s\-](?:latency|time|after\sthat|thereafter|afterwards))?|"
        rf"(?:time|latency)\s?/\s?(?:output\s)?tok(?:en)?(?![a-z])|per[\s\-]tok|between\s(?:two\s|successive\s|consecutive\s)?{_OUT}tokens|(?:decode|decoding|generation)[\s\-](?:latency|time|step)|token\s(?:latency|interval)|"
        r"tokens?\s(?:after\sthat|thereafter|afterwards)|(?:every|each)\s(?:one|other)\s(?:after(?:\s(?:it|that))?|thereafter)|"
        r"(?:new|next|another)\stokens?\s(?:every|each)|(?:the\s)?(?:rest|others|remaining\sones|subsequent\sones|following\sones)(?=\s(?:at|in|every|within|under|each)))(?![a-z])"
        r"|(?:每一?个?|单个?|逐个?|后续(?:每个?)?|之后每个?|后面每个?)\s?(?:输出|生成)?\s?(?:token|词元|字)\s?(?:间|的|生成|输出)?(?:延迟|时延|时间|间隔|耗时)?"
        r"|(?:token|字|词元)\s?(?:之)?间(?:隔|的)?(?:延迟|时延|时间)?|解码(?:延迟|时延|时间|耗时)|出字(?:间隔|速度)",
    ),
    (
        "end_to_end",
        r"(?<![a-z])(?:end[\s\-]to[\s\-]end(?:[\s\-](?:latency|time))?|e2el?(?:[\s\-]latency)?|total[\s\-](?:latency|time|response\stime)|"
        rf"(?:full|whole|complete|entire|finished)\s{_ANSWER}s?(?:[\s\-](?:time|latency))?|response[\s\-]time|{_OF_ANSWER}|(?:start|beginning)\sto\s(?:finish|end)|"
        rf"(?:{_ANSWER}s?|it|they|text)\s(?:(?:should|must|to|has\sto|have\sto|needs?\sto|can|will|shall|is\sto|are\sto)\s)?(?:be\s|is\s|are\s)?(?:all\s|fully\s|completely\s|entirely\s)?"
        r"(?:finish(?:es|ed)?|complet(?:es?|ed)|done)|"
        rf"{_ANSWER}s?\s(?:must|should|ha(?:s|ve)\sto|needs?\sto)\sbe\s(?:there|back|out|ready)(?=\s(?:with)?in(?![a-z])|\safter)|"
        r"(?:must|should|has\sto|have\sto|needs?\sto|to|shall)\sbe\s(?:all\s|fully\s|completely\s|entirely\s)?(?:finished|complete|completed|done)|"
        r"(?:until|till|before)\s(?:(?:the|its?|all|a)\s)?(?:\w+\s)?(?:is|are)\s(?:all\s|fully\s)?(?:complete|completed|finished|done))(?![a-z])|"
        r"端到端(?:延迟|时延|耗时|时间)?|总(?:延迟|时延|耗时|时长)|(?:每一?|单)[次个条]?(?:请求|调用|回答|回复|问答|响应)的?(?:平均)?(?:延迟|时延|延时|耗时|时间)|整体(?:延迟|时延)|响应时间|"
        r"(?:全部|全都)(?:返回|答完|回完|出完|搞定)|(?:生成|返回|回答|答复|输出|处理)完(?:成|毕)?(?!整)|(?<=内)(?:答|回|写|出)完|(?:整|全|一整)[^,;。\n]{0,6}?(?:生成|返回|出|答|回|写|审|跑|输出|处理)(?:完成?|好)|整[篇条段个](?:返回|出完|答完)(?=\s{0,2}(?:[:|≤<在]|\ue003))|(?:完整|整个|整条|全部)的?(?:回答|回复|答复|响应|结果|输出|请求)(?:的?(?:耗时|时间|延迟|时延))?",
    ),
    ("latency", r"(?<![a-z])(?:latency|latencies|delay)(?![a-z])|延迟|时延"),
)  # fmt: skip
ROLE = Gated("|".join(f"(?P<{name}>{pattern})" for name, pattern in _ROLES))
FIELDS = {limit.figure.removesuffix("_ms"): limit.field for limit in LATENCY_LIMITS}

STATISTIC_WORDS = Gated(
    r"(?<![A-Za-z0-9])(?:t?p\s?-?(?P<p>50|90|95|99(?:\.9{1,3})?|999)(?!\d)(?:th)?(?:\spercentile)?|"
    r"(?P<nth>50|90|95|99)\s?(?:th|%)?[\s\-](?:percentile|pctl)|(?P<cn>50|90|95|99)\s?(?:百?分位(?:数|值)?|线)|"
    r"(?<=for\s)(?P<share2>50|90|95|99)\s?(?:%|percent)\sof\s(?:(?:all|the|these|those)\s){0,2}(?:them|[a-z]{4,12}s|people)(?![a-z])|"
    r"(?P<share>50|90|95|99)\s?%\s?(?:的?(?:请求|情况|用户|回答)|of\s(?:the\s)?(?:requests|time|users|cases)|(?=(?:ttft|tpot|itl|tbt)(?![a-z])))|"
    r"(?P<median>median)(?![a-z])|(?P<mean>averages?|avg|mean)(?![a-z]))|(?P<median2>中位(?:数|值)?)|(?P<mean2>平均|均值)",
)
LENGTH_FOLLOWS = Gated(
    r"\s?(?:of\s)?(?:the\s)?(?:inputs?|prompts?|outputs?|isl|osl|context|length|answers?|repl|responses?|输入|输出|提示|长度)",
)
STATISTICS: dict[str, Statistic] = {"50": "p50", "90": "p90", "95": "p95", "99": "p99"}
STRICTER = ("mean", "p50", "p90", "p95", "p99")
FOR_ALL = Gated(r"(?:both|all|均|都)[^,.;]{0,12}$")
AND = Gated(r"\s?(?:and|&)\s?(?:an?\s|the\s)?|\s?(?:和|与|且)\s?")
"""Between two limits that share the statistic behind them."""
FROM_BELOW = Gated(
    r"(?:(?<![a-z])(?:(?:not|never|no|n't)\s(?:be\s|go\s|drop\s|fall\s)?(?:lower|less|below|under|faster|shorter|quicker)(?:\sthan)?|at\sleast|(?:a\s)?minimum(?:\sof)?)|>=?|≥|不(?:得|能|可|应)?(?:低于|小于|少于)|至少)\s?$"
)
"""Before a time: it may not be shorter."""
PLURAL_AFTER = Gated(r"^\s?(?:latency\s)?(?:targets|limits|slos|slas|latencies|for\sboth|for\sall|on\sboth|指标)")

_NO_USER = (
    r"(?:second|minute|hour|day|gpu|card|accelerator|device|chip|node|server|machine|host|box|rack|replica|instance|worker|engine|rank|pod|stage|group|"
    r"cluster|system|deployment|site|team|model|token|watt|dollar|euro)s?(?![a-z])"
)
ONE_GPU = Gated(r"(?<![a-z])(?:per|each|every)[\s\-](?:gpu|card|accelerator)(?![a-z])|[每单][张块]?卡")
ONE_USER = Gated(
    r"(?<![a-z])(?:per|each|every|single|individual|any|for\sa|one)[\s\-]+(?:one\s)?(?:concurrent\s|active\s|single\s|of\s(?:the\s|our\s|these\s|those\s)?(?:\d{1,9}\s|\ue002{1,12}\s)?(?:concurrent\s|simultaneous\s|parallel\s)?)?"
    r"(?:users?|requests?|streams?|clients?|sessions?|sequences?|persons?|customers?|chats?)(?![a-z])|"
    rf"(?<![a-z])per\s(?!{_NO_USER})[a-z]{{4,12}}(?![a-z])|"
    r"(?<![a-z])(?:nobody|no\sone|anybody|anyone|each|all\sof\sthem|every(?:one|body|\sone\sof\s(?:them|those|these|us)|\s(?:reader|person|caller|student|agent|viewer|player|member)))(?![a-z])|"
    r"(?<![a-z])apiece(?![a-z])|(?<![a-z])(?:a|one)\suser\s(?:must|should|can|has)(?![a-z])|read\salong|per[\s\-]user|user[\s\-](?:perceived|visible|facing|experienced|side)|perceived|users?\s(?:should\s|must\s|to\s|will\s)?(?:each\s)?(?:sees?|gets?|reads?|receives?|experiences?)|"
    r"(?:decode|decoding|generation|output|streaming|token|typing)\sspeed|(?:stream(?:ed|ing|s)?|read(?:ing)?|flow(?:s|ing)?|arriv(?:e|es|ing)|typ(?:e|es|ing)|com(?:e|es|ing)(?:\sin|\sout)?)\sat|users?\sread|(?:after(?:wards|\sthat)|thereafter|then|followed\sby)(?=[\s,])|interactivity|"
    r"后面|之后|后续|随后|然后|单一?个?(?:用户|请求|路|流)|每(?:个|位|一个)?\s?(?:用户|请求|人|路)|(?:生成|输出|解码|出字|吐字|打字)速度",
)
WHOLE = Gated(
    r"(?<![a-z])(?:total|aggregate[d]?|overall|throughput|cluster|system|altogether|combined|fleet|in\sall|across)(?![a-z])|整体|总|吞吐|集群|系统",
)
