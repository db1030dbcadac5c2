"""One statement of a brief, read: names first, then figures by the table, then the words as a request's are read.

The readers of requests are used as they are for what is said in words. It refuses to read a statement twice: what one
reader takes off the page, the next one does not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...tools.catalog import hardware, models
from ...tools.catalog.dtypes import DType
from ...tools.errors import InputError
from .brief_facts import Fact, Facts, statement_words
from .brief_fields import GPU
from .brief_figures import is_word, read_figures
from .brief_model import read_traits
from .brief_statements import Statement, key_words
from .claims import Claims
from .errors import BriefError, RequestError
from .hardware_words import read_hardware
from .limit_words import read_limits
from .load_words import read_load
from .objective_words import read_objective
from .names import NamedModel, NodeSizes, read_accelerator
from .page import BOX, CARD, MODEL, RACK, TAKEN, Page
from .permission_words import read_disaggregation, read_relaxations
from .precision_words import read_precision
from .quantities import find_quantities, normalise
from .refusals import refuse_non_goals, set_aside_instructions
from .serving_words import read_engine, read_price
from .strategy_words import read_strategy

_OF_ONE = re.compile(r"单张?(卡|机|台|节点)")
_FORM = re.compile(r"\s?\(\s?(sxm\d?|pci-?e|nvl)\s?\)", re.IGNORECASE)
_JOINED = re.compile(
    r"(weights?|权重|activations?|激活|kv[ _-]?cache|kv ?缓存)\s?[,/&+]\s?(weights?|权重|activations?|激活|kv[ _-]?cache|kv ?缓存)", re.IGNORECASE
)
_PRODUCT = re.compile(
    r"(?P<names>[TPDES]P(?:\s?[x*]\s?[TPDES]P){1,5})\s?=\s?(?P<figures>\d{1,6}(?:\s?[x*]\s?\d{1,6}){0,5})(?:\s?=\s?(?P<total>\d{1,7}))?(?:\s?gpus?|\s?cards?)?",
    re.IGNORECASE,
)
_IN_AND_OUT = re.compile(r"(?:input|prompt|isl|\bin\b|输入).{1,20}(?:output|completion|osl|\bout\b|generat\w+|response|输出)", re.IGNORECASE)
_TWO_LIMITS = re.compile(r"ttft.{1,20}(?:tpot|itl)", re.IGNORECASE)
_FACTOR = re.compile(rf"\d{{1,4}} ?x ?(?={TAKEN})")  # "8 x 200G": read with the figure that it multiplies
_NAMED_CARD = re.compile(f"[{CARD}{BOX}{RACK}]")
_COUNTS = frozenset(("gpus", "nodes", "gpus_per_node"))
_PHASE = re.compile(r"(?P<prefill>\bprefill\w*|预填充)|(?P<decode>\bdecod\w+|解码)", re.IGNORECASE)
_DEGREES = re.compile(r"\b[tpeds]p\s?[=:x]?\s?\d|parallel|并行|replica|副本", re.IGNORECASE)
_GENERIC_KEY = re.compile(r"(?:d?types?|precision|format|value|name|size|degree|enabled?|mode|choice|model|default)")
_NO = re.compile(r"(?:no|false|off|none|n/a|disabled?|not (?:used|needed|required|planned)|否|无|不|不需要|关闭|不启用)\W*", re.IGNORECASE)
_YES = re.compile(r"(?:yes|true|on|enabled?|required|allowed|是|启用|开启|需要|允许)\W*", re.IGNORECASE)
_OPEN = re.compile(
    r"as many(?: \w+)? as (?:needed|necessary|required|it takes)|no (?:fixed |hard |upper )?(?:limit|cap|bound|restriction)s?|unlimited|not limited|unbounded|any number"
    r"|unconstrained|(?:to be|tbd|decide|open|up to you|your choice|whatever)|fewest|minimum (?:number )?(?:needed|possible)|as few as possible|不限|无限|没有限制|不受限|按需|任意|越少越好|尽(?:量|可能)少|最少",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.;。；\n]")
_GPU_WORD = re.compile(rf"(?<![a-z])(?:{GPU}|hardware|cluster)(?![a-z])", re.IGNORECASE)
_COUNT_KEY = re.compile(rf"(?:.*\b)?(?:(?:num(?:ber of)?|total|max(?:imum)?|how many|#|n)? ?{GPU}(?: ?(?:count|number|limit|budget|total|数量?|数))?|world size|.*卡数.*|.*数量)")
_FEWEST = re.compile(rf"(?:fewest|least|minimum number of|minimi[sz]e(?: the)?(?: number of)?|smallest number of|as few)\s?(?:possible )?{GPU}|(?:卡数?|gpu) ?(?:越少越好|最少|尽(?:量|可能)少)|(?:最少|尽(?:量|可能)少)的?(?:卡|gpu)", re.IGNORECASE)
_APART = re.compile(
    r"(?:prefill|预填充)[^.;]{0,12}(?:decod\w+|解码)[^.;]{0,40}(?:(?:different|separate|distinct|their own|dedicated) (?:cards|gpus|nodes|servers|machines|pools?|instances?)|不同的?(?:卡|机器|节点)|分开|分离)",
    re.IGNORECASE,
)
_MAY = re.compile(r"\b(?:may|can|could|might|allowed|optional\w*|possibly|permitted|if)\b|可以|可|允许|如果", re.IGNORECASE)
_MODEL_KEY = re.compile(r"(?:.* )?(?:model|llm|checkpoint|base model|model (?:name|id|path|config)|model name|模型(?:名称)?|大模型)")
_CARD_KEY = re.compile(rf"(?:.* )?{GPU}(?: ?(?:type|model|name|kind|sku|型号|类型|名称))?|hardware|硬件|算力卡|卡型|型号")
_COMPUTE = re.compile(r"flops|算力|\btops\b|\bpeak\b", re.IGNORECASE)
_OBJECTIVE_KEY = re.compile(r"(?:.* )?(?:objective|goal|optimi[sz]e(?: for)?|optimi[sz]ation(?: (?:goal|target))?|priority|optimi[sz]ation objective|优化目标|目标|优先级?)")
# "Target: TTFT 2 s" states a limit, not what to make best.
_TARGET = re.compile(r"(?:targets?|goals?|objectives?|slos?|limits?)\W{1,3}(?=(?:the )?(?:ttft|tpot|itl|latency|p\d\d|time to|throughput|tokens)\b[^,;.]{0,30}\d)", re.IGNORECASE)
_OBJECTIVES = (
    ("latency", re.compile(r"latency|ttft|tpot|speed|延迟|时延", re.IGNORECASE)),
    ("throughput", re.compile(r"throughput|tokens|吞吐", re.IGNORECASE)),
    ("cost", re.compile(r"cost|price|cheap|fewest|成本|费用|性价比", re.IGNORECASE)),
)
_DEMAND = re.compile(r"\b(?:must|shall|need\w*|require\w*|should|at (?:most|least)|no more than|only)\b|必须|需要|要求|不得|至少|至多", re.IGNORECASE)
_NOISE_KEY = re.compile(
    r"(?:.* )?(?:name|phase|type|topology|scenario|use case|driver|vendor|manufacturer|title|version|date|author|owner|team|contact|project|id|notes?|comments?|description|purpose|status|region|zone|currency|"
    r"hostname|ip|format|schema|kind|api ?version|source|link|url|架构师|作者|日期|版本|备注|名称|说明|项目|负责人)"
)
_WORD = re.compile(r"[A-Za-z\u4e00-\u9fff]{2,}")


@dataclass(slots=True)
class Names:
    """Models and cards that were named, known (`value` is the entry) or not (`value` is the words)."""

    models: list[Fact] = field(default_factory=list[Fact])
    cards: list[Fact] = field(default_factory=list[Fact])
    sizes: NodeSizes = NodeSizes()
    weights: DType | None = None  # a suffix of the model's name ("-FP8")


def read_statement(statement: Statement, facts: Facts, names: Names) -> None:
    """Read one statement into `facts` and `names`.

    Raises:
        BriefError: it contradicts itself, states the impossible or asks for a non-goal; the message names the place.
    """
    prefix, body = _plain(_prefix(statement)), _plain(statement.text)
    page = Page(prefix + body)
    start = len(page.text) - len(body)
    count, named = len(facts.items), len(names.models) + len(names.cards)
    try:
        _read_names(statement, page, names)
        if not statement.heading:
            _read_body(_Reading(statement, page, start, body.strip()), facts, names)
    except RequestError as error:
        raise BriefError(f"{statement.where}: {error.reason}") from error
    if statement.heading:
        return
    understood = len(facts.items) > count or len(names.models) + len(names.cards) > named
    _list_unread(_Reading(statement, page, start, body.strip()), facts, understood)


def _plain(text: str) -> str:
    """The normalised text, with what would be misread spelled out.

    单卡 and 单机 ("of one card", "of one server") count nothing; "weights, activations: BF16" joins the two; a product
    of degrees with its result ("TP x PP = 8 x 2 = 16") is those degrees and a number of GPUs.
    """
    text = _OF_ONE.sub(lambda match: f"每{match[1]}", normalise(text))
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


@dataclass(frozen=True, slots=True)
class _Reading:
    """A statement on its page; the body begins at `start`, after the key."""

    statement: Statement
    page: Page
    start: int
    body: str

    @property
    def key(self) -> str:
        return key_words(self.statement.path[-1]) if self.statement.keyed and self.statement.path else ""

    @property
    def asked(self) -> str:
        """The key, with the one above it where it is generic ("name")."""
        path = self.statement.path
        is_generic = len(path) > 1 and _GENERIC_KEY.fullmatch(self.key)
        return f"{key_words(path[-2])} {self.key}" if is_generic else self.key

    @property
    def in_words(self) -> bool:
        """Whether the body says more than a figure with its unit."""
        rest = self.body
        for quantity in reversed(find_quantities(self.body)):
            rest = rest[: quantity.start] + rest[quantity.end :]
        return _WORD.search(rest) is not None

    def fact(self, name: str, value: object, words: str = "") -> Fact:
        context = " : ".join(key_words(part) for part in (*self.statement.path, self.body))
        return Fact(name, value, statement_words(self.statement, words), self.statement.where, context)


def _prefix(statement: Statement) -> str:
    """The key as the words before the body; where the key is generic ("dtype"), with the key above; with the phase."""
    path = statement.path
    if not statement.keyed or not path:
        phase = _phase(path)
        return f"{phase}: " if phase and _DEGREES.search(statement.text) else ""
    key = path[-1]
    if len(path) > 1 and _GENERIC_KEY.fullmatch(key_words(key)):
        key = f"{path[-2]} {key}"
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


def _read_names(statement: Statement, page: Page, names: Names) -> None:
    """Take the names off the page; one that no catalogue knows is kept as the words that it is."""
    for mention in models.mentions(page.text):
        negated = page.is_negated(mention.start, mention.end)
        words = page.take(mention.start, mention.end, mark=MODEL)
        if not negated:
            value = words if mention.entry is None else mention.entry
            names.models.append(Fact("model", value, statement_words(statement), statement.where, words))
            names.weights = names.weights or mention.weights
    for mention in hardware.mentions(page.text):
        if mention.accelerator is None:
            words = page.take(mention.start, mention.end, mark=CARD)
            names.cards.append(Fact("accelerator", words, statement_words(statement), statement.where, words))
    claims = Claims()
    sizes = read_accelerator(page, claims)
    if "accelerator" in claims.values:
        card, words = hardware.find_accelerator(claims.values["accelerator"]), claims.words["accelerator"]
        names.cards.append(Fact("accelerator", card, statement_words(statement, words), statement.where, words))
        names.sizes = sizes


def _read_body(reading: _Reading, facts: Facts, names: Names) -> None:
    statement, page = reading.statement, reading.page
    facts.add(read_traits(statement))
    _claims(reading, facts, (read_strategy,))
    if _IN_AND_OUT.search(reading.key):
        _claims(reading, facts, (read_load,))
    elif _TWO_LIMITS.search(reading.key):
        _claims(reading, facts, (read_limits,))
    if not reading.in_words:
        _read_plain(reading, facts, names)
        return
    _claims(reading, facts, (set_aside_instructions, refuse_non_goals))
    _read_wishes(reading, facts)
    facts.add(read_figures(statement, page, reading.start, skip=_COUNTS))
    if not _COMPUTE.search(" ".join((*statement.path[-2:], statement.text))):
        _claims(reading, facts, (lambda p, c: read_precision(p, c, NamedModel()),))
    if _NAMED_CARD.search(page.text) or any(q.unit in ("gpus", "nodes") for q in find_quantities(page.text)):
        _claims(reading, facts, (lambda p, c: read_hardware(p, c, names.sizes),))
    facts.add(read_figures(statement, page, reading.start))
    readers: tuple[Reader, ...] = (read_price,) if statement.keyed else (read_price, read_limits, read_load)
    _claims(reading, facts, readers)
    _read_unknown_names(reading, names)


Reader = Callable[[Page, Claims], object]


def _claims(reading: _Reading, facts: Facts, readers: Iterable[Reader]) -> None:
    """Run readers of requests on the page, each with claims of its own, and keep what they claim as facts."""
    for reader in readers:
        claims = Claims()
        reader(reading.page, claims)
        for name, value in claims.values.items():
            facts.add([reading.fact(name, value)])
        for note in claims.readings:
            facts.reading(f"{note} ({reading.statement.where})")
        for note in claims.unread:
            facts.leave_unread(f"{note} ({reading.statement.where})")


def _read_plain(reading: _Reading, facts: Facts, names: Names) -> None:
    """A figure, a name or a yes or no under a key."""
    if _YES.fullmatch(reading.body) or _NO.fullmatch(reading.body):
        _read_wishes(reading, facts)
        return
    page = reading.page
    if _NAMED_CARD.search(page.text):
        _claims(reading, facts, (lambda p, c: read_hardware(p, c, names.sizes),))
    facts.add(read_figures(reading.statement, page, reading.start))
    _claims(reading, facts, (lambda p, c: read_precision(p, c, NamedModel()),) if _FORMAT_BODY.search(reading.body) else ())
    _read_unknown_names(reading, names)


_FORMAT_BODY = re.compile(r"(?:fp|bf|int|w)\d|awq|gptq|bit", re.IGNORECASE)


def _read_wishes(reading: _Reading, facts: Facts) -> None:
    """Objective, open counts, separate phases, relaxations, engine: what is said without a figure."""
    page, text = reading.page, reading.page.original
    is_no = _NO.fullmatch(reading.body) is not None
    _read_open(reading, facts, text)
    if reading.key and _OBJECTIVE_KEY.fullmatch(reading.key):
        named = [name for name, pattern in _OBJECTIVES if pattern.search(reading.body)]
        if named:
            facts.add([reading.fact("objective_keyed", named[0])])
    if is_no:
        claims = Claims()
        read_disaggregation(page, claims)
        if "disaggregated" in claims.values:
            facts.add([reading.fact("disaggregated", False)])
        return
    before = len(facts.items) + len(facts.readings)
    _claims(reading, facts, (read_relaxations, read_disaggregation))
    if (match := _APART.search(text)) and len(facts.items) + len(facts.readings) == before:
        if _MAY.search(text):
            facts.reading(f"{match.group()!r} read as a permission: separate prefill and decode stays open ({reading.statement.where})")
        elif not page.is_negated(*match.span()):
            facts.add([reading.fact("disaggregated", True)])
    _claims(reading, facts, (read_engine,))
    claims = Claims()
    try:
        read_objective(Page(_TARGET.sub(" ", page.text)), claims)
    except RequestError as error:
        facts.leave_unread(f"{error.reason} ({reading.statement.where})")
    if "objective" in claims.values:
        facts.add([reading.fact("objective", claims.values["objective"])])


def _read_open(reading: _Reading, facts: Facts, text: str) -> None:
    fewest = _FEWEST.search(text)
    keyed = bool(_COUNT_KEY.fullmatch(reading.key)) and not _phase_only(reading.key)
    match = _OPEN.search(reading.body)
    if fewest:
        facts.add([reading.fact("fewest", True)])
    elif match and (keyed or _near_gpu(reading.body, match)):
        facts.add([reading.fact("gpus_open", True)])


def _phase_only(key: str) -> bool:
    return bool(_PHASE.search(key))


def _near_gpu(body: str, match: re.Match[str]) -> bool:
    """Whether an open count is said of cards in its sentence: "no limit on the number of GPUs"."""
    before, after = _SENTENCE.split(body[: match.start()])[-1], _SENTENCE.split(body[match.end() :])[0]
    near = f"{before[-40:]} {after[:40]}"
    return _GPU_WORD.search(near) is not None and not re.search(r"memory|latency|budget|显存|延迟", near, re.IGNORECASE)


def _read_unknown_names(reading: _Reading, names: Names) -> None:
    """A short name under a key that asks for a model or a card, which no catalogue knows."""
    name = reading.body.split("(")[0].strip(" .,")
    left = reading.page.text[reading.start :]
    is_name = 0 < len(name) <= 80 and len(name.split()) <= 5 and _WORD.search(name) is not None
    if not is_name or MODEL in left or TAKEN in left or _NAMED_CARD.search(left) or _OPEN.search(name):
        return
    if _YES.fullmatch(name) or _NO.fullmatch(name) or any(q.unit != "count" for q in find_quantities(left)):
        return
    fact = Fact("name", name, statement_words(reading.statement), reading.statement.where, name)
    if _MODEL_KEY.fullmatch(reading.asked):
        names.models.append(fact)
    elif _CARD_KEY.fullmatch(reading.asked):
        names.cards.append(fact)


def _list_unread(reading: _Reading, facts: Facts, understood: bool) -> None:
    text = _FACTOR.sub(" ", reading.page.text[reading.start :])
    left = [q for q in find_quantities(text) if not is_word(q)]
    own = statement_words(reading.statement)
    if left and not (reading.key and _NOISE_KEY.fullmatch(reading.key)):
        facts.leave_unread(f"{left[0].words!r} was not understood in: {own}")
    elif not understood and not left and (reading.key or _DEMAND.search(reading.body)):
        noise = reading.key and _NOISE_KEY.fullmatch(reading.key)
        if not noise and not any(reading.statement.where in note for note in facts.readings):
            facts.leave_unread(f"not understood: {own}")
