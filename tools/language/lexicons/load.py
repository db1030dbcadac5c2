"""The words that say what a number of the load is for, in English and Chinese (used by `load/words.py` alone)."""

from __future__ import annotations

import re

from ..patterns.gated import Gated

_LENGTH = (
    r"(?:[\s_\-](?:sequence|seq|prompt|token|context|text))?s?"
    r"(?:[\s_\-](?:lengths?|len|sizes?|tokens?|toks?))?(?![a-z])"
)
# "in" and "out" are roles only beside a number: "2k in / 256 out", "in 2048 out 256", "in: 2k".
_SCALES = ("hundred", "thousand", "million")
_AFTER_NUMBER = (
    r"(?:(?<=[\dk千百万亿])|(?<=[\dk千百万亿][\s\-])|(?<=\dm)|(?<=\dm\s)|(?<=[\dk千百万亿]\stokens\s)|"
    r"(?<=[\dk千百万亿]tokens\s)|(?<=[\dk]\stoks\s)|"
    + "|".join(rf"(?<={scale}\s)|(?<={scale}\stokens\s)" for scale in _SCALES)
    + ")"
)
_IN_FOLLOWED = (
    r"(?=\s?(?:[,/;.()+&|:\ue002]|$|\band\b|(?:plus|then|with|where|at|from|but|incl(?:uding|\.)?)\b|of\s(?:which|those|that|these)\b|"
    r"(?:on\saverage|each|per\s(?:request|call|prompt|turn|query)|for\s(?:each|every)|typical(?:ly)?|mean|avg|median|max|tops)\b|"
    r"\d[\dk,.]*\s?(?:tokens?\s)?(?:out|gen|answer|resp)|out\b|→|->))"
)
_CACHED = r"(?:is\s|are\s|being\s|already\s|will\sbe\s|comes?\sfrom\s(?:the\s)?){0,2}(?:cached?|shared|reused)"
# A latency without a unit of time: only where the figure follows at once ("TTFT<=500").
_FIGURE_FOLLOWS = (
    r"(?=\s?(?:\(ms\)\s?)?(?:of|under|below|within|at\smost|is|max|<=?|=|:)?\s?[:=]?\s?\d[\d.,]*(?![\dk.]))"
)
_RATE_FOLLOWS = (
    r"(?=[\s:=>≥]{0,3}(?:of|is|at\sleast|above|over|target|不低于|至少|大于|达到|要求)?"
    r"[\s:=>≥]{0,3}\d[\d.,]*k?(?![\d/]))"
)

# Texts that a model is given to read: their length is the prompt's, also in "a summary of 100k-token reports".
READ_MATTER = (
    r"(?:reports?|papers?|transcripts?|e-?mails?|contracts?|tickets?|pages?|files?|messages?|histor(?:y|ies)|chunks?|"
    r"conversations?|chats?|books?|essays?|letters?|posts?|turns?|documents?|docs|articles?|contexts?|repositor(?:y|ies)|repos?|"
    r"codebases?|logs?|filings?|manuals?|specs?|specifications?|records?|notes?|threads?|interviews?|chapters?|novels?|patents?|"
    r"cases?|case\sfiles?|statements?|invoices?|dialog(?:ue)?s?|meetings?|recordings?|theses|thesis|books?|texts?)(?![a-z])"
)
_READ_MATTER_CHINESE = (
    r"(?:报告|合同|转录稿?|会议记录|代码库|代码仓库|仓库|聊天记录|对话记录|历史(?:记录|对话|消息)?|"
    r"邮件|论文|文章|病历|日志|书籍|材料)"
)
_TOGETHER = (
    r"(?:concurren(?:t(?:ly)?|c(?:y|ies))|conc|simultaneous(?:ly)?|in[\s\-_]?flight|at\s(?:once|(?:any|an?)\s(?:(?:one|given|single)\s)?"
    r"(?:time|moment|instant)|one\s(?:moment|instant|(?<=[\d%]\sat\sone\s)time)|any\s(?:given\s)?(?:point|second))|(?:at|in)\s(?:the\s)?same\s(?:time|moment|instant|second)|in\sparallel|being\s(?:processed|served|handled)|"
    r"(?<!tokens\s)(?<!tokens\sare\s)being\s(?:generated|produced|written|drafted|composed|answered|streamed)|at\speak(?:\s(?:times?|hours?))?)"
)
_ROLES: dict[str, tuple[str, ...]] = {
    "hit_rate": (
        r"(?<![a-z])(?:prefix|prompt|kv)?[\s_\-]?cach(?:e|ing)[\s_\-](?:hits?|reuse)(?:[\s_\-]?(?:rate|ratio))?(?![a-z])",
        r"(?<![a-z])hit[\s_\-]?(?:rate|ratio)(?![a-z])",
        r"(?<![a-z])prefix[\s\-](?:cach(?:e|ed|ing)|reuse|sharing|hits?)(?:[\s_\-](?:rate|ratio))?(?![a-z])",
        r"(?<![a-z])(?:cached|reused)\s(?:share|part|fraction)(?:\sof\s(?:the\s)?(?:inputs?|prompts?|tokens))?(?![a-z])",
        r"(?<![a-z])shared\sprefix(?:es)?(?![a-z])",
        rf"(?<![a-z])(?:prompts?|inputs?|tokens|prefix(?:es)?)\s(?:tokens\s)?{_CACHED}(?![a-z])",
        r"(?<![a-z])(?:(?:is|are)\s(?:already\s)?)?cached(?![a-z])",
        r"(?:前缀)?缓存(?:的)?命中率?|前缀(?:缓存|复用|命中)率?|命中率",
    ),
    "memory": (
        r"(?<![a-z])(?:gpu|device|hbm)?[\s_\-]?(?:v?ram|mem(?:ory)?)[\s_\-]"
        r"(?:utili[sz]ation|usage|fraction|util|use|cap|limit|ratio)(?:[\s_\-]static)?(?![a-z])",
        r"(?<![a-z])(?:of\s)?(?:(?:the|its|their|each|every|gpu|gpu's|device|card|card's|total|available)\s){0,4}"
        r"(?<!out of )(?:memory|vram|hbm)(?![a-z])",
        r"的?(?:显存|内存)的?(?:利用率|使用率|占用率?|使用比例|使用|比例|上限)?",
    ),
    "rate": (
        r"(?<![a-z])(?:qps|rps|(?:request|arrival)[\s_\-]rates?|requests?[\s_]per[\s_]second)(?![a-z])",
        r"请求(?:速率|率)|每秒请求数?",
    ),
    "concurrency": (
        rf"(?<![a-z])(?:prompts?|queries)\s{_TOGETHER}(?![a-z])",
        rf"(?<![a-z])(?:{_TOGETHER}|cc?(?=\s?[=:]\s?\d)|"
        r"outstanding(?:\s(?:requests|calls|queries|prompts))?(?=\s?[:=]?\s?\d)|(?<=\d\s)outstanding\s(?:requests|calls|queries|prompts)|parallel\srequests|waiting\s(?:for|on)\s(?:an|the|their|its)\s(?:answer|reply|response)s?|(?<=\d\s)(?:in\s)?parallel(?=\s?(?:[,.;)/|\n]|$))|batch(?:es)?(?![\s\-](?:jobs?|processing|inference|runs?|work|mode|windows?|pipelines?|teams?|groups?|services?|queues?|clusters?|people)(?![a-z]))(?:[\s_\-]?(?:sizes?|of))?|bsz?|(?<!per\s)(?<!per-)(?<!each\s)(?<!every\s)(?<!single\s)users?|num[_\s]requests)(?![a-z])",
        r"等(?:着|待)?(?:回[答复]|答[复案]|结果|生成)|(?:并发|在[飞途])(?:数|量|度|请求数?|用户数?|路数)?|(?<!跑)(?<!离线)批(?:量)?(?:大小|次|处理大小)?(?![了准复])|用户数|(?:同时|一起)(?:在线|处理|服务|[使]?用|提问)?|一次(?:同时)?处理|(?<=[个路])\s?(?:agent|请求|任务|会话|用户|线程)\s?并行",
    ),
    "context": (
        r"(?<![a-z])(?:max[\s_\-])?(?:context|ctx)(?:[\s_\-](?:lengths?|len|windows?|sizes?|tokens))?s?(?![a-z])",
        r"(?<![a-z])(?:seq(?:uence)?[\s_\-]?len(?:gths?)?|max[\s_\-]?model[\s_\-]?len)(?![a-z])",
        r"上下文(?:长度|窗口)?|序列长度",
        r"(?<![a-z])requests?\s(?:(?:may|can|could|might|will)\s)?(?:be|get|grow|become|reach)\s(?:as\slong\sas|up\sto|at\smost)(?=\s\d)",
    ),
    "input": (
        rf"(?<![a-z])(?:(?:avg_)?isl|inputs?{_LENGTH}|prompts?{_LENGTH}|prefill[\s_\-](?:lengths?|tokens?|size)|"
        r"(?<!parallel\s)(?<!concurrent\s)(?<!simultaneous\s)(?:questions?|documents?|docs|articles?)(?!\sper\s))(?![a-z])",
        r"(?<![a-z])in(?=\s?[:=]?\s?\d[\dk,.]*\s?(?:tokens?)?\s?[,/;]?\s?(?:and\s)?out)",
        r"(?<![a-z])in(?=\s?[:=]|\s?/\s?out)",
        r"(?<![\u4e00-\u9fff])入(?=\s?\d[\dk,.]*\s?(?:tokens?)?\s?[,/;]?\s?出)",
        rf"{_AFTER_NUMBER}in(?![a-z]){_IN_FOLLOWED}",
        rf"{_AFTER_NUMBER}(?:(?:in\s)?entry|(?:com(?:ing|es?)|going|goes)\sin)(?![a-z])",
        r"(?<![a-z])(?:produced|generated|written|made|built|derived|drawn\sup)\sfrom(?=\s(?:some\s|about\s|around\s|roughly\s|~\s?)?\d)",
        r"(?<![a-z])(?:reads?|ingests?|takes\sin|is\sfed|consumes)(?=\s(?:about\s|some\s|around\s|roughly\s|~\s?)?\d[\d,.]{0,9}\s?k?\s?tok)",
        r"(?<=tokens\s)(?:in)?to\s(?:the\s|our\s)?(?:model|llm)(?![a-z])",
        r"(?<=tokens\s)up(?=\s?(?:[,.;)\n]|$|and(?![a-z])))",
        r"(?<![a-z])source\s(?:tokens|text|segments?|sentences?|documents?)(?![a-z])",
        rf"{_AFTER_NUMBER}[进入](?![行程口])|进来(?=\s?(?:大?约|大概)?\d)",
        r"输入的?(?:序列|文本|prompt)?的?(?:长度|token数?)?|提示词?(?:长度)?|问题|提问|入参(?:长度)?|文档(?:长度)?",
    ),
    "output": (
        rf"(?<![a-z])(?:(?:avg_)?osl|outputs?{_LENGTH}|completions?{_LENGTH}|gen(?:erat(?:e|es|ed|ing|ions?))?{_LENGTH}|"
        rf"responses?(?!\stime){_LENGTH}|repl(?:y|ies){_LENGTH}|answers?{_LENGTH}|decode[\s_\-](?:lengths?|tokens?)|"
        r"(?:max[\s_\-]?)?new[\s_\-]tokens|max[\s_\-]?tokens(?!\s?/)|(?:get|gets|getting|got|come|comes|sent|sends?|gives?|writes?|answers?)\sback|(?:comes?|go(?:es)?)\sout\s(?:at|with)|(?:spits?|emits?|produces?|outputs?|says?|speaks?|utters?)(?:\s(?:out|back))?(?=\s(?:about\s|around\s|roughly\s|some\s|~\s?)?\d[\d,.k]{0,8}\s?tok)|summar(?:y|ies)|results?(?=\s?[:=]?\s?\d)|minutes(?=\sof\s(?:about\s)?\d[\d,k]{0,9}[\s\-]tokens?)|abstracts?|digests?|translations?|headlines?|captions?|teasers?|snippets?|blurbs?|(?:re)?drafts?|labels?|tags?|feedback|verdicts?|explanations?|receiv(?:e|es|ing)|return(?:s|ed|ing)|emit(?:s|ted|ting)?|writ(?:es|ing)|produc(?:e|es|ing)|yield(?:s|ing)?)(?![a-z])",
        rf"{_AFTER_NUMBER}out(?![a-z])(?!\s?of(?![a-z]))",
        r"(?<=tokens\s)(?:back\s)?from\s(?:the\s|our\s)?(?:model|llm)(?![a-z])",
        r"(?<=tokens\s)down(?=\s?(?:[,.;)\n]|$|and(?![a-z])))",
        r"(?<![a-z])target\s(?:tokens|text|segments?|sentences?)(?![a-z])",
        r"(?<=[\dkns,/;\s])出(?=\s?\d)",
        r"(?<![a-z])out(?=\s?[:=]?\s?\d)",
        rf"{_AFTER_NUMBER}(?:back(?!-|\sthen|\sin\s)|(?:com(?:ing|es?)|going|goes)\s(?:back\s)?out|(?:of\s)?(?:reasoning|thinking)|(?:in\s)?exit)(?![a-z])",
        rf"{_AFTER_NUMBER}出(?![现错字口])|出去(?=\s?(?:大?约|大概)?\d)",
        r"(?<!等模型)(?<!等着模型)(?<!等待模型)输出的?(?:序列|文本)?的?(?:长度|token数?)?|(?<!在)(?<!正)生成(?!的?(?:请求|用户|会话|对话|连接|任务|人))的?(?:长度|内容)?|(?<![等人])(?:回复|回答)(?:长度)?|(?<!等)答案|产出|出参(?:长度)?",
        r"(?:摘要|总结|纪要|译文|评语|点评|批注)(?:长度)?(?=[\s:为约是大概在]{0,4}\d)|(?<=token)\s?的?\s?(?:摘要|总结|纪要|译文|评语|点评|批注)",
    ),
    "throughput": (
        r"(?<![a-z])(?:throughput|tps|(?:tokens?|toks?)\s?(?:/|per)\s?s(?:ec(?:ond)?)?)(?![a-z/])" + _RATE_FOLLOWS,
        r"吞吐(?:量|率)?" + _RATE_FOLLOWS,
    ),
    "prefill": (r"(?<![a-z])prefill(?:ing|s)?(?![a-z])|预填充",),
    "decode": (r"(?<![a-z])decod(?:e|es|ing)(?![a-z])|解码",),
    "tokens_of": (
        r"(?<![a-z])(?:requests?|sequences?|messages?|conversations?|chats?|contracts?|emails?|tickets?|pages)\s"
        r"(?:of|are|is|with|have|has|averag\w{1,4})(?![a-z])",
        rf"(?<=token\s)(?:(?!of|for|to|from|about|per|and|with|in|out|or|on)[a-z]{{3,12}}\s)?{READ_MATTER}",
        rf"(?<![a-z]){READ_MATTER}\s(?:of|with|have|has|runs?|rang(?:e|es|ing)|var(?:y|ies)|go(?:es)?|averag\w{{1,4}})(?=\s(?:(?:about|around|some|up|to|roughly|anywhere|from|between)\s){{0,3}}\d)",
        rf"(?<![a-z]){READ_MATTER}\s(?:sent\salong|included|attached|extracts?|excerpts?|so\sfar)(?=\s?[:=]\s?\d)",
        rf"{_READ_MATTER_CHINESE}(?:长度)?",
        r"(?<=tokens\sof\s)(?:history|context|text|code|chat|conversation|background|retrieved|source)(?![a-z])",
    ),
    "ttft": (
        rf"(?<![a-z])(?:ttft(?:[\s_\-]?ms)?(?:_max)?|time[\s\-]to[\s\-]first[\s\-]token)(?![a-z]){_FIGURE_FOLLOWS}",
    ),
    "tpot": (
        r"(?<![a-z])(?:tpot(?:[\s_\-]?ms)?(?:_max)?|itl(?:[\s_\-]?ms)?|time[\s\-]per[\s\-]output[\s\-]token)(?![a-z])"
        + _FIGURE_FOLLOWS,
    ),
}

ROLE = Gated("|".join(f"(?P<{name}>{'|'.join(parts)})" for name, parts in _ROLES.items()))
# An engine's setting for the longest sequence.
MOST_OF_ENGINE = Gated(r"max[\s_\-]?model[\s_\-]?len")
# Words that make a context an upper bound.
MOST_CONTEXT = Gated(
    r"(?<![a-z])(?:max(?:imum)?|window|limit(?:ed)?|capped|cap|up\sto|at\smost|as\slong\sas|longest|model[\s_\-]?len)|最[大长多]|窗口|上限"
)
FOLLOWS = Gated(rf"{_AFTER_NUMBER}(?:in|out|back|[进入出])(?![a-z])")
LENGTHS = frozenset({"input", "output", "context"})
# Texts that are written about something that is read; "output" alone may be about anything.
WRITING = Gated(
    r"summar|abstract|answer|repl|respon|digest|translat|headline|caption|label|draft|摘要|总结|纪要|回答|回复|译文|评语|点评",
)
# Behind a word for a text that is written: "(summaries) of 100k-token reports", "(总结)6万token的报告".
OF_READ_MATTER = Gated(
    rf"\s(?:of|from|for|about|on|over|to)\s(?:(?:each|every|the|our|one|a|an|its|long|whole)\s){{0,2}}(?P<n>\d[\d,.]{{0,12}}k?)[\s\-](?:tokens?|toks?)\s"
    rf"(?:(?!of|for|to|from|about|per|and|with|in|out|or|on)[a-z]{{3,12}}\s)?{READ_MATTER}"
    rf"|\s?(?P<n2>\d[\d,.]{{0,12}}\s?[k万千]?)\s?(?:个\s?)?(?:tokens?|词元)\s?的\s?(?:文档|{_READ_MATTER_CHINESE})",
)
HEADROOM = Gated(
    r"(?<![a-z])(?:leav(?:e|ing)|reserv(?:e|ing)|spare|headroom|free|unused|set\saside|keep(?:ing)?(?=\s[^.;\n]{0,60}\sfor\s(?:the\s)?(?:driver|fragment|other|safety|headroom|os(?![a-z])|system|cuda|display|monitor|overhead|buffers?)))(?![a-z])|预留|保留|留出?|空出|余量|空闲",
)
PEAK = Gated(
    r"(?<![a-z])(?:(?<!off\s)(?<!off-)peak(?:s|ing)?|max(?:imum|imal)?|at\s(?:the\s)?most|(?:never|no)\smore\sthan|up\sto|capped|bursts?|spikes?|worst\scase|at\s(?:the\s|its\s)?worst|longest|largest|(?:hardly|rarely|seldom|barely|never|not)\s(?:ever\s)?(?:go(?:es)?\s|get\s|run\s|grow\s)?(?:over|above|beyond|past|exceed(?:s|ing)?|longer\sthan|more\sthan)|rush|surges?|p\s?9[059])(?![a-z])"
    r"|峰值|高峰|大促|冲到|最大|最高|最多|最长|顶峰|上限|至多",
)
USUAL = Gated(
    r"(?<![a-z])(?:off[\s\-]peak|typical(?:ly)?|usual(?:ly)?|most(?:ly|\soften)|mainly|on\saverage|average[sd]?|averaging|avg|(?<!i\s)mean|normal(?:ly)?|median|steady(?:\sstate)?|quiet)(?![a-z])|稳态|常态|平峰|通常|一般|平均|典型|日常|平时|均值|多数",
)
LOWEST = Gated(r"(?<![a-z])(?:min(?:imum|imal)?|at\sleast|shortest|smallest|from)(?![a-z])|最小|最短|最少|至少")
OF_SPREAD = Gated(f"{PEAK.pattern}|{USUAL.pattern}|{LOWEST.pattern}")
AT_PEAK = Gated(r"\s(?:at|in|during)\s(?:the\s)?peaks?(?:[\s\-](?:times?|hours?|load|traffic))?(?![a-z])")
_WHEN = (
    r"at\s(?:the\s|its\s)?worst|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:day|end)s?|nights?|overnight|day(?:time)?s?|(?:after)?noons?|mornings?|"
    r"evenings?|lunch(?:time)?|(?:office|business|working|rush|peak|quiet)\shours|holidays?|otherwise|off[\s\-]peak|bus(?:y|iest)|"
    r"quiet(?:est|er)?|slow(?:est|er)?|calm|(?:summer|winter|high|low)\sseason"
)
_HOUR_CHINESE = "白天|夜[里间晚]|晚上|早上|上午|下午|中午|高峰期?|闲时|忙时"
_WHEN_CHINESE = rf"{_HOUR_CHINESE}|周[末一二三四五六日]|工作日|节假日|其余|其[它他]|淡季|旺季"
WHEN = Gated(rf"(?<![a-z])(?:{_WHEN})(?![a-z])|{_WHEN_CHINESE}")
"""When something comes."""
AT_OTHER_TIMES = Gated(
    r"(?<![a-z])(?:otherwise|(?:at\s|by\s|during\s(?:the\s)?)?nights?|overnight|off[\s\-]peak|quiet(?:er|est)?|calm|slow(?:er|est)?|weekends?|"
    r"(?:the\s)?rest\sof\s(?:the|each|every)\s(?:day|time|week|year)|outside\s(?:of\s)?(?:it|that|those|them|these|(?:the\s)?(?:[a-z]{4,10}\s)?(?:peaks?|hours?|times?|weeks?|seasons?|term|crunch|exams?|shifts?)))(?![a-z])|"
    r"夜[里间晚]|凌晨|其[余他它]时[间段候]|低峰|淡季",
)
"""When less comes than at another time that is named."""
_HOUR_OF_DAY = r"\d{1,2}(?::[0-5]\d)?\s?(?:[ap]\.?m\.?|h|o'clock|[点时])?"
_CLOCK = (
    rf"(?<![A-Za-z0-9.:])(?:(?:from|between)\s)?{_HOUR_OF_DAY}\s?(?:-|to|and|until|till|[到至])\s?{_HOUR_OF_DAY}"
    r"(?![A-Za-z0-9.:%])"
)
OF_TIME = Gated(
    rf"(?<![a-z])(?:{_WHEN}|hours?|times?|periods?|outside|during|ordinary|regular|usual|rest|other|else|when|then|but|and|so|over|"
    rf"across|down|drops?|falls?|climbs?|jumps?|reach(?:es)?|goes|rises?|up|traffic|load|requests?|calls)(?![a-z])|{_CLOCK}|{_WHEN_CHINESE}|时段?|个?请求|[能会要可][以能]?[到达上]",
)
"""Words of when something comes, and those of no weight beside them."""
AGREED = Gated(
    r"(?<![a-z])(?:(?:settl(?:ed|ing)|agreed|decided|landed|compromis(?:ed|ing)|ended\sup|signed\soff|converged)\s(?:up)?(?:on|at|with|for)\s"
    r"(?:(?:an?|the|about|some|figure|number|value|of|planning|sizing|peak)\s){0,4}|"
    r"(?:agreed|final|binding|planning|sizing|design|contractual)\s(?:figure|number|value|target|load)\s?(?:is|was|:|of)\s?)$"
    r"|(?:so\sthat(?:'s|\smakes|\sis)|makes\sit|comes\sto)\s(?:(?:about|around)\s)?$|(?:那就是|也就是|就是说|等于说?|合起来是)\s?$|(?:商定|说定|敲定|最后定|最终定|定)(?:为|在|了|成|的是)?\s?$",
)
"""Before a number of the load: it was agreed on, whatever others are named."""
SIZED_FOR = Gated(
    r"(?<![a-z])(?:plan|siz(?:e|ing)|dimension|design|provision)(?:\sit|\sthis)?\s(?:for|with|on)\s(?:(?:the|about|some)\s)?$|按(?:照)?\s?$",
)
"""Before a bare number of the load: it is the one to plan for."""
ENDS_FIGURE = Gated(
    r"\s?(?:[,.;:!?)\n]|$|(?:to\s(?:plan|size|start|begin)|for\s(?:the\s)?(?:plan|sizing|now|this|planning)|as\s(?:the|a|our)|and|but|instead|then)(?![a-z])|吧|来|为准|规划)",
)
"""Behind a bare number that counts nothing of its own."""
# A number of people or requests that nobody can plan for.
VAGUE = Gated(
    r"(?<![a-z])(?:(?:tens|dozens|scores|hundreds|thousands|lots)\sof|several(?:\s(?:dozen|hundred|thousand))?|(?<!how\s)many|a\s(?:few|lot\sof)"
    r"(?:\s(?:dozen|hundred|thousand))?)\s(?:concurrent\s|simultaneous\s|parallel\s|active\s)?(?:users|requests|people|clients|sessions|chats|"
    r"customers|callers|employees|students)(?![a-z])|(?:几|数|上)[十百千万]+个?(?:人|用户|并发|请求|路)",
)
WORK = Gated(
    r"[^\S\n](?:(?!(?:from|for|the|with|per|our|and|out|each|into|about|are)[^\S\n])[a-z]{3,12}[^\S\n]){0,2}(?:documents|docs|records|rows|articles|(?:e-?)?mails|tickets|items|images|samples|reviews|files|pages|"
    r"conversations|transcripts|papers|abstracts|posts|tweets|descriptions|listings|entries|comments|headlines|products|profiles|essays|letters|forms|invoices|contracts|questions|calls|reports|messages|claims|notes|cases|logs|drafts|summaries|translations)(?![a-z])|"
    r"[^\S\n][a-z]{3,16}s\sto\s(?:grade|mark|score|translate|process|classify|review|summari[sz]e|label|annotate|judge|check|tag|extract|convert|redact|screen)(?![a-z])|"
    r"[^\S\n][a-z\-]{3,16}s\s(?:(?:(?:have|need|are)\sto|must|should|will)\sbe\s[a-z\-]{4,14}(?:ed|t|n)|need\s[a-z]{4,14}ing)(?![a-z])",
)
WORK_BEFORE = Gated(
    r"(?<![a-z])(?:to|must|will|should)\s(?:grade|mark|score|translate|process|classify|review|summari[sz]e|label|annotate|judge|code|tag|convert|redact|screen)\s(?:(?:about|some|around|roughly|all|the|our|these|those)\s){0,3}$"
)
"""Before a number: so many of something are to be worked on."""
WORK_CHINESE = re.compile(r"\s?[条篇份封段](?!\s?(?:[/每]|请求|并发))")
"""Behind a large number, in Chinese."""
FACTOR = Gated(
    r"(?:\s?|-)(?:fold|times(?!\s(?:an?|per|each|every|in)\s)|倍)(?![a-z])|\s?x(?=\s(?:as|more|the|that|of|our|today|what|current|normal|now)(?![a-z]))",
)
"""Behind a number: it multiplies something ("4 times today's"), and counts nothing itself."""
DURATION = Gated(r"[\s\-]?(?:hours?|hrs?|days?|weeks?|months?|years?|minutes?)(?![a-z])")
"""Behind a number: it is a span of time."""
CALLS = Gated(
    r" (?:(?:api|chat|user|customer|logged) )?(?:calls|requests|queries|messages|chats|turns|sessions|"
    r"days|weeks|months|hours)(?![a-z])(?!\s?[:=|]?\s?\d)|"
    r"\s?[个次条](?:请求|调用|消息|会话|对话)",
)
"""Behind a number: it counts what comes in, or time, and is no length."""
LOGGED = Gated(r"(?<![a-z])(?:logs?|traces?|traffic|history|records)\s?\([^()\n]{0,20}$|日志\s?\([^()\n]{0,8}$")
"""Before a number of requests: so many were recorded, at whatever time."""
_BIN = r"\d{1,2}\s?%\s(?:(?:are|is|at|near|around|about|have|of|with)\s){1,2}\d[\d,.]*k?(?:\stokens)?"
# "60% near 1k, 40% near 8k": no single length is usual.
BINS = Gated(rf"(?<![\d.]){_BIN}(?:,?\s(?:and\s)?{_BIN})+")
TOGETHER = Gated(
    rf"(?<![a-z])(?:{_TOGETHER}|parallel|(?<!daily\s)(?<!monthly\s)active|online|live|open|outstanding|pending)(?![a-z])|并发|同时|同一时[刻间]|任[意何一]时[刻间]|一起|在线|在[飞途]|路",
)
"""Beside a number of people or things: they are served together, not only there."""
ACTIVE = Gated(
    r"(?<![a-z])(?:at\sit\s(?:together|at\sonce|at\sthe\ssame\stime)|generating|(?<!daily\s)(?<!monthly\s)active(?:ly)?|busy|waiting|waits?(?=\sfor\s(?:the\s|an?\s)?(?:model|llm|answer|reply|response))|typing|talking|chatting|sending|asking|working|streaming|decoding|running|"
    r"in\s(?:use|the\smiddle\sof)|being\s(?:served|generated|processed|answered|written)|mid-request|(?:request|query|prompt)\s(?:running|open|going|in\sflight))(?![a-z])|真正|正在|在(?:生成|等|问|跑|发)",
)
"""Beside a part of people or sessions: they are served while the others are not."""
OVER_TIME = Gated(
    r"(?<![a-z])(?:in|during|over|within|per|at|on)\s(?:the|an?|any|one|our|each|every)\s(?:(?:busiest|peak|rush|worst|single|same|given|busy)\s)?"
    r"(?:hours?|days?|shifts?|mornings?|afternoons?|weeks?|times?|months?)(?![a-z])|(?:每天|每日|每小时|一天|一小时|高峰时?段?)[内里]?",
)
"""The time within which people use something, each for a while."""
ASKED_FOR = Gated(
    r"(?<![a-z])(?:requests?|reqs?|quer(?:y|ies)|calls?|prompts?|chats?|messages?|tickets?|documents?|docs|jobs?|questions?|completions?|conversations?|sessions?|turns?|e?-?mails?|reviews?|reports?|summar(?:y|ies)|transcripts?|articles?|records?|rows?|items?|pages?|images?|claims?|cases?|invocations?|tasks?|generations?|translations?|"
    r"hits|lookups?|search(?:es)?|visits?|interactions?|contacts?|letters?|files?|forms?|invoices?|contracts?|suggestions?|answers?|repl(?:y|ies)|drafts?|posts?|comments?|notes?|essays?|papers?|abstracts?|logs?|alerts?|events?|users?|people|uses?|runs?|segments?|sentences?|inferences?)(?![a-z])|请求|[次条份单封篇件通]|对话|问答|会话"
)
"""Things that a model is asked for or about: an amount of them is a load, whatever else is stated."""
OF_NO_LOAD = Gated(
    r"(?<![a-z])(?:was|were|is|are|came\sfrom|comes\sfrom|in|during|from)\s(?:just\s|only\s|mostly\s|all\s)?(?:an?\s|the\s|our\s)?(?:bots?|crawlers?|attacks?|ddos|scrap(?:ers?|ing)|(?:load|stress|smoke|soak)[\s\-]?tests?|test\sruns?|outliers?|flukes?|one[\s\-]?offs?|glitch(?:es)?)(?![a-z])|"
    r"(?:压测|压力测试|爬虫|刷量|攻击|灰度)"
)
"""Beside a figure: it does not come from users."""
TOTAL_BEFORE = Gated(
    r"(?<![a-z])(?:there\sare|there're|we\s(?:are|have|employ)|we're|total\sof|team\sof)\s"
    r"(?:(?:about|some|around|roughly|all)\s)?$|(?:总共|一共|共有?|全部)$",
)
TOTAL_BEHIND = Gated(r"\s?(?:people\s)?(?:in\s(?:total|all)|altogether|all\stold|overall|on\sthe\sbooks)(?![a-z])")
NEVER_ALL = Gated(
    r"(?<![a-z])(?:(?:but\s)?they(?:'re|\sare)?\s)?(?:never|not|rarely|seldom|hardly\sever)\s(?:ever\s)?all\s(?:of\sthem\s)?(?:are\s)?"
    r"(?:on|online|there|active|in|working|at\s(?:once|work|the\ssame\stime)|together|logged\s(?:on|in)|connected|here)(?![a-z])",
)
POPULATION = Gated(
    r"(?<![a-z])(?:(?:bank|compan(?:y|ies)|firm|hospital|universit(?:y|ies)|school|college|agency|ministry|city|organi[sz]ation|insurer|"
    r"retailer|business|enterprise|institute|factory)\s(?:with|of|has|having|employs|employing)|licen[sc]ed|registered|enrol+ed|subscribed|on\sthe\s(?:books|payroll)|head[\s\-]?count|accounts?|seats|daus?|daily\sactive\susers)(?![a-z])|注册|账[号户]|员工|全[校体]",
)
NO_PREFIX_CACHE = Gated(r"(?:no|without|disable)\s(?:any\s)?prefix[\s\-]cach(?:e|ing)|(?:不用|没有|无|关闭)前缀缓存")
_FACTOR = r"(\d{1,6}(?:\.\d{1,6})?)(?![\d.]*\s?%)\s?"
_HOT_RANK = r"(?:hottest|busiest|slowest)\sexpert(?:[\s\-](?:ranks?|groups?|gpus?|devices?|cards?))?"
# How much the busiest experts get: "expert imbalance of 1.4", "the hottest expert rank gets 1.4 times the mean".
EXPERT_IMBALANCE = Gated(
    r"(?<![a-z])(?:moe|experts?)[\s\-](?:(?:load|parallel|routing)[\s\-])?im[\s\-]?balance(?:\s(?:factor|ratio))?\s?"
    rf"(?:(?:of|is|at|about|around|[:=≈])\s?){{0,2}}{_FACTOR}(?:x|×|times)?(?!\w)"
    rf"|(?<![a-z]){_HOT_RANK}\s(?:(?:gets|has|takes|carries|is|sees|at|about|around|receives)\s){{0,2}}{_FACTOR}"
    r"(?:x|×|times)\s(?:(?:the|its)\s)?(?:mean|average|fair\sshare)(?:\sload)?(?![a-z])"
    rf"|专家的?(?:负载)?的?不(?:均衡|平衡|均)(?:度|系数|因子|率|比)?\s?(?:为|是|约|大约|[:=：])?\s?{_FACTOR}倍?"
    rf"|最[热忙]的?专家(?:组|卡)?的?(?:负载)?(?:是|为|约)?(?:平均|均值)(?:值|负载)?的\s?{_FACTOR}倍",
)
ONE_AT_A_TIME = Gated(
    r"(?<![a-z])(?:(?:never|no|not)\smore\sthan\s(?:one|1|a\ssingle)\s(?:(?:open|active|single|concurrent)\s)?(?:request|call|query|prompt|chat|user|session)(?!s)|strictly\ssequential(?:ly)?|single[\s\-](?:stream|user|request)(?!\s(?:speed|latency|throughput|decode|tok|rate|performance|tpot|itl|inter))|(?:it'?s\s)?(?:just|only)\s(?:me|myself)(?!\sand)|(?:only|just)\sfor\s(?:me|myself)|one\s(?:(?!tokens?|words?|steps?|layers?|stages?|gpus?|cards?|nodes?|models?|replicas?|servers?|machines?|box|instances?|out|down|off)[a-z]{2,14}\s)?at\s(?:a|the\ssame)\stime)(?![a-z])|单(?:路)?并发|单请求|单流|(?:就|只有)我(?:自己|一个人?)?(?:一个人|自己)?(?:用|使用)?|(?:我自己|我个人)(?:用|使用)|单用户(?!\s?(?:的|生成|输出|解码|速度|延迟|时延|每秒|体验|吞吐|tps|tpot|至少|不低于))|一次(?:只)?(?:处理)?一个请求",
)
# "Rolling upgrades, one out at a time": no load.
ONE_OUT = Gated(
    r"(?<![a-z])one\s(?:replicas?|servers?|machines?|node|box|instances?|copy|gpu|card|out|down|off)\s(?:(?:(?:may|might|can|could|will|is|be|goes|go|taken|drained|restarted|upgraded|out|down|off)\s){0,4})at\sa\stime(?![a-z])",
)
CALENDAR = Gated(
    r"(?<![\d.,])[0-3]?\d(?:st|nd|rd|th)?\s(?:of\s)?(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}(?![a-z])|"
    r"24\s?/\s?7|(?<!\d)365(?!\d)|(?<![\d\-/.])(?:19|20)\d\d([\-/.])(?:0?[1-9]|1[0-2])\1(?:[0-2]?\d|3[01])(?![\d\-/.])|"
    r"双\s?1[12](?!\d)|618(?=大促|当天|期间|活动|[会的要到])|(?:19|20)\d\d年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|(?<!\d)\d{1,2}月\d{1,2}[日号]|(?<![\d.])[0-3]?\d[日号](?=上线|发布|开始|割接|之?[前后]|起|要|会|就)",
    flags=0,
)
"""Figures of the calendar that are no quantity of the load."""
