"""What people write in passing, in the form that the patterns of figures know: "15 lakh", "七八千", "万兆".

It changes the writing and reads nothing.
"""

from __future__ import annotations

import re

from .number_words import chinese_value

# "15 lakh", "1.2 crore".
_INDIAN = {"lakh": 10**5, "lac": 10**5, "crore": 10**7}
_INDIAN_SCALE = re.compile(
    r"(?<![\w.])(\d{1,6}(?:,\d{2,3})*(?:\.\d{1,4})?)\s?(lakh|lac|crore)s?(?![a-z])", re.IGNORECASE
)
# "七八千" is 7,000 to 8,000, "三五百" 300 to 500; "十来个" some ten, "一千多" some thousand.
_ABOUT_CHINESE = re.compile(
    r"(?<![零一二两三四五六七八九十百千万亿\d])(?P<a>[一二两三四五六七八九])(?P<b>[二三四五六七八九])(?P<scale>[十百千万]{1,2})(?![一二三四五六七八九\d])"
)
_SOME_CHINESE = re.compile(
    r"(?<=[十百千万亿\d])(?:来|多|几)(?=\s?[个人路条字次台张万千亿,;。\n]|\s?(?:token|用户|并发|请求))", re.IGNORECASE
)
# "智谱那个4.6", "千问3-32B": a maker's name before a release is its family's.
_MAKERS = {"智谱": "GLM-", "千问": "Qwen"}
_MAKER = re.compile(
    r"(?:智谱(?:清言|AI)?|(?:通义)?千问)(?:的|家|那个|最新的?|新出的?|开源的?){0,2}\s?(?:GLM|Qwen)?[\s\-]?(?=\d\.?\d?)",
    re.IGNORECASE,
)
# "万兆互联": a network by its speed; "平均2分钟触发一次": how often.
_NETWORK = {"百": "0.1", "千": "1", "万": "10", "十万": "100"}
_NAMED_SPEED = re.compile(
    r"(?P<n>十万|[百千万])兆(?:以太网?|网络?|互联|光纤|光口|网口|交换机)?(?!字节|b)", re.IGNORECASE
)
_EVERY_SO_OFTEN = re.compile(
    r"每?(?P<n>\d{1,4}(?:\.\d)?|[一两二三四五六七八九十]{1,3})\s?个?(?P<unit>秒|分钟|小时)钟?(?:就|会|才|左右|大概|要)?(?:触发|发起|调用|请求|提问|问|查|刷新?|用|来|点|发)?(?P<how>一|1)次"
)
_SOME_TEN = re.compile(r"(?<![一二两三四五六七八九十百千万亿\d])十[来多几](?=个)")
# "fp8 everywhere incl. KV".
_EVERYWHERE = re.compile(
    r"(?<![\w.])(?P<format>fp8|int8|bf16|fp16)\s(?:everywhere|throughout|for\severything|all\sthe\sway)(?:,?\s\(?(?:incl(?:\.|uding)?|also)\s(?:the\s)?kv(?:[\s\-]?cache)?\)?)?",
    re.IGNORECASE,
)


def in_plain_writing(text: str) -> str:
    """The text with colloquial figures, names and turns as they are written out."""
    text = _MAKER.sub(lambda match: next(name for maker, name in _MAKERS.items() if maker in match.group()), text)
    text = _NAMED_SPEED.sub(lambda match: f" {_NETWORK[match['n']]}G以太网", text)
    text = _EVERY_SO_OFTEN.sub(_so_often, text)
    text = _EVERYWHERE.sub(r"\g<format> weights, \g<format> KV cache", text)
    text = _INDIAN_SCALE.sub(_in_digits, text)
    return _SOME_CHINESE.sub("", _SOME_TEN.sub("10", _ABOUT_CHINESE.sub(_as_range, text)))


def _number(words: str) -> float:
    return float(words) if words[0].isdigit() else float(chinese_value(words) or 1)


def _so_often(match: re.Match[str]) -> str:
    return f"每{match['unit']}{1 / (_number(match['n'])):.12g}次"


def _in_digits(match: re.Match[str]) -> str:
    return f"{float(match[1].replace(',', '')) * _INDIAN[match[2].lower()]:.0f}"


def _as_range(match: re.Match[str]) -> str:
    low, high = (chinese_value(match[end] + match["scale"]) or 0 for end in "ab")
    return f"{low}到{high}" if low < high else match.group()
