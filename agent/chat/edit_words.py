"""The words of follow-ups that only mean something beside what was said before: drop, scale, go back, a bare figure.

What states a value by itself ("now with 16 GPUs") is read by the reader of requests. Nothing here guesses: a word that
could mean two fields names neither.
"""

from __future__ import annotations

import re

from .figures import FIGURES

# What a follow-up may name without a value: the field, and how people call it.
_FIELDS = {
    "ttft_ms_max": (
        r"ttft|time[\s\-]to[\s\-]first[\s\-]token|first[\s\-]token(?:\slatency|\stime)?|"
        r"首\s?(?:个\s?)?token(?:延迟|时延|时间)?|首字(?:延迟|时延|时间)?"
    ),
    "tpot_ms_max": (
        r"tpot|itl|time\sper\soutput\stoken|(?:inter|per)[\s\-]token(?:\slatency|\stime)?|"
        r"每\s?(?:个\s?)?token(?:的)?(?:延迟|时延|时间)?"
    ),
    "end_to_end_ms_max": (
        r"(?:end[\s\-]to[\s\-]end|e2e|total)(?:\s(?:latency|response\stime|time))|end[\s\-]to[\s\-]end|e2el?|"
        r"(?:the\s)?(?:whole|full|complete|entire)\s(?:answer|response|reply)(?:\stime)?|response\stime|"
        r"端到端(?:的)?(?:延迟|时延|时间)?|总(?:延迟|时延|耗时)|完整(?:回答|回复|响应)(?:时间)?|响应时间"
    ),
    "request_rate": r"request\srate|requests?(?:/s|\sper\ssecond|\sa\ssecond)|rps|qps|arrival\srate|请求(?:速)?率",
    "min_tokens_per_second": r"throughput|tokens?(?:/s|\sper\ssecond)|token\srate|吞吐量?",
    "concurrency": (
        r"(?:(?:concurrent|simultaneous|parallel|active)\s)?(?:users|user|clients|sessions|people)|"
        r"(?:concurrent|simultaneous|parallel)\srequests?|concurrency|batch(?:\ssize)?|requests?\sin\sflight|"
        r"并发(?:数|量|用户|请求)?|用户(?:数|数量)?|批大小"
    ),
    "gpus": r"(?:number\sof\s)?(?:gpus?|cards?|accelerators?)(?:\scount)?|gpu\s?(?:数量?|个数)|(?:显)?卡(?:数|的数量)?",
    "nodes": r"(?:number\sof\s)?(?:nodes?|servers?|machines?|boxes)|节点(?:数量?)?|机器(?:数量?)?|服务器(?:数量?)?",
    "input_tokens": r"(?:input|prompt)s?(?:\slengths?|\stokens|\ssizes?)?|输入(?:长度|token)?|提示词?(?:长度)?",
    "output_tokens": r"(?:output|answer|response|completion)s?(?:\slengths?|\stokens|\ssizes?)?|输出(?:长度|token)?",
    "engine": r"(?:serving\s)?engine|推理引擎|引擎",
    "usd_per_gpu_hour": r"price|价格",
    "memory_utilization": r"memory\sutili[sz]ation|显存利用率",
    "expert_imbalance": r"expert\s(?:load\s)?imbalance|专家(?:负载)?不均衡(?:度|系数)?",
    "prefix_cache_hit_rate": r"prefix[\s\-]cach(?:e|ing)(?:\shit\srate)?|前缀缓存(?:命中率)?",
    "strategy": r"(?:parallel\s|stated\s|forced\s)?(?:strategy|layout|degrees?|split)|(?:并行)?策略|并行方式|布局",
    "precision": r"(?:number\s)?(?:format|precision|quanti[sz]ation)s?|精度|量化",
}  # fmt: skip

# What people call the load as a whole: the request rate where one is stated, else the requests at once.
TRAFFIC = re.compile(
    r"(?<![A-Za-z])(?:(?:the|our)\s)?(?:user\s)?(?:traffic|(?<=the\s)load|(?<=our\s)load)(?![A-Za-z])(?!\s(?:balanc|imbalanc|of))"
    r"|(?:访问量|流量|请求量|业务量)",
    re.IGNORECASE,
)


def figure_fields() -> str:
    """The alternatives of `FIELD` that have a figure which can move by an amount."""
    moved = [name for name in _FIELDS if name in FIGURES]
    return "|".join(f"(?P<{name}>{_FIELDS[name]})" for name in moved)


FIELD = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _FIELDS.items())
_LIMIT = r"(?:limits?|bounds?|targets?|constraints?|requirements?|caps?|slos?|slas?|限制|约束|要求|上限|目标)"
_DETERMINER = r"(?:(?:the|a|an|any|my|our|that|all|every|of|stated|upper)\s){0,4}"
# "no engine" is a wish of its own, a plan on paper; "drop the engine" leaves it to be assumed.
_ON_PAPER = r"(?!(?:no|without)\s(?:an?\s|any\s)?(?:serving\s)?engine)"
_DROPS = (
    r"(?:drop|remove|lift|forget(?:\sabout)?|cancel|discard|delete|clear|ignore|relax|waive|without|no(?:\smore)?|"
    r"(?:do\snot|don'?t)\s(?:limit|restrict|constrain|bound|care\sabout|need)|stop\slimiting)"
)
# A new value after it ("relax the TTFT limit to 800 ms") changes the limit and does not drop it.
_NO_VALUE = rf"(?!\s?(?:{_LIMIT}\s?)?(?:to|at|of|under|below|=|:)?\s?[<≤]?\d)(?![A-Za-z0-9])"
DROP = re.compile(
    rf"(?<![A-Za-z]){_ON_PAPER}{_DROPS}\s{_DETERMINER}(?:{_LIMIT}\s(?:on|of|for|to)\s{_DETERMINER})?(?:{FIELD})"
    rf"(?:\s{_LIMIT})?(?:\saltogether|\scompletely|\sany\s?more)?{_NO_VALUE}",
    re.IGNORECASE,
)
# A verb that says how a limit moves; its new value says the rest.
MOVES = re.compile(
    r"(?<![A-Za-z])(?:relax|loosen|lift|raise|ease|tighten|lower|reduce|increase|change|set)\s(?:the\s|our\s)?"
    rf"(?=(?:{FIELD})(?:\s{_LIMIT})?\s(?:to|at|down\sto|up\sto)\s?[<≤]?\d)",
    re.IGNORECASE,
)
# What a change says of all that it does not name: that it stays, as it does in any case.
ALL_ELSE = re.compile(
    r"(?:[,;]?\s?(?:(?:but|and|while)\s)?(?:please\s)?(?<![A-Za-z])"
    r"(?:(?:do\snot|don'?t|without)\s(?:chang(?:e|ing)|touch(?:ing)?)\s(?:anything\selse|the\srest)"
    r"|(?:keep(?:ing)?|leav(?:e|ing))\s(?:everything\selse|all\selse|the\srest)"
    r"(?:\s(?:as\sit\sis|as\sis|the\ssame|alone|unchanged|untouched))?)"
    r"|[,;]?\s?其[他它余](?:的)?(?:都|全)?(?:保持)?不变)(?=\s?(?:[,.;!。]|$))",
    re.IGNORECASE,
)
_CHINESE_DROPS = "取消|去掉|去除|删除|删掉|移除|不要|不再|放弃|忽略|不管|不限制?|无需|解除|放开"
DROP_CHINESE = re.compile(
    rf"(?:{_CHINESE_DROPS})\s?(?:掉|对)?\s?(?:限制)?\s?(?:{FIELD})\s?(?:的)?\s?{_LIMIT}?(?!\s?\d)", re.IGNORECASE
)
DROP_CHINESE_AFTER = re.compile(
    rf"(?:把)?\s?(?:{FIELD})\s?(?:的)?\s?{_LIMIT}?\s?(?:都)?(?:取消|去掉|不限制?|不要|删掉|解除|不管)(?:了|掉)?",
    re.IGNORECASE,
)
DROP_ALL = re.compile(
    rf"(?<![A-Za-z]){_DROPS}\s{_DETERMINER}(?:latency\s|time\s)?{_LIMIT}(?!\s(?:on|of|for|to)\s)(?![A-Za-z])"
    rf"|(?:{_CHINESE_DROPS})\s?(?:所有|全部)(?:的)?\s?{_LIMIT}",
    re.IGNORECASE,
)
FORBID = re.compile(
    r"(?<![A-Za-z])(?:without|no(?:\smore)?|disallow|forbid|disable|turn\soff|stop\susing|drop|remove|"
    r"(?:do\snot|don'?t)\s(?:allow|use|permit)|不要|不允许|不许|禁止|禁用|取消|关闭|去掉)\s?(?P<what>[^,;.!?。,;!?]{2,60})",
    re.IGNORECASE,
)

_FACTORS = {
    2.0: r"doubl(?:ed|es|e|ing)|twice|two\stimes|twofold|(?:增加|提高|多)(?:了)?一倍|翻倍|翻一番|翻番|加倍|两倍",
    3.0: r"tripl(?:ed|es|e|ing)|three\stimes|threefold|三倍",
    4.0: r"quadrupl(?:ed|es|e|ing)|four\stimes|fourfold|四倍",
    0.5: r"half|halv(?:ed|es|e|ing)|减少(?:了)?一半|减半|一半",
}
_FACTOR = "|".join(f"(?P<x{str(value).replace('.', '_')}>{words})" for value, words in _FACTORS.items())
FACTORS = {f"x{str(value).replace('.', '_')}": value for value in _FACTORS}
FACTORS_SAID = {value: re.compile(rf"(?<![A-Za-z])(?:{words})", re.IGNORECASE) for value, words in _FACTORS.items()}
SCALE = re.compile(
    rf"(?<![A-Za-z])(?:{_FACTOR}|(?P<times>\d{{1,4}}(?:\.\d{{1,2}})?)\s?(?:x|times|倍))"
    r"(?:\s(?:the|our|my|as\s(?:many|much|long|large|big|high)|more|number|amount|of)){0,5}\s?"
    rf"(?:的)?(?:{FIELD})(?![A-Za-z])",
    re.IGNORECASE,
)
SCALE_AFTER = re.compile(
    rf"(?:把|将)?\s?(?:{FIELD})\s?(?:数量?)?\s?(?:(?:is|are|was|were|be|been|to\sbe|get|gets|has|have|by|in|by\sa\sfactor\sof)\s){{0,2}}"
    rf"(?:变成|改成|改为|提高到|降到|扩大到|缩小到|扩大|提高|缩小)?\s?(?:{_FACTOR}|(?P<times>\d{{1,4}}(?:\.\d{{1,2}})?)\s?(?:倍|x(?!\s?[A-Za-z0-9])|times))"
    r"(?:\sas\s(?:many|long|large|big|high))?(?![A-Za-z])",
    re.IGNORECASE,
)
# A direction without a figure: how far is for the person to say.
DIRECTION = re.compile(
    r"(?<![A-Za-z])(?:add\s(?:some|a\sfew|several|more)|more|fewer|less|longer|shorter|bigger|smaller|larger|higher|lower|increase|decrease|reduce|raise)\s"
    rf"(?:the\s)?(?:{FIELD})(?![A-Za-z])(?!\s?(?:to|by|under|below|of)?\s?\d)"
    rf"|(?:更多|更少|多一?些|少一?些|增加|减少|提高|降低)(?:的)?(?:{FIELD.replace('(?P<', '(?P<zh_')})"
    r"(?!\s?(?:到|至|为)?\s?\d)",
    re.IGNORECASE,
)  # fmt: skip

# A direction with a bare figure behind it: the new value, or by how much?
UNCLEAR = re.compile(
    rf"(?<![A-Za-z])(?:increase|decrease|reduce|raise|bump|boost)\s(?:the\s|our\s)?(?:{FIELD})(?:\s{_LIMIT})?\s\d{{1,9}}\s?k?(?![\w.])",
    re.IGNORECASE,
)

BACK = re.compile(
    r"^(?:(?:now|and|but|ok(?:ay)?|then)[\s,]{1,3}){0,2}(?:please\s)?(?:go\s|switch\s|change\s(?:it\s)?|set\sit\s|move\s)?"
    r"(?:back|revert|return|restore)(?:\sto|\sat)?\s(?P<what>.{1,200})$"
    r"|^(?:(?:改|换|恢复|退|变|调|切)回(?:到|去|成)?|恢复(?:到|成)?)\s?(?P<zh>.{1,200})$",
    re.IGNORECASE | re.DOTALL,
)
BARE = re.compile(
    r"^(?:(?:now|and|or|no|ok(?:ay)?|then|so)[\s,]{1,3}){0,2}(?:please\s)?(?:(?:make|set|try|use|let'?s\s(?:try|use|say))\s"
    r"(?:it\s|that\s)?|(?:what|how)\sabout\s|what\sif\s(?:it\s(?:were|was|is)\s)?|(?:改成|换成|改为|变成|那|试试)\s?)?"
    r"(?P<on>(?:up)?on\s)?(?P<figure>\d{1,9}(?:\.\d{1,4})?\s?k?)(?:\sinstead|\splease|\sthen|呢|吧)?\s?[?!.。?]?$",
    re.IGNORECASE,
)
OBJECTIVE = re.compile(
    r"^(?:(?:now|and|but|ok(?:ay)?|then|rather|instead)[\s,]{1,3}){0,2}(?:please\s)?(?:make\sit\s|be\s|go\sfor\s|(?:optimi[sz]e|plan|rank|prefer|maximi[sz]e|"
    r"minimi[sz]e|prioriti[sz]e)\s(?:it\s)?)?(?:for\s)?(?:the\s)?(?:best\s|lowest\s|highest\s|low\s|high\s)?"
    r"(?:(?P<latency>latency|speed|faster|fastest|延迟|时延|更快|快一?点)|(?P<throughput>throughput|吞吐量?)|(?P<cost>cost|cheap(?:er|est)?|成本|更便宜|便宜一?点))"
    r"(?:\s?(?:instead|now|please|first|优先|最重要))?[\s.!。]{0,3}$",
    re.IGNORECASE,
)
# More is joined to the strategy that was stated before, not put in its place.
JOINED = re.compile(
    r"^(?:and|also|plus|as\swell|additionally|with\sthat)(?![A-Za-z])|^(?:并且|还|再|同时|另外)", re.IGNORECASE
)
FIELD_NAMES = tuple(_FIELDS)
