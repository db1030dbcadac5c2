"""Dictated text put in writing: spelled names, spoken versions and sizes, and sounds of thinking.

"llama three point three seventy b on eight h one hundreds, t p four, v l l m" becomes "llama 3.3 70b on eight h100s,
TP4, vLLM". A card counts only where the catalogue knows it, and "a one hundred" only where it is counted, so that
ordinary sentences stay as they are. Words that only sound alike are not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...catalog.hardware import read_accelerator_name
from ...errors import InputError
from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER, english_value

_ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGIT = rf"(?:oh|{'|'.join(_ONES)})"
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_TEENS = r"(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
_UNDER_HUNDRED = rf"(?:{_TENS}(?:[\s\-](?!zero|oh){_DIGIT})?|{_TEENS}|{_DIGIT})"
# "seventy", "one twenty", "four oh five", "two thirty five", "one hundred twenty", "120".
_SIZE = (
    rf"(?:\d{{1,4}}|(?:one|two|three|four|five|six|seven|eight|nine)\s(?:hundred(?:\s(?:and\s)?{_UNDER_HUNDRED})?|oh\s{_DIGIT}|"
    rf"{_TENS}(?:[\s\-]{_DIGIT})?|{_TEENS})|{_UNDER_HUNDRED})"
)
_VERSION = rf"(?:\d|{_DIGIT})(?:\spoint\s{_DIGIT}|\.\d)?"
_B = r"\s?(?:b|billion)(?![a-z])"
_START, _END = r"(?<![\w.\-'])", r"(?![\w\-'])"
# Names that are said letter by letter.
_SPELLED = {
    "v l l m": "vLLM", "s g lang": "SGLang", "s g l": "SGLang", "t r t l l m": "TensorRT-LLM",
    "tensor r t l l m": "TensorRT-LLM", "tensor rt llm": "TensorRT-LLM", "tensor r t": "TensorRT",
    "g l m": "GLM", "g p t o s s": "gpt-oss", "gpt o s s": "gpt-oss", "q p s": "QPS", "r p s": "RPS",
    "t t f t": "TTFT", "t p o t": "TPOT", "i t l": "ITL", "i s l": "ISL", "o s l": "OSL", "k v": "KV",
    "g p u": "GPU", "g p us": "GPUs", "m o e": "MoE", "n v link": "NVLink", "h b m": "HBM", "v ram": "VRAM",
    "s l o": "SLO", "s l a": "SLA", "l l m": "LLM", "p c i e": "PCIe", "s x m": "SXM", "d g x": "DGX", "h g x": "HGX",
}  # fmt: skip
_LONGEST_FIRST = (key.replace(" ", r"\s") for key in sorted(_SPELLED, key=len, reverse=True))
_LETTERS = Gated(rf"{_START}(?:{'|'.join(_LONGEST_FIRST)}){_END}")
_FAMILY = (
    r"(?:code\s)?(?:llama|qwen|glm|deep\s?seek|mistral|mixtral|gemma|phi|kimi|gpt[\s\-]oss|command|falcon|nemotron|yi|"
    r"mini\s?max)"
)
_MODEL = Gated(
    rf"{_START}(?P<family>{_FAMILY})(?P<line>\s(?:large|small|medium|nemo|v|r|k|m))?"
    rf"(?:\s(?P<version>{_VERSION})(?!\s(?:hundred|thousand|by|x)(?![a-z])))?(?:\s(?P<word>coder|next|maverick|scout|air))?"
    rf"(?:\s(?:(?P<experts>{_DIGIT})\s(?:by|x|times)\s)?(?P<size>{_SIZE}){_B}(?:\sa\s(?P<active>{_SIZE}){_B})?)?{_END}"
)
_COUNTED = Gated(r"\s(?:times|copies|instances|replicas|nodes|models|versions|gpus|cards|users|people)(?![a-z])")
_HUNDREDS_OF = r"(?:one|two|three|four|five|six|eight)\shundred"
_CARD_NUMBER = rf"(?:{_HUNDREDS_OF}|(?:twent|thirt|fort)(?:y|(?=ies))|four|ten|100|200|300|800|20|40|30|10|4)"
_COUNT = rf"(?:{ENGLISH_NUMBER}|\d{{1,5}}(?:\sx|x)?)"
# What may stand before a card that is named by a letter; `_card` is stricter on "a one hundred".
_BEFORE_CARD = (
    rf"(?:^|(?<=[,;:(\n])\s?|(?<![\w\-])(?:{_COUNT}|on|of|with|the|our|an|some|using|have|has|got|nvidia|to|from|or|and|x|"
    r"these|those|per|each)\s)"
)
_OF_ONE = Gated(r"(?<![a-z])(?:the|that|this|our|which)\s$")
_CARD = Gated(
    rf"(?P<before>{_BEFORE_CARD})(?P<letters>g\s?b|g\s?h|m\s?i|[hblvt])\s(?P<number>{_CARD_NUMBER})"
    rf"(?P<plural>s|ies)?(?:\s(?P<tail>[xsg])(?P<plural2>s)?)?(?![\w\-'])(?!\s(?:percent|%|thousand|million|and\s{_UNDER_HUNDRED}))"
)
_CARD_A = Gated(
    rf"(?P<before>(?<![\w\-])(?:{_COUNT}|nvidia|the|our|of|with|on|some|these)\s)(?P<letters>a)\s(?P<number>{_CARD_NUMBER})(?P<plural>s|ies)?"
    r"(?P<memory>\s(?:with\s)?(?P<gigs>eighty|forty|80|40)[\s\-]?(?:gigs?|gb|g|gigabytes?)(?![a-z]))?(?![\w\-'])(?!\s(?:percent|%|thousand|million))"
)
_RTX = Gated(
    rf"{_START}(?P<rtx>r\s?t\s?x\s)?(?P<first>thirty|forty|fifty)\s(?P<last>seventy|eighty|ninet(?:y|ies))(?P<plural>s)?{_END}"
)
_FORMAT = Gated(
    rf"{_START}(?P<name>n\s?v\s?f\s?p|m\s?x\s?f\s?p|b\s?f|f\s?p|int)\s(?P<bits>four|six|eight|sixteen|thirty[\s\-]two){_END}|"
    rf"{_START}w\s(?P<w>four|eight|sixteen)\sa\s(?P<a>four|eight|sixteen){_END}"
)
_OF_DEGREE = r"\s(?:(?:of|equals|equal\sto|size)\s)?"
_DEGREE = Gated(
    rf"{_START}(?:(?P<name>[tpedc]\sp){_OF_DEGREE}(?P<degree>{_UNDER_HUNDRED}|\d{{1,3}})|"
    rf"(?P<name2>[tpedc]p){_OF_DEGREE}(?P<degree2>{_UNDER_HUNDRED})){_END}"
)
_SPELLED_DEGREE = Gated(
    rf"{_START}(?P<name>[tpedc]\sp)(?P<degree>){_END}(?=\s(?:only|of|and|or|on|across|as|is)(?![a-z])|\s?[,.;]|$)"
)
# Only for text that is known to be dictated.
_DECIMAL = Gated(rf"{_START}(?P<whole>{_UNDER_HUNDRED})\spoint\s(?P<part>{_DIGIT}(?:\s{_DIGIT}){{0,2}}){_END}")
_THOUSANDS = Gated(rf"{_START}(?P<n>{_SIZE}|\d{{1,4}}(?:\.\d{{1,2}})?)\sk{_END}")
_SIZE_ALONE = Gated(rf"{_START}(?P<n>{_SIZE})\sb{_END}")
_HUNDREDS = Gated(
    rf"{_START}(?P<n>(?:one|two|three|four|five|six|seven|eight|nine)\s(?:{_TENS}(?:[\s\-](?!zero|oh){_DIGIT})?|{_TEENS}))"
    r"(?=\s?[.,;]?$|\s?[.;]\s|\s(?:tokens?|users?|people|requests?|milli\s?seconds?|ms|out(?:put)?|in(?:put)?|concurrent|at\sonce|in\sflight)(?![a-z]))"
)
_LENGTHS = Gated(
    rf"{_START}(?P<n>{ENGLISH_NUMBER})(?=\s(?:tokens?\s)?(?:in(?=\s(?:and\s)?(?:{ENGLISH_NUMBER}|\d)|\s?[,.]|$)|out(?![a-z\-])))"
)
_FILLER = Gated(
    r"(?P<before>,\s?|\s|^)(?:[uU]h+m?|[uU]mm?|[eE]rm|[hH]mm+)(?![\w\-'])(?P<after>\s?,)?[^\S\n]*", re.MULTILINE
)
# Texts without any of these are not dictated.
_SIGNS = Gated(
    rf"{_START}[a-z]\s(?:[a-z]\s|{ENGLISH_NUMBER}|lang|link|ram|\d)|{_FAMILY}\s(?:[vrkm]\s)?(?:large\s|small\s)?{_DIGIT}{_END}|"
    rf"(?:[tpedc]p|fp|bf|int)\s{_UNDER_HUNDRED}|(?:thirty|forty|fifty)\s(?:seventy|eighty|ninet)|tensor\srt|{_UNDER_HUNDRED}{_B}"
)


def undictated(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A normalised text with its dictated words in writing, and the (dictated, written) pairs."""
    text = _FILLER.sub(_unfilled, text)
    if not _SIGNS.search(text):
        return text, ()
    pairs: dict[str, str] = {}

    def write(pattern: Gated, written: Callable[[re.Match[str]], str | None]) -> None:
        nonlocal text

        def put(match: re.Match[str]) -> str:
            new = written(match)
            if new is None or new.strip().lower() == match.group().strip().lower():
                return match.group()
            pairs[match.group().strip(" ,;:(\n")] = new.strip(" ,;:(\n")
            return new

        text = pattern.sub(put, text)

    for pattern, written in (
        (_FORMAT, _format), (_LETTERS, _spelled), (_MODEL, _model), (_RTX, _rtx), (_CARD, _card), (_CARD_A, _card),
        (_DEGREE, _degree), (_SPELLED_DEGREE, _degree),
    ):  # fmt: skip
        write(pattern, written)
    if pairs:
        write(_SIZE_ALONE, lambda match: f"{_number(match['n'])}b")
        write(
            _DECIMAL,
            lambda match: f"{_number(match['whole'])}.{''.join(_number(digit) for digit in match['part'].split())}",
        )
        write(_THOUSANDS, lambda match: f"{_number(match['n'])}k")
        write(_HUNDREDS, lambda match: _number(match["n"]))
        write(_LENGTHS, lambda match: str(english_value(match["n"].lower())))
    return text, tuple(pairs.items())


def _unfilled(match: re.Match[str]) -> str:
    if not match["before"] or match["before"] == "\n":
        return match["before"]
    return ", " if "," in match["before"] or match["after"] else " "


def _number(words: str) -> str:
    """Spoken digits as written: "four oh five" is 405, "one twenty" 120, "seventy two" 72."""
    if words[:1].isdigit():
        return words
    parts = words.lower().replace("-", " ").replace("oh", "zero").split()
    if "hundred" not in parts and len(parts) > 1 and parts[0] in _ONES:
        below_hundred = english_value(" ".join(parts[2:] if parts[1] == "zero" else parts[1:])) or 0
        return str(_ONES.index(parts[0]) * 100 + below_hundred)
    return str(english_value(" ".join(parts)) or 0)


def _version(words: str) -> str:
    return ".".join(_number(part) for part in re.split(r"\spoint\s|\.", words.lower()))


def _spelled(match: re.Match[str]) -> str:
    return _SPELLED[re.sub(r"\s", " ", match.group().lower())]


def _model(match: re.Match[str]) -> str | None:
    version, size = match["version"], match["size"]
    if not any(words and words[0].isalpha() for words in (version, size)):
        return None
    if not size and _COUNTED.match(match.string, match.end()):
        return None  # "we run llama three times"
    if not size and version.lower() == "one" and _OF_ONE.search(match.string, 0, match.start()):
        return None  # "the llama one"
    family = re.sub(r"\s", "" if match["family"].lower().startswith(("deep", "mini")) else "-", match["family"])
    line = (match["line"] or "").strip()
    parts = [family]
    if len(line) == 1:
        parts.append(f"{line}{_version(version)}" if version else line)
    else:
        parts += [line] if line else []
        number = _version(version) if version else ""
        if number and family.lower() == "qwen" and not line:
            parts[0] = f"{family}{number}"
        else:
            parts.append(number)
    parts.append(match["word"] or "")
    if size and version and "oss" in family:  # "gpt oss one twenty b": it has no versions
        parts, size = [family], f"{version} {size}"
    if size:
        experts = f"{_number(match['experts'])}x" if match["experts"] else ""
        active = f"-a{_number(match['active'])}b" if match["active"] else ""
        parts.append(f"{experts}{_number(size)}b{active}")
    return " ".join(filter(None, parts))


def _card(match: re.Match[str]) -> str | None:
    groups = match.groupdict()
    letters = groups["letters"].lower().replace(" ", "")
    number = re.sub(r"t$", "ty", groups["number"].lower())  # "l forties"
    name = f"{letters}{_number(number)}{(groups.get('tail') or '').lower()}"
    if letters == "a" and not (
        groups["memory"] or groups["plural"] or re.match(rf"(?:{_COUNT}|nvidia)\s$", groups["before"], re.IGNORECASE)
    ):
        return None  # "on a one hundred token prompt"
    if not _is_card(name):
        return None
    plural = "s" if (groups["plural"] or groups.get("plural2")) and name != "l40" else ""  # an L40S is another card
    gigs = groups.get("gigs")
    return f"{groups['before']}{name}{f' {_number(gigs)}GB' if gigs else plural}"


def _rtx(match: re.Match[str]) -> str | None:
    plural = match["plural"] or match["last"].lower().endswith("ies")
    name = f"{_number(match['first'])}{_number(match['last'].lower().replace('ies', 'y'))}"
    return f"RTX {name}{'s' if plural else ''}" if _is_card(f"rtx {name}") else None


def _is_card(name: str) -> bool:
    try:
        read_accelerator_name(name)
    except InputError:
        return False
    return True


def _format(match: re.Match[str]) -> str:
    if match["w"]:
        return f"w{_number(match['w'])}a{_number(match['a'])}"
    return f"{match['name'].replace(' ', '')}{_number(match['bits'])}"


def _degree(match: re.Match[str]) -> str:
    groups = match.groupdict()
    name, degree = (groups[group] or groups.get(f"{group}2") for group in ("name", "degree"))
    return f"{str(name).replace(' ', '').upper()}{_number(degree) if degree else ''}"
