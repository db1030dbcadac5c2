"""A statement of a brief on its page: the words with their key, spelled out where they would be misread.

It knows how statements are laid out for the readers of requests; it refuses to know what any of them reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .brief_facts import Fact, Facts, statement_words
from .brief_statements import Statement, key_words
from .claims import Claims
from .page import Page
from .quantities import find_quantities, normalise

# "1,6 TB/s": a comma before one or two digits and a unit is a decimal point.
_DECIMAL_COMMA = re.compile(
    r"(?<![\d.,])(\d{1,3}),(\d{1,2})(?=\s?(?:[TGM]i?[Bb](?:/s|ps|it/s)?|[TP]FLOPS?|ms|s|%)(?![A-Za-z]))"
)
_OF_ONE = re.compile(r"单张?(卡|机|台|节点)")
_VERSION = re.compile(
    r"((?<![a-z])(?:nvlink|nvswitch|pci-?e(?:xpress)?|hbm|g?ddr|cuda|rocm|gen))[ -]?(?:gen "
    r"?)?v?\d(?:\.\d)?(?:e|x)?(?![\w.%]|\s?[gt]i?b)",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?<![A-Za-z])([A-Za-z]{2,12}|输入|输出)\s?/\s?([A-Za-z]{2,12}|输入|输出)(?:\s(?:tokens?|lengths?))?\s?[:=]?\s?"
    r"(\d[\d.,]{0,9}k?(?:\s?[A-Za-z]{1,6})?)\s?/\s?(\d[\d.,]{0,9}k?(?![\d/])(?:\s?[A-Za-z]{1,6})?)"
)
_FORM = re.compile(r"\s?\(\s?(sxm\d?|pci-?e|nvl)\s?\)", re.IGNORECASE)
_JOINED = re.compile(
    r"(weights?|权重|activations?|激活|kv[ _-]?cache|kv ?缓存)\s?[,/&+]\s?(weights?|权重|activations?|"
    r"激活|kv[ _-]?cache|kv ?缓存)",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"(?P<names>[TPDES]P(?:\s?[x*]\s?[TPDES]P){1,5})\s?=\s?(?P<figures>\d{1,6}(?:\s?[x*]\s?\d{1,6}){0,5})(?:\s?=\s?(?P<total>\d{1,7}))?(?:\s?gpus?|"
    r"\s?cards?)?",
    re.IGNORECASE,
)
_PHASE = re.compile(r"(?P<prefill>\bprefill\w*|预填充)|(?P<decode>\bdecod\w+|解码)", re.IGNORECASE)
_DEGREES = re.compile(r"\b[tpeds]p\s?[=:x]?\s?\d|parallel|并行|replica|副本", re.IGNORECASE)
_GENERIC_KEY = re.compile(r"(?:d?types?|precision|format|value|name|size|degree|enabled?|mode|choice|model|default)")
WORD = re.compile(r"[A-Za-z\u4e00-\u9fff]{2,}")


NO = re.compile(
    r"(?:no|false|off|none|n/a|disabled?|not (?:used|needed|required|planned)|否|无|不|不需要|关闭|不启用)\W*",
    re.IGNORECASE,
)
YES = re.compile(r"(?:yes|true|on|enabled?|required|allowed|是|启用|开启|需要|允许)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """A statement on its page; the body begins at `start`, after the key."""

    statement: Statement
    page: Page
    start: int
    body: str

    @property
    def key(self) -> str:
        """The statement's own key in plain words, "" where it has none."""
        return key_words(self.statement.path[-1]) if self.statement.keyed and self.statement.path else ""

    @property
    def asked(self) -> str:
        """The key, with the one above it where it is generic ("name")."""
        path = self.statement.path
        is_generic = len(path) > 1 and _GENERIC_KEY.fullmatch(self.key)
        return f"{key_words(path[len(path) - 2])} {self.key}" if is_generic else self.key

    @property
    def in_words(self) -> bool:
        """Whether the body says more than a figure with its unit."""
        rest = self.body
        for quantity in reversed(find_quantities(self.body)):
            rest = rest[: quantity.start] + rest[quantity.end :]
        return WORD.search(rest) is not None

    @property
    def is_no(self) -> bool:
        """Whether the body only denies what the key names."""
        return NO.fullmatch(self.body) is not None

    @property
    def is_yes(self) -> bool:
        """Whether the body only affirms what the key names."""
        return YES.fullmatch(self.body) is not None

    def fact(self, name: str, value: object, words: str = "") -> Fact:
        """A fact that the whole statement states."""
        context = " : ".join(key_words(part) for part in (*self.statement.path, self.body))
        return Fact(name, value, statement_words(self.statement, words), self.statement.where, context)


def lay_out(statement: Statement) -> Reading:
    """The statement on a page of its own, its key before its words."""
    prefix, body = plain_text(_prefix(statement)), plain_text(statement.text)
    page = Page(prefix + body)
    return Reading(statement, page, len(page.text) - len(body), body.strip())


def _prefix(statement: Statement) -> str:
    """The key as the words before the body; where the key is generic ("dtype"), with the key above; with the phase."""
    path = statement.path
    if not statement.keyed or not path:
        phase = _phase(path)
        return f"{phase}: " if phase and _DEGREES.search(statement.text) else ""
    key = path[-1]
    if len(path) > 1 and _GENERIC_KEY.fullmatch(key_words(key)):
        key = f"{path[len(path) - 2]} {key}"
    phase = _phase(path[:-1])
    if phase and not _PHASE.search(key) and _DEGREES.search(f"{key} {statement.text}"):
        key = f"{phase} {key}"
    return f"{key}: "


def _phase(path: Iterable[str]) -> str | None:
    """The one phase that the innermost heading or key that names a phase names."""
    for part in reversed(tuple(path)):
        found = {str(match.lastgroup) for match in _PHASE.finditer(key_words(part))}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def plain_text(text: str) -> str:
    """The normalised text, with what would be misread spelled out.

    "ISL/OSL = 3000/800" is two figures with a name each; versions ("NVLink 4.0", "PCIe 5") go;
    单卡 and 单机 ("of one card", "of one server") count nothing; "weights, activations: BF16" joins the two; a product
    of degrees with its result ("TP x PP = 8 x 2 = 16") is those degrees and a number of GPUs.
    """
    text = _DECIMAL_COMMA.sub(r"\1.\2", normalise(text))
    text = _OF_ONE.sub(lambda match: f"每{match[1]}", text)
    text = _VERSION.sub(lambda match: match[1], text)
    text = _PAIR.sub(lambda m: f"{m[1]} {m[3]}, {m[2]} {m[4]}", text)
    text = _FORM.sub(lambda match: f" {match[1]}", text)
    text = _JOINED.sub(lambda match: f"{match[1]} and {match[2]}", text)
    return _PRODUCT.sub(_spelled_product, text)


def _spelled_product(match: re.Match[str]) -> str:
    names = [name.strip() for name in re.split(r"[x*]", match["names"])]
    figures = [figure.strip() for figure in re.split(r"[x*]", match["figures"])]
    if len(figures) == 1 and not match["total"]:
        return f" {figures[0]} GPUs"
    if len(figures) != len(names):
        return match.group()
    degrees = ", ".join(f"{name} {figure}" for name, figure in zip(names, figures, strict=True))
    return f" {degrees}" + (f", {match['total']} GPUs" if match["total"] else "")


Reader = Callable[[Page, Claims], object]


def run_readers(reading: Reading, facts: Facts, readers: Iterable[Reader]) -> None:
    """Run readers of requests on the page, each with claims of its own, and keep what they claim as facts."""
    for reader in readers:
        claims = Claims()
        reader(reading.page, claims)
        for name, value in claims.values.items():
            statistic = claims.values.get(name.replace("_ms_max", "_statistic")) if name.endswith("_ms_max") else None
            facts.add([replace(reading.fact(name, value), statistic=statistic)])
        for note in claims.readings:
            facts.reading(f"{note} ({reading.statement.where})")
        for note in claims.unread:
            facts.leave_unread(f"{note} ({reading.statement.where})")
