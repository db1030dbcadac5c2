"""The form of writing that the patterns of readers know; a text is put into it before anything is read.

It changes the writing and reads nothing: widths, dashes and signs, amounts beside keys, times and shares in words.
"""

from __future__ import annotations

import re
import unicodedata

from ..patterns.gated import Gated
from ..patterns.number_words import chinese_value, english_value
from ..patterns.quantities import read_number
from .plain_writing import in_plain_writing
from .spelling import plain_figures, simplified, spoken, visible

# "within a minute": the number that the article stands for.
_ONE_UNIT = Gated(
    r"(?<![a-z])(within|under|below|in|than|least|most|to|sub)[\s\-](?:an?\s|(?<=sub[\s\-]))(minute|second)(?![a-z]|\sand\san?\s|\sor)",
)
# "In the busiest hour there are 1,800 claims".
_BUSY_HOUR = Gated(
    r"(?<![a-z])(?:in|during|at)\s(?:the|our|a|its)\s(?:busiest|peak|rush|worst)\s(hour|minute|second)s?\s[^\d.;:\n]{0,30}?(\d(?:[\d,.]{0,14}\d)?)\s(?!concurrent|simultan|parallel|active|open|online|token|second|minute|gpu|card|user|people|staff|agent|client|session|stream)([a-z]{3,16})(?![a-z])(?!\s(?:per|a|an|each)\s)",
)
# "1,800 requests in the busiest hour"; "requests per minute: 90", as keys of files have it.
_THINGS = (
    r"(?:requests?|reqs?|quer(?:y|ies)|calls|prompts|chats|messages|tickets|documents?|docs|jobs|questions|completions)"
)
_IN_BUSY_HOUR = Gated(
    rf"(?<![\w.])(\d(?:[\d,.]{{0,12}}\d)?k?)\s({_THINGS})\s(?:(?:are|is|get|gets|reach(?:es)?|hits?|arrives?|comes?|goes|go|lands?)\s(?:[a-z'\-]+\s){{0,6}}?)?(?:in|during|at|over|within)\s(?:the|our|a|its|one)\s(?:(?:busiest|peak|rush|worst|single)\s)?"
    r"(hour|minute|second|day)(?![a-z])",
)
# "busiest minute: 1,080 requests", "the busy minute carries 1,080 requests".
_BUSY_KEY = Gated(
    r"(?<![a-z])(?:busiest|busy|peak|rush|worst)\s(hour|minute|second)(?:\s(?:we|they|so\sfar|ever|saw|seen|had|have|yet|alone|by\sitself)){0,5}"
    rf"(?:\s?[:=]\s?|\s(?:has|had|carries|carried|brings|brought|sees|saw|holds|is|was|takes|took|gets|got)\s(?:about\s|some\s|around\s)?)(\d(?:[\d,.]{{0,14}}\d)?k?)\s({_THINGS}|of\sthem)(?![a-z])",
)
_KEYED_RATE = Gated(
    rf"(?<![a-z])({_THINGS}|segments|sentences|pages|images|items|turns|lookups|searches|inferences|generations|arrivals|e-?mails|articles|records|rows|reviews|transcripts|translations|summaries|tasks|utterances|(?:output\s)?tokens?)\s?(?:[\s_](?:per|a)[\s_]|/|\sin\s(?:the\s)?(?:busiest|busy|peak)\s)(s|sec|second|min|minute|h|hour|day)((?:[\s_]per[\s_](?:user|gpu|card))?)"
    r"(?:[\s_]\(?(?:min(?:imum)?|max|peak|avg|mean|total|overall|aggregate|in\stotal|at\sleast|required|target)\)?){0,2}\s?[:=]\s?(?:(?:mean|avg|average|peak)\s)?"
    r"(\d(?:[\d,.]{0,14}\d)?k?)(?![\w%]|[.,]\d|\s?(?:ms|s|tok\w*|toks?/s|rp[sm]|qp[sm]|requests?|reqs?)(?![a-z]))",
)
# "每天请求数: 172800".
_KEYED_CHINESE = Gated(
    r"(每(?:天|小时|分钟|秒))的?(?:请求|调用|到达|提问|问答|咨询|查询|推理|对话|消息)(?:总?[数量]|次数)?\s?[:=]\s?(\d[\d,.]{0,12}\s?[万亿千]?)(?![\w%])"
)
# "1.200 employees": people and requests are counted whole.
_WHOLE_THINGS = Gated(
    r"(?<![\w.,$€])([1-9]\d{0,2})\.(\d{3})(?=\s(?:\w+\s)?(?:employees|users|people|staff|students|customers|agents|clients|"
    r"requests|sessions|seats|documents|doctors|players|subscribers)(?![a-z]))"
)
_OF_ALL = Gated(r"total|overall|aggregate|at\sleast|required|target")
_QUALIFIED_RATE = Gated(r"\sin\s|[\s_](?:peak|max|avg|mean)")
_OF_REQUESTS = Gated(r"requests?|reqs?|quer(?:y|ies)|calls|prompts|completions|(?:output\s)?tokens?")
# "documents: 48000": as many of them.
_KEYED_WORK = Gated(
    r"(?<![a-z_])(documents|docs|records|rows|articles|e-?mails|tickets|reviews|transcripts|invoices|contracts)(?:[\s_](?:total|count))?\s?[:=]\s?"
    r"(\d[\d,]{2,11})(?=\s{0,9}(?:\n|$|#|;))",
)
# "600 calls per 5 minutes", "one document every two seconds".
_FEW = "(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty)"
_IN_SOME_TIME = Gated(
    rf"(?<![\w.])(\d[\d,]{{0,9}}|{_FEW}|its|another|(?:a|one)\snew)\s({_THINGS}|call|prompt|chat|message|ticket|job|question|suggestion|answer|reply|summary|completion|generation|turn|document|request|query)\s"
    rf"(?:per|every|in|over|within|each)\s(?:an?\s)?(\d{{1,3}}|{_FEW})(?:\s(second|minute|hour)s|[\s\-](second|minute|hour)[\s\-](?:buckets?|windows?|intervals?|slots?|slices?|periods?))(?![a-z])",
)
_DISTILLED = Gated(r"R1\s?蒸馏(?:版|后)?的?\s?(?=[A-Za-z])")
# "~~A10G~~": struck out.
_STRUCK_OUT = re.compile(r"~~(?=\S)[^~\n]{1,200}(?<=\S)~~")
# "per 24 h"; "about thousand tokens".
_A_DAY = Gated(r"(?<![a-z])(?:per|every|each|in|a)\s24\s?(?:h|hours?|hrs?)(?![a-z])")
_BARE_SCALE = Gated(r"(?<![a-z])(about|around|roughly|maybe|some|almost|nearly)\s(?=(?:thousand|hundred)\s)")
# "three quarters of a second", "a second and a half", "two and a half seconds".
_PARTS_OF = {
    "half": 0.5,
    "third": 1 / 3,
    "quarter": 0.25,
    "fifth": 0.2,
    "tenth": 0.1,
    "twentieth": 0.05,
    "hundredth": 0.01,
}
_PART_OF_TIME = Gated(
    r"(?<![a-z])(?:(?P<n>\d{1,2}|an?|one|two|three|four|five|six)\s(?P<unit>second\s|minute\s)?and\sa\s(?P<part>half|quarter|third)"
    r"|(?:(?P<m>a|one|two|three)[\s\-])?(?P<part2>half|quarter|third|fifth|tenth|twentieth|hundredth)s?\s(?:of\s)?(?:an?|one))"
    r"(?(unit)(?![a-z])|\s(?P<unit2>sec(?:ond)?|minute)s?(?![a-z]))",
)
# "for 95% of the turns", "nine out of ten requests": the percentile that a limit is meant for.
_SHARE_OF_REQUESTS = Gated(
    r"(?:for|in|on)?\s?(?:at\sleast\s)?(?<![\d.])(?:(?P<digits>50|90|95|99)\s?(?:%|percent)\sof\s(?:all\s|the\s|our\s|these\s){0,2}"
    r"(?:(?:turns|requests|users|calls|cases|queries|prompts|responses|answers|chats|people|callers|customers|clients|sessions|conversations|questions|tickets|documents|docs|letters|e?-?mails|messages|jobs|records|replies|summaries|visitors|readers|items|tokens)(?![a-z])|them(?=[^.;]{0,60}(?:token|word|second|\d\s?m?s)(?![a-z]))|(?=first\stokens?)|"
    r"(?P<things>(?!gpus|cards|nodes|weights|servers)[a-z]{2,14}s(?![a-z])))|"
    r"(?:(?:nine|9)\s(?:times\s|cases\s)?(?:out\sof|in|of)\s(?:every\s)?(?:ten|10)|(?P<of20>(?:19|nineteen)\s(?:times\s|cases\s)?(?:out\sof|in|of)\s(?:every\s)?(?:20|twenty))|(?P<of100>99\s(?:out\sof|in|of)\s(?:every\s)?100)|"
    r"(?P<n100>9[05]|ninety[\s\-]five|ninety)\s(?:times\s|cases\s)?(?:out\sof|in|of)\s(?:every\s)?(?:100|(?:a|one)\shundred))"
    r"(?:\s(?:of\s)?(?:the\s)?(?:turns|requests|users|calls|cases|queries|prompts|people|times))?(?![a-z\d]))|"
    r"(?P<cheng>九成五|九成)(?:的|以上的?)?(?:请求|用户|情况|调用|回答)|一百次(?:里面?|中|当中)?有?(?P<cn>[一五十])次?(?:以内|之内|以下)?(?:都行|都可以|可以|没事|能接受)?(?:不达标|超)?(?=[,;。\n]|$)|"
    r"(?<![\d.])(?P<zh>50|90|95|99)\s?%\s?的?(?=[^,;。\d%]{0,24}\d{1,5}(?:\.\d{1,2})?\s?(?:秒|毫秒|m?s(?![a-z])))",
)
_NEAR = 60
_TIME_NEAR = re.compile(r"\d\s?(?:m?s|milliseconds?|sec(?:ond)?s?|minutes?)(?![a-z])", re.IGNORECASE)
_EXCEPT = {"一": 99, "五": 95, "十": 90}
# "一秒五" is a second and a half.
_DIGITS = "一二三四五六七八九"
_TENTHS = re.compile(rf"([两{_DIGITS}])秒([{_DIGITS}])(?![零〇{_DIGITS}十百千万\d个张台次分])")
# "TTFT (P50/P99): 700 ms / 2 s": each statistic with its figure.
_STATISTIC = (
    r"(?:median|mean|avg|average|typical|normal|usual|peak"
    r"|max(?:imum)?|min(?:imum)?|p\s?\d\d|平均|均值|平时|日常|高峰|峰值)"
)
_LISTED_STATISTICS = Gated(
    rf"(?<![a-z])({_STATISTIC}(?:\s?/\s?{_STATISTIC}){{1,3}})[\s):=|]{{1,4}}(\d[\d,.]{{0,10}}k?(?:\s?/\s?\d[\d,.]{{0,10}}k?){{1,3}})(?![\w/]|\s?m?s(?![a-z]))"
)
_PAIRED_STATISTICS = Gated(
    r"(?<![a-z])(p\s?\d\d)\s?/\s?(p\s?\d\d)([\s):=]{1,4})(\d[\d.]{0,6}\s?m?s?)\s?/\s?(\d[\d.]{0,6}\s?m?s)(?![a-z/])",
)
# "4096/512 tokens in/out"
_PAIRED_LENGTHS = Gated(
    r"(?<![\w./])(\d[\d.,]{0,11}k?)\s{0,3}/\s{0,3}(\d[\d.,]{0,11}k?)\s{0,3}((?:tokens?\s{1,3})?)"
    r"\(?(in(?:put)?|isl)\s?/\s?(out(?:put)?|osl)(?![a-z])\)?",
)
# "tokens in / out per draft (mean): 3,800 / 1,200"
_KEYED_LENGTHS = Gated(
    r"(?<![a-z/])(?:tokens?\s)?\(?(?:in(?:put)?|prompt)(?:\stokens?)?\s?/\s?(?:out(?:put)?|completion|answer)(?:\s(?:tokens?|lengths?))?\)?"
    r"\sper\s[a-z]{3,16}(?:\s?\((?:mean|avg|average|typical|tokens?)\))?\s?[:=]\s?(\d[\d.,]{0,11}k?)\s?/\s?(\d[\d.,]{0,11}k?)(?:\stok(?:en)?s?)?"
    r"(?=\s?(?:[,.;:)(\n]|$))",
)
# "4k1k": input and output.
# "3000 tokens of log and rules in and 400 tokens of JSON out": the words after "of" say nothing of the length.
_LENGTH_OF = Gated(r"(?<=tokens) of (?:[a-z&]{1,16}\s){1,4}(?=(?:in|out)(?![a-z\-])\s?(?:[,.;)/]|and(?![a-z])|$))")
_GLUED_LENGTHS = Gated(r"(?<![A-Za-z0-9.])(\d{1,3}k)(\d{1,3}k)(?![A-Za-z0-9])")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def normalise(text: str) -> str:
    """The text in the form that the patterns read: full-width forms narrowed, white space and dashes made alike.

    Invisible characters are gone, arrows are one arrow, emoji are commas.

    The full-width comma never groups digits, so it gets a space behind it; superscript digits become exponents.
    """
    text = visible(text)
    text = re.sub(r"[⁰¹²³⁴-⁹]{1,4}", lambda m: "^" + m.group().translate(_SUPERSCRIPTS), text)
    text = _WHOLE_THINGS.sub(r"\1\2", text).replace("每日", "每天")
    text = re.sub(r"[①-⑳]", " ", text)  # marks of a list
    text = re.sub(r"(?<=\d)[\u2007\u2009\u202f](?=\d{3}(?!\d))", "", text)  # thin spaces between thousands
    text = re.sub(r"[，、；]", lambda m: {"，": ", ", "、": ", ", "；": "; "}[m.group()], text)
    text = simplified(unicodedata.normalize("NFKC", text))
    text = re.sub(r"[‐‑‒−﹣]", "-", text)
    text = _TENTHS.sub(_with_tenths, text)
    text = _ONE_UNIT.sub(r"\1 1 \2", text.replace("半秒", " 0.5秒"))
    text = _STRUCK_OUT.sub(" ", text)
    text = _BARE_SCALE.sub(r"\1 a ", _A_DAY.sub("per day", text))
    text = _BUSY_HOUR.sub(r"\2 \3 per \1", text)
    text = _IN_BUSY_HOUR.sub(r"\1 \2 per \3", text)
    text = _IN_SOME_TIME.sub(_in_one_unit, text)
    text = with_keyed_amounts(text)
    text = _DISTILLED.sub("R1-Distill-", text)
    text = in_plain_writing(text)
    text = _KEYED_RATE.sub(r"\4 \1 per \2\3", text)
    text = _PART_OF_TIME.sub(_spelled_time, text)
    text = _SHARE_OF_REQUESTS.sub(_percentile, text)
    text = _GLUED_LENGTHS.sub(r"\1/\2", text)
    text = _LENGTH_OF.sub(" ", text)
    text = _KEYED_LENGTHS.sub(r"\1 tokens in / \2 tokens out", text)
    text = _PAIRED_LENGTHS.sub(r"\1 \3\4 / \2 \3\5", text)
    text = with_paired_statistics(text)
    text = re.sub(r"[×✕✖⨯]", "x", text)
    text = re.sub(r"(?<=\d)(gi?b?)x(?=\d{1,4}(?![\w.]))", r"\1 x ", text, flags=re.IGNORECASE)  # "A100 80Gx8"
    text = re.sub(
        r"(?:每个?|单)(节点|台机器|台|机)的?\s?(?:gpu|显?卡)数量?(?:\s?[::]\s?(?=\d))?",
        r"每\1",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"(?<![\d.])(\d{1,2})\s?卡\s?(?:一台|/台|每台)", r"每台\1卡", text)
    text = re.sub(r"[’‘`´]", "'", text)
    return plain_figures(re.sub(r"[^\S\n]+", " ", spoken(text)))


def _with_tenths(match: re.Match[str]) -> str:
    whole, tenths = (chinese_value(digit) for digit in match.groups())
    return f"{whole}.{tenths}秒"


def _percentile(match: re.Match[str]) -> str:
    if match["things"] and not _TIME_NEAR.search(match.string[max(0, match.start() - _NEAR) : match.end() + _NEAR]):
        return match.group()  # "95% of the pupils are minors"
    in_words = match["n100"] or ""
    if match["cheng"]:
        return f" p{95 if match['cheng'] == '九成五' else 90} "
    of_words = 95 if match["of20"] or in_words.endswith(("5", "five")) else 99 if match["of100"] else 90
    return f" p{match['digits'] or match['zh'] or _EXCEPT.get(match['cn'] or '') or of_words} "


def _in_one_unit(match: re.Match[str]) -> str:
    count, span = ((read_number(words) or 1) for words in (match[1], match[3]))
    each = count / span
    return f"{each:.12g} {match[2]} per {match[4] or match[5]}"


def _spelled_time(match: re.Match[str]) -> str:
    whole = english_value((match["n"] or match["m"] or "1").lower().removesuffix("n")) or 1
    part = _PARTS_OF[(match["part"] or match["part2"]).lower()]
    value = whole + part if match["n"] else whole * part
    return f"{value:.4g} {(match['unit'] or match['unit2']).strip()}s"


def with_paired_statistics(text: str) -> str:
    """The text with each statistic of a pair before its figure: "p50/p99: 700 ms / 2 s" as "p50 700 ms, p99 2 s"."""
    return _LISTED_STATISTICS.sub(_each_with_its_figure, _PAIRED_STATISTICS.sub(r"\1 \4, \2 \5", text))


def _each_with_its_figure(match: re.Match[str]) -> str:
    names, figures = match[1].split("/"), match[2].split("/")
    if len(names) != len(figures):
        return match.group()
    return ", ".join(f"{name.strip()} {figure.strip()}" for name, figure in zip(names, figures, strict=True))


def with_keyed_amounts(text: str) -> str:
    """The text with amounts before their nouns: "documents: 48000", "busiest minute: 1,080 requests"."""
    text = _KEYED_WORK.sub(r"\2 \1", _BUSY_KEY.sub(_busy_rate, text))
    text = _KEYED_CHINESE.sub(r"\1\2次请求", text)
    return _KEYED_RATE.sub(_keyed_rate, text)


def _busy_rate(match: re.Match[str]) -> str:
    return f"{match[2]} {'requests' if match[3].endswith('them') else match[3]} per {match[1]}"


def _keyed_rate(match: re.Match[str]) -> str:
    """A rate per user or GPU, or of things that no reader of rates knows, with its amount before it."""
    is_plain = match[2] != "day" and match[3] == "" and not _QUALIFIED_RATE.search(match.group())
    is_known = is_plain and _OF_REQUESTS.fullmatch(match[1]) is not None and not _OF_ALL.search(match.group())
    return match.group() if is_known else match.expand(r"\4 \1 per \2\3")
