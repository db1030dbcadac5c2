"""Every form of brief as text that the reader of requests reads: a line a statement, its key before its words.

`BARRIER` parts the lines: no word qualifies another across it. What a line means is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ...catalog.model_mentions import mentions
from ..conflicts.statement_rank import rank_of
from ..patterns.gated import Gated
from ..patterns.page import APART, BARRIER
from ..patterns.quantities import find_quantities
from ..writing.normal_form import normalise, with_keyed_amounts, with_paired_statistics
from .boxes import NOT_TICKED
from .key_words import UNIT_BEHIND, key_words, known_key
from .launch import FORMER
from .qualifiers import stated_unit
from .statements import OUT_OF_SCOPE, PER_NODE, Statement

# "1,6 TB/s": a comma before one or two digits and a unit is a decimal point.
_DECIMAL_COMMA = Gated(
    r"(?<![\d.,])(\d{1,3}),(\d{1,2})(?=\s?(?:[TGM]i?[Bb](?:/s|ps|it/s)?|[TP]FLOPS?|ms|s|%)(?![A-Za-z]))", flags=0
)
_SINGLE_CARD = Gated(
    r"单张?卡(?=\s?(?:双向|单向)?(?:算力|显存|内存|带宽|吞吐|峰值|功耗|\d[\d.]*\s?(?:[TP]FLOPS|[TGM]i?[Bb])))", flags=0
)
_VERSION = Gated(
    r"((?<![a-z])(?:nvlink|nvswitch|pci-?e(?:xpress)?|hbm|g?ddr|cuda|rocm|gen))[ -]?(?:gen "
    r"?)?v?\d(?:\.\d)?(?:e|x)?(?![\w.%]|\s?[gt]i?b)",
)
_FORM = Gated(r"\s?\(\s?(sxm\d?|pci-?e|nvl)\s?\)")
_JOINED = Gated(
    r"(weights?|权重|activations?|激活|kv[ _-]?cache|kv ?缓存)\s?[,/&+]\s?(weights?|权重|activations?|激活"
    r"|kv[ _-]?cache|kv ?缓存)",
)
# "objective: min_gpus": every part of the value is a word.
_SNAKE = Gated(r"\A\s*[a-z]{2,12}(?:_[a-z]{2,12}){1,4}\s*\Z", flags=0)
_PRODUCT = Gated(
    r"(?P<names>[TPDES]P(?:\s?[x*]\s?[TPDES]P){1,5})\s?=\s?(?P<figures>\d{1,6}(?:\s?[x*]\s?\d{1,6}){0,5})(?:\s?=\s?(?P<total>\d{1,7}))?(?:\s?gpus?|"
    r"\s?cards?)?",
)
_PHASE = Gated(r"(?P<prefill>\bprefill\w*|预填充)|(?P<decode>\bdecod\w+|解码)")
_OF_A_PHASE = Gated(r"\b[tpeds]p(?![a-z])|parallel|并行|replica|副本|\bgpus?\b|\bnodes?\b|\bcards?\b|卡")
_GENERIC_KEY = Gated(
    r"(?:d?types?|precision|format|value|name|size|degree|enabled?|mode|choice|model|default|id|"
    r"p\d\d|mean|median|avg|average|均值|平均值?|中位数?|typical|min|max|minimum|maximum|count|limit|target|max(?!imi[sz]e)\w*|number|"
    r"(?:size )?(?:bytes|gi?b|ti?b) per (?:gpu|node))",
)
_STRATEGY = re.compile(r"strateg|parallelism|\bparallel$|\bplan$|策略|并行")
_PRIMITIVE = re.compile(r"^(tensor|pipeline|expert|sequence|context|data)\b(?! ?parallel)")
_CHINESE_PRIMITIVE = re.compile(r"^(张量|流水线?|专家|序列)$")
_BEST = re.compile(r"(?:maxim|minim|optim)i[sz]e")
# "2.95 (USD per GPU-hour)", "2.95 # USD per GPU-hour": the unit of a price as a remark.
_REMARKED_PRICE = re.compile(
    r"\A(\d[\d.]*)\s*[(#]+\s*((?:USD|EUR|\$)\s?(?:per|/)\s?(?:GPU|card)[\s-]?h(?:ou)?r?)\)?\Z", re.I
)
_FORMATS = re.compile(r"precision|quanti[sz]|d ?type|format|精度|量化")
_TENSOR = Gated(r"weights?|kv cache|kv|activations?|权重|激活")
_COUNT_OF_NODES = Gated(
    r"(?:cluster|instances?|vms?|hosts?|machines?|servers?|nodes?|box(?:es)?) "
    r"(?:count|number|(?:in|of) (?:the )?(?:pool|cluster|fleet|partition|site))|chassis",
)
_COUNT_OF_CARDS = Gated(r"gpu|card|accelerator|device|npu|显卡|加速卡|卡")
_UNIT_IN_KEY = Gated(
    r"\s?[(\[（](?!(?:(?:all|both|each)\s)?(?:at\s)?(?:p\s?\d|mean|avg|average|median|平均|中位))[^()\[\]（）]{1,16}[)\]）]|"
    r"\s(?:ms|s|gb|gib|gbps|tb s|gb s|percent|pct|usd|bytes)$",
)
_NUMBERED = r"(?:[\d.]{1,8}\s?|[一二三四五六七八九十]{1,3}\s?[、.,]\s?)?"
_OUT_OF_SCOPE = Gated(
    rf"{FORMER}|{NOT_TICKED}|"
    r"(?:previous|former|old|legacy|retired|rejected|discarded|abandoned|superseded|cancell?ed|withdrawn|outdated)"
    r"(?: [a-z]+){1,2}|"
    r"(?:other|neighbou?ring|foreign) (?:systems?|services?|tenants?|projects?|teams?|workloads?)|"
    r"neighbou?rs?|elsewhere|"
    r"其[他它](?:系统|服务|项目|业务|租户)|邻居|"
    r"predecessors?|supersedes|replaces|obsoletes|attic|graveyard|change ?log|"
    r"修订(?:记录|历史)|旧(?:系统|平台|方案|机器|集群).{0,4}|"
    rf"staging(?: (?:cluster|environment))?|sandbox|"
    r".{0,24}(?:for (?:information|context|reference)(?: only)?|only for (?:information|context|reference)|fyi)\W?|"
    rf"(?:附录?\W{{0,2}})?.{{0,8}}仅供(?:了解|参考).{{0,4}}|(?:附录?\W{{0,2}})?历史.{{0,14}}|"
    rf"{_NUMBERED}(?:(?:what(?: is|'s) )?(?:explicitly )?(?:out(?:side)?(?: of)?|not (?:in|part of)(?: the)?"
    r"|beyond)(?: the)? scope|non ?goals?|not part of .{1,30}|"
    r"(?:(?:other |rejected |discarded )?alternatives|(?:other|rejected|discarded) (?:options|ideas)"
    r"|options(?= considered| rejected))"
    r"(?: (?:that )?(?:we |were )?(?:considered|rejected|discarded|dropped|looked at))?(?: and (?:rejected|dropped))?|"
    r"(?:备选|其他|被否决的?)方案(?:.{0,4}(?:考虑|否决|放弃|未采用))?|不在.{0,6}|(?:本次)?不包[括含].{0,4}|范围之?外.{0,2})"
)
_BACKGROUND = Gated(
    rf"{_NUMBERED}(?:(?:known |past |recent |open )?(?:incidents?|outages?|issues)(?: log)?"
    rf"|(?:project |some )?background(?: \w+){{0,3}}|(?:\w+ )?history(?: \w+){{0,3}}"
    rf"|appendi(?:x|ces)\W?(?: [\w:]+){{0,5}}"
    rf"|(?:monitoring|telemetry)(?: \w+){{0,4}}|(?:项目)?背景.{{0,4}}|历史.{{0,4}}|附录.{{0,6}}"
    rf"|(?:附录?\W?)?监控.{{0,10}})"
)
# A heading over what runs now, beside which limits may stand.
_OBSERVED = Gated(
    rf"{_NUMBERED}(?:observed|measure(?:d|ments?)|current (?:figures|numbers|performance)|what we see)(?: \w+){{0,3}}"
    r"|现状数据|实测.{0,4}"
)
_ASKED = Gated(
    r"(?P<name>.{2,40}?)\s?(?:(?:is\s)?(?:allowed|permitted)|"
    r"(?P<crosses>(?:across|over|cross|between)\s?(?:the\s)?(?:nodes?|servers?|machines?|hosts?|instances?))): ",
    flags=0,
)
_PERCENTILE = Gated(r"(?<![a-z\d])p\s?(?P<p>50|90|95|99)(?!\d)|(?<!\d)(?P<nth>50|90|95|99)(?:th)?[\s_]percentile")
_OF_LATENCY = Gated(
    r"(?<![a-z])(?:ttft|tpot|itl|e2e|(?:first|output|per)[\s_]token|end[\s_]to[\s_]end|latency|response[\s_]time)|首\s?(?:token|字|包)|每\s?个?\s?token|时延|延迟|端到端"
)
_EACH_NODE = re.compile(r"\A(?P<node>每(?:节点|台机器|台|机)): (?P<n>\d{1,3})\Z")  # of "每节点卡数"
_TOKENS_IN = re.compile(r"\btok(?:en)?s? (?P<side>in|out)(?:put)?\b")  # "tokens_in"
_IDENTIFIER = re.compile(r"[a-z][A-Za-z0-9_\-]*|\w*_\w*")
# What a heading says by itself: "### p99 TTFT under 900 ms".
_DEMAND = Gated(
    r"(?<![a-z])(?:must|shall|at (?:most|least)|no more than|keep|never|forbidden|not allowed)(?![a-z])"
    r"|必须|需要|不得|不要|至少|至多",
)
# Statements without a unit: "TP4", "8x H100", "2k in", "Users: 20", "FP8 only".
_STATEMENT = Gated(
    r"(?<![a-z\d])(?:[tpeds]p\s?=?\s?\d|\d{1,4}\s?x?\s?(?:nvidia\s)?[a-z]{1,4}\d{2,3}(?!\d)|\d[\d.,]*\s?(?:k|in|out)(?![a-z]))"
    r"|[:=]\s?\d|(?<![a-z])only(?![a-z])",
)
_SENTENCE = re.compile(r"\n|[.;!。;]\s*$|:\s")


class Line(Struct, frozen=True):
    """A statement as a line of text; its words begin at `start`, behind the key."""

    statement: Statement
    text: str
    start: int

    @property
    def key(self) -> str:
        """The key of the statement in plain words, "" where it has none."""
        return key_words(self.statement.path[-1]) if self.statement.keyed and self.statement.path else ""


def lines_of(statements: Iterable[Statement]) -> tuple[Line, ...]:
    """Every statement but the headings as a line."""
    return tuple(_line(statement) for statement in statements if not statement.heading)


def without_asides(statements: Sequence[Statement]) -> tuple[list[Statement], list[Statement]]:
    """The statements in scope, and those set aside under a heading or key: out of scope, or background.

    The background counts where nothing else names a model.
    """
    in_scope = [entry for entry in statements if not any(map(_is_out_of_scope, entry.path))]
    front = [entry for entry in in_scope if not any(map(_is_background, entry.path))]
    in_scope = front if any(m.entry for entry in front for m in mentions(plain_text(entry.text))) else in_scope
    return in_scope, [entry for entry in statements if entry not in in_scope and not entry.heading]


def _is_out_of_scope(heading: str) -> bool:
    return heading.startswith(OUT_OF_SCOPE) or _OUT_OF_SCOPE.fullmatch(key_words(heading).strip(" :*")) is not None


def why_aside(entry: Statement) -> str:
    """What sets a statement aside: the heading or key that it stands under, or what a reader found beside it."""
    asides = [key for key in entry.path if _is_out_of_scope(key) or _is_background(key)]
    why = (asides or entry.path)[-1][:120]
    return why.removeprefix(OUT_OF_SCOPE) if why.startswith(OUT_OF_SCOPE) else f"stands under {why!r}"


def _is_background(heading: str) -> bool:
    return _BACKGROUND.fullmatch(key_words(heading).strip(" :*")) is not None


def says_something(heading: str) -> bool:
    """Whether a heading has a figure or a demand; a title with a number ("Phase 2", "Latency (p99)") has none."""
    text = normalise(heading)
    states = _STATEMENT.search(text) or any(quantity.unit != "count" for quantity in find_quantities(text))
    demands = _DEMAND.search(text) and len(text.split()) > 2  # "Must have" is a title
    return bool(states or demands) and not _is_out_of_scope(heading) and not _is_background(heading)


def is_paragraph(underlined: str) -> bool:
    """Whether the text above a line of dashes is no title: Markdown takes "-- " of a signature for an underline."""
    return _SENTENCE.search(underlined) is not None or says_something(underlined)


def _line(statement: Statement) -> Line:
    prefix, body = plain_text(_prefix(statement)), _with_unit(statement, plain_text(statement.text))
    if (answer := _answered(prefix, body)) is not None:
        return Line(statement, answer, 0)
    body = _with_statistic(statement, prefix, body)
    prefix = f"{APART * _stands_apart(statement)}{prefix}"
    text = _EACH_NODE.sub(r"\g<node>\g<n>卡", with_keyed_amounts(with_paired_statistics(prefix + body)))
    return Line(statement, text, min(len(prefix), len(text) - 1) if text == prefix + body else 0)


def _stands_apart(statement: Statement) -> bool:
    """Whether a heading or key above a statement says that it held once or holds for others."""
    above = statement.path[:-1] if statement.keyed else statement.path
    return any(rank_of(key_words(part)) == 2 for part in above)


def _with_statistic(statement: Statement, prefix: str, body: str) -> str:
    """The words of a latency with the percentile of the heading or key above it: "指标(P95)" over "首 token: 5 秒"."""
    above = statement.path[:-1] if statement.keyed else statement.path
    percentile = next(filter(None, (_PERCENTILE.search(part) for part in reversed(above))), None)
    if percentile is None or not _OF_LATENCY.search(prefix) or _PERCENTILE.search(prefix + body):
        return body
    return f"{body} (p{percentile['p'] or percentile['nth']})"


def _answered(prefix: str, body: str) -> str | None:
    """A yes or no to the question in a key, as a sentence: "pipeline allowed: no" is "pipeline not allowed"."""
    asked = _ASKED.fullmatch(prefix)
    if asked is None or body not in ("yes", "no"):
        return None
    name = asked["name"].strip()
    if asked["crosses"]:
        return f"{name} {'may cross nodes' if body == 'yes' else 'must not cross nodes'}"
    return f"{name} {'allowed' if body == 'yes' else 'not allowed'}"


def _prefix(statement: Statement) -> str:
    """The key as the words before the body; where the key is generic ("dtype"), with the key above; with the phase."""
    path = statement.path
    if not statement.keyed or not path:
        if path and _OBSERVED.fullmatch(key_words(path[-1]).strip(" :*.")):
            return "measured: "
        phase = _phase(path)
        return f"{phase}: " if phase and _OF_A_PHASE.search(statement.text) else ""
    key = _spelled(path[-1])
    parent = _spelled(path[-2]) if len(path) > 1 else ""
    if parent and (_GENERIC_KEY.fullmatch(key) or _PRIMITIVE.fullmatch(parent)):
        key = f"{parent} {key}"
    if _COUNT_OF_NODES.fullmatch(key):
        key = "nodes"
    above = " ".join(key_words(part) for part in path[:-1])
    if _FORMATS.search(above) and _TENSOR.fullmatch(key):
        key = f"{key} precision"
    phase = _phase(path[:-1])
    if phase and not _PHASE.search(key) and _OF_A_PHASE.search(f"{key} {statement.text}"):
        key = f"{phase} {key}"
    if PER_NODE in path and _COUNT_OF_CARDS.search(key) and PER_NODE not in key:
        key = f"{key} {PER_NODE}"
    if _STRATEGY.search(above):
        key = _CHINESE_PRIMITIVE.sub(r"\1并行", _PRIMITIVE.sub(r"\1 parallel", key))
    if _BEST.fullmatch(key):
        return f"{key} "
    if _STRATEGY.search(above) and not _STRATEGY.search(key) and _OF_A_PHASE.search(f"{key}: {statement.text}"):
        key = f"strategy {key}"
    return f"{key}: "


def _spelled(key: str) -> str:
    """The words of a key without its unit; only an identifier is parted at its capitals ("gpusPerNode")."""
    known = key_words(key) if _IDENTIFIER.fullmatch(key) else known_key(key)
    words = known or UNIT_BEHIND.sub(" ", normalise(key))
    return _TOKENS_IN.sub(r"\g<side>put tokens", _UNIT_IN_KEY.sub("", words).strip())


def _with_unit(statement: Statement, body: str) -> str:
    """The words with the unit of their key behind every bare number."""
    unit = stated_unit(statement)
    if unit is None:
        return body
    for quantity in reversed(find_quantities(body)):
        # "450 (per direction, between all eight)"
        if quantity.unit == "count" and (not quantity.start or body[quantity.start].isdigit()):
            body = f"{body[: quantity.end]} {unit}{body[quantity.end :]}"
    return body


def _phase(path: Iterable[str]) -> str | None:
    """The phase in the innermost heading or key with any; `None` if that names both."""
    for part in reversed(tuple(path)):
        phases = {str(match.lastgroup) for match in _PHASE.finditer(key_words(part))}
        if phases:
            return phases.pop() if len(phases) == 1 else None
    return None


def plain_text(text: str) -> str:
    """The normalised text, with what would be misread spelled out.

    Versions ("NVLink 4.0", "PCIe 5") go; 单卡 before a figure of a card counts nothing; "weights, activations: BF16"
    joins the two; a product of degrees with its result ("TP x PP = 8 x 2 = 16") is those degrees and a number of GPUs.
    """
    text = _SNAKE.sub(lambda match: match.group().replace("_", " "), text)
    text = _DECIMAL_COMMA.sub(r"\1.\2", normalise(text))
    text = _SINGLE_CARD.sub("每卡", text)
    text = _VERSION.sub(lambda match: match[1], text)
    text = _FORM.sub(lambda match: f" {match[1]}", text)
    text = _REMARKED_PRICE.sub(r"\1 \2", text)
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


def places_of(lines: Sequence[Line], text: str, words: str) -> list[str]:
    """The places of the brief at which the words stand in the whole text, the first and the last."""
    offsets = [text.find(words), text.rfind(words)]
    places = [lines[min(text.count(BARRIER, 0, at), len(lines) - 1)].statement.where for at in offsets if at >= 0]
    return list(dict.fromkeys(places))
