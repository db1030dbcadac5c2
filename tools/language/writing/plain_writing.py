"""Colloquial figures and wordings, in the form that the patterns of figures know: "15 lakh", "七八千", "万兆".

It changes the writing and reads nothing.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER, chinese_value
from ..patterns.quantities import read_number
from ..patterns.rewriting import Rewriting, rewritten
from . import plain_hardware, plain_layouts, plain_loads

# "gpus=16xH100 nodes=2 qps=2 goal=max_throughput": keys with values in a row, each a statement of its own.
_KEY = r"[a-z][a-z\d_\-]{0,30} ?(?:[<>]=|[≤≥]|=(?!=)) ?(?=\S)"
_NEXT_KEY = Gated(rf"(?<=[^\s,;:|]) +(?={_KEY})")
_KEYS = Gated(rf"(?<!\w){_KEY}")
_FEWEST_KEYS = 3
# "--isl 6144 --osl 512": flags with values in a row are keys too.
_FLAG = Gated(r"(?<!\S)--(?P<key>[a-z][a-z\d]*(?:[\-_][a-z\d]+){0,5})(?:\s?=\s?|\s)(?=[^\s\-])")
_FEWEST_FLAGS = 2
_SNAKE = Gated(r"(?<=[=])[a-z]{2,12}(?:_[a-z]{2,12}){1,3}(?![\w/.\-])")
# "ca. 600 tokens", "max. 2 replicas": no sentence ends there.
_CIRCA = Gated(r"(?<![a-z.])(?:ca|approx|circa)\.\s?(?=\d)")
_BOUND = Gated(r"(?<![a-z.])(max|min)\.\s?(?=\d)")
# "4-bit is out of the question": nothing that comes out.
_OUT_OF = Gated(r"(?<![a-z])(?<![,;.]\s)out\sof\s(?:the\s)?(?:question|scope|bounds|the\srunning)(?![a-z]|\s?:)")
_ON_THE_OTHER_HAND = Gated(r",\s(?:on\sthe\sother\shand|however|though|by\scontrast|of\scourse|in\sturn),\s")
# "TPOT can be relaxed to 80 ms", "TPOT 可以放宽到 80ms".
_RELAXED = Gated(
    r"(?<![,;:。.\s\dkK万千])(?:\s(?:can|may|could)\s(?:now\s)?be\s(?:relaxed|loosened|raised|tightened|lowered|widened)\sto\s(?=\d)|\s?(?:可以?|能|已)?(?:放宽|放松|收紧|调整)(?:到|成|为|至)\s?(?=\d))"
)
# "yo, got 3 nodes": the writer has them; "the trainer got 3 nodes" says who else.
_GOT = Gated(
    r"(?:^|(?<=[.;!?,]\s)|(?<=\n))(?:(?:yo|hi|hey|hello|ok(?:ay)?|so|well),?\s)?got\s(?=(?:\d|an?|one|two|three|four|five|six|eight|some|access)(?![a-z]))"
)
_DO_NOT_EXCEED = Gated(r"[别勿](?=(?:超过?|多于|大于|高于|低于|少于))")
_OF_EM = Gated(r"(?<![a-z])of\s'?em(?![a-z])")
# "8x H100 each but one of them has to stay idle": a clause of its own, and no "each but one".
_BUT_ONE = Gated(
    r"(?<=[a-z\d)])\sbut\s(?=(?:one|two|three|\d)\sof\s(?:them|those|these)\s(?:has|have|is|are|must|needs?|stays?|will|can)(?![a-z]))"
)
_ONE_AND_SAME = Gated(r"(?<![a-z])one\sand\sthe\ssame(?![a-z])")
# "1-year reserved": for how long a price holds.
_TERM = Gated(
    r",?\s(?:\d|one|three)[\s\-]?(?:years?|yr)\s(?:reserved|commit(?:ment|ted)?|savings\splan)(?:\s(?:pric(?:e|ing)|rate|instances?))?(?![a-z])"
)
# Versions of other software: no quantity of a plan.
_SOFTWARE = Gated(
    r"(?<![a-z])(?:ubuntu|debian|rhel|centos|rocky(?:\slinux)?|sles|windows(?:\sserver)?|cuda|cudnn|nccl|rocm|driver|python|py?torch|linux|kernel|docker|kubernetes|k8s|helm|slurm|ansible|terraform)\s?(?:version\s|v)?\d{1,4}(?:\.\d{1,3}){0,3}(?![\w%]|\s?(?:gb|gpus?|nodes?|ms|s|tokens?)(?![a-z]))",
)
# "Kimi K2 Thinking-style traffic": no model that is planned.
_STYLE = Gated(
    r"(?<![\w])[A-Z][A-Za-z0-9.]*(?:[ \-][A-Z0-9][A-Za-z0-9.]*){0,3}-(?:style|like|class|level|grade)(?=\s[a-z])",
    flags=0,
)
# "20 张发票", "6 台打印机", "20 块钱": the measure words of cards and machines, of other things.
_OTHER_THINGS = Gated(
    r"(?P<n>(?<![A-Za-z\d.])\d{1,6}|[一二两三四五六七八九十百]{1,3})\s?(?:张(?=发票|表|报表|图|照片|截图|订?单|车?票|纸|海报|桌|床|名片|证)|"
    r"块(?=钱|硬盘|屏|地|区域|业务|内容|ssd|盘|电池)|台(?=打印机|电脑|机器人|手机|平板|终端|摄像|空调|设备|车|电视|笔记本|机柜|交换机|路由器|机床|收银|录音))"
)
# "512 concurrency highest tok/s": a wish behind a figure is a statement of its own.
_WISH_BEHIND = Gated(
    r"(?<=[a-z])\s(?=(?:highest|max(?:imum|imi[sz]e)?|best|most)\s(?:tok(?:en)?s?(?:/s|\sper\ssecond)|throughput)(?![a-z]))"
)
# "It isn't pipeline parallelism that we can't do": a double denial demands nothing.
_TWICE_DENIED = Gated(
    r"(?<![a-z])(?:it|that)\s(?:isn't|is\snot|wasn't)\s[a-z][a-z\s\-]{2,40}\sthat\s(?:we|i|they|you)\s(?:can't|cannot|don't|won't|mustn't|may\snot|shouldn't)\s[a-z]{2,10}(?![a-z])"
)
# "half a k out"
_HALF_A_K = Gated(r"(?<![\w.])half\sa\s(?:k|thousand)(?![a-z])")
# "two and a half thousand tokens", "one and a half times"
_AND_A_HALF = Gated(
    r"(?<![a-z])(one|two|three|four|five|six|seven|eight|nine|ten)\sand\sa\shalf(?:\s(thousand|million))?(?![a-z])"
)
# "a couple of thousand tokens"
_COUPLE_OF_THOUSAND = Gated(r"(?<![a-z])a\scouple(?:\sof)?\s(?=(?:hundred|thousand|million)(?![a-z]))")
# "nine answers out of ten": the share first, then of what.
_OUT_OF_SO_MANY = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?P<what>answers|replies|responses|requests|calls|queries|users|people|[a-z]{{4,12}}s)\s(?:out\sof|in)\s(?:every\s)?(?P<all>a\shundred|ten|100|10|20|twenty)(?![\w.,]*\d|[a-z]|\s(?:[a-z]+s)(?![a-z]))"
)
# "15 lakh", "1.2 crore".
_SCALES = {"": 1, "thousand": 1000, "million": 10**6}
# "输出512,100并发": two figures, which a comma parts; no thousands are counted so.
_NO_THOUSANDS = Gated(r"((?:输入|输出|进|出)\s?\d{1,3}),(?=\d{3}\s?(?:个|路|的)?\s?(?:并发|用户|请求|QPS|RPS|路))")
# "20 000 prompts", "10 500 in", "OSL 1 200": groups of digits as many countries write them.
_SPACED_GROUPS = Gated(r"(?<![\w.,/-])(?<!\d\s)(?P<first>\d{1,3})(?P<rest>(?:\s\d{3}){1,3})(?![\w.,/]*\d)(?!\s\d)")
_COUNTED_IN_GROUPS = Gated(
    r"\s(?:of\s)?(?:prompts?|tokens?|requests?|employees|users|people|documents|calls|queries|characters|words)(?![a-z])"
)
_SIDE_BEHIND = Gated(r"\s(?:in|out)(?:put)?(?![a-z\-])(?!\s?/)|\s?(?:进|出)")
_SIDE_BEFORE = Gated(
    r"(?:(?<![a-z])(?:inputs?|outputs?|prompts?|answers?|in|out|isl|osl)|输入|输出)\s?(?:[:=]|of|is|are|about|~|约)?\s?$"
)
_COUNT_BEFORE = Gated(
    r"(?:concurren\w*|batch(?:\ssize)?|bs|users|[tpde]p|gpus?|nodes?|并发数?)\s?:\s?$"
)  # "users: 16 512 in"
_FIGURE_ENDS = re.compile(r"\s?(?:[,;)\n。]|$)|\.(?!\d)")
_INDIAN_SCALE = Gated(r"(?<![\w.])(\d{1,6}(?:,\d{2,3})*(?:\.\d{1,4})?)\s?(lakh|lac|crore)s?(?![a-z])")
_INDIAN = {"lakh": 10**5, "lac": 10**5, "crore": 10**7}
# "七八千" is 7,000 to 8,000, "三五百" 300 to 500; "十来个" some ten, "一千多" some thousand.
_ABOUT_CHINESE = Gated(
    r"(?<![零一二两三四五六七八九十百千万亿\d])(?P<a>[一二两三四五六七八九])(?P<b>[二三四五六七八九])(?P<scale>[十百千万]{1,2})(?![一二三四五六七八九\d])"
)
# "两三个": two to three.
_TWO_OR_THREE = re.compile(
    r"(?<![零一二两三四五六七八九十百千万亿第\d])(?P<a>[一二两三四五六七八])(?P<b>[二三四五六七八九])(?P<scale>)(?=[个台张块份套])"
)
_SOME_TEN = re.compile(r"(?<![一二两三四五六七八九十百千万亿\d])十[来多几](?=个)")
_SOME_CHINESE = Gated(
    r"(?<=[十百千万亿\d])(?:来|多|几)(?=\s?[个人路条字次台张万千亿,;。\n]|\s?(?:token|用户|并发|请求))"
)

# "ninety-five percent of the answers", "the ninety ninth percentile", "sixteen-bit weights"
_SPELLED_PERCENT = Gated(rf"(?<![a-z])(?P<n>{ENGLISH_NUMBER})[\s\-]per\s?cent(?![a-z])")
_PERCENTILES = {"fiftieth": "50th", "ninetieth": "90th", "ninety-fifth": "95th", "ninety-ninth": "99th"}
_SPELLED_PERCENTILE = Gated(r"(?<![a-z])(?P<n>fiftieth|ninetieth|ninety[\s\-](?:fifth|ninth))\spercentile(?![a-z])")
_SPELLED_BITS = Gated(r"(?<![a-z])(?P<n>four|eight|sixteen)[\s\-]bits?(?![a-z])")


def in_plain_writing(text: str) -> str:
    """The text with colloquial figures, names and turns as they are written out."""
    if len(_FLAG.findall(text)) >= _FEWEST_FLAGS:
        text = _FLAG.sub(r", \g<key>=", text)
    if len(_KEYS.findall(text)) >= _FEWEST_KEYS:
        text = _SNAKE.sub(lambda match: match.group().replace("_", " "), _NEXT_KEY.sub(", ", text))
    return rewritten(text, _REWRITTEN)


def _in_one_group(match: re.Match[str]) -> str:
    """A number in groups of digits as one; "8 512" may be two figures where neither its size nor a word tells."""
    text, groups = match.string, match["rest"].split()
    is_one = len(groups) > 1 or groups[0] == "000" or _COUNTED_IN_GROUPS.match(text, match.end())
    if not is_one and len(match["first"]) < 3:  # "512 256 in out"
        before = text[max(0, match.start() - 16) : match.start()]
        begins = not before.strip() or (before.rstrip()[-1] in ",;:(~" and not _COUNT_BEFORE.search(before))
        is_one = begins and _SIDE_BEHIND.match(text, match.end())
        is_one = is_one or (_SIDE_BEFORE.search(before) and _FIGURE_ENDS.match(text, match.end()))
    return match["first"] + "".join(groups) if is_one else match.group()


def _as_range(match: re.Match[str]) -> str:
    low, high = (chinese_value(match[end] + match["scale"]) or 0 for end in "ab")
    return f"{low}到{high}" if low < high else match.group()


_WORDS: Rewriting = (
    (_CIRCA, "about "),
    (_BOUND, r"\1 "),
    (_OUT_OF, "not allowed"),
    (_ON_THE_OTHER_HAND, " "),
    (_RELAXED, " of at most "),
    (_GOT, "we have "),
    (_DO_NOT_EXCEED, "不"),
    (_OF_EM, "of them"),
    (_BUT_ONE, ", but "),
    (_ONE_AND_SAME, "the same"),
    (_TERM, ""),
    (_SOFTWARE, lambda match: match.group().split()[0].rstrip("0123456789.")),
    (_STYLE, "such"),
    (_OTHER_THINGS, r"\g<n> 个"),
    (_WISH_BEHIND, ", "),
    (_TWICE_DENIED, ""),
    (_OUT_OF_SO_MANY, r"\g<n> out of \g<all> \g<what>"),
)
_FIGURES: Rewriting = (
    (_SPELLED_PERCENT, lambda match: f"{(read_number(match['n'].lower()) or 1):g} percent"),
    (_SPELLED_PERCENTILE, lambda match: f"{_PERCENTILES[match['n'].lower().replace(' ', '-')]} percentile"),
    (_SPELLED_BITS, lambda match: f"{(read_number(match['n'].lower()) or 1):g}-bit"),
    (_HALF_A_K, "500"),
    (
        _AND_A_HALF,
        lambda match: f"{((read_number(match[1].lower()) or 0) + 0.5) * _SCALES[(match[2] or '').lower()]:g}",
    ),
    (_COUPLE_OF_THOUSAND, "2 "),
    (_NO_THOUSANDS, r"\1, "),
    (_SPACED_GROUPS, _in_one_group),
    (_INDIAN_SCALE, lambda match: f"{float(match[1].replace(',', '')) * _INDIAN[match[2].lower()]:.0f}"),
    (_ABOUT_CHINESE, _as_range),
    (_TWO_OR_THREE, _as_range),
    (_SOME_TEN, "10"),
    (_SOME_CHINESE, ""),
)
_REWRITTEN: Rewriting = (
    *_WORDS,
    *plain_hardware.REWRITTEN,
    *plain_loads.REWRITTEN,
    *plain_layouts.REWRITTEN,
    *_FIGURES,
)
