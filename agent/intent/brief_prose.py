"""One statement of a brief, read: names first, then figures by the table, then the words as a request's are read.

The readers of requests are used as they are for what is said in words. It refuses to read a statement twice: what one
reader takes off the page, the next one does not see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ...tools.catalog import hardware, model_mentions
from ...tools.catalog.dtypes import DType
from .brief_facts import Fact, Facts, statement_words
from .brief_figures import read_figures
from .brief_lexicon import GPU
from .brief_model import read_traits
from .brief_qualifiers import is_word, statistics_in
from .brief_reading import Reader, Reading, lay_out, run_readers
from .brief_statements import Statement
from .brief_wishes import OPEN, read_wishes
from .claims import Claims
from .constraint_words import read_constraints
from .errors import BriefError, RequestError
from .hardware_words import read_hardware
from .limit_words import read_limits
from .load_words import read_load
from .names import NamedModel, NodeSizes, read_accelerator
from .page import BOX, CARD, MODEL, RACK, TAKEN, Page
from .permission_words import allow_stated
from .precision_words import read_precision
from .quantities import Quantity, find_quantities
from .refusals import refuse_non_goals, set_aside_instructions
from .serving_words import read_price
from .strategy_words import read_strategy

_IN_AND_OUT = re.compile(
    r"(?:input|prompt|isl|\bin\b|输入).{1,20}(?:output|completion|osl|\bout\b|generat\w+|response|输出)", re.IGNORECASE
)
_TWO_LIMITS = re.compile(r"ttft.{1,20}(?:tpot|itl)", re.IGNORECASE)
_FACTOR = re.compile(rf"\d{{1,4}} ?x ?(?={TAKEN})")  # "8 x 200G": read with the figure that it multiplies
_NAMED_CARD = re.compile(f"[{CARD}{BOX}{RACK}]")
_COUNTS = frozenset(("gpus", "nodes", "gpus_per_node"))
_MODEL_KEY = re.compile(
    r"(?:.* )?(?:model|llm|checkpoint|base model|model (?:name|id|path|config)|model name|模型(?:名称)?|"
    r"大模型)"
)
_CARD_KEY = re.compile(
    rf"(?:.* )?{GPU}(?: ?(?:type|model|name|kind|sku|型号|类型|名称))?|hardware|硬件|算力卡|卡型|型号"
)
# A throughput of one card, which requests do not have; two statistics of a limit, of which the smallest is kept.
_PER_GPU = re.compile(rf"(?:(?:per|/|each) ?{GPU}|每卡)", re.IGNORECASE)
_WIDE_KEYS = ("hardware", "硬件")  # these may hold any words: only what looks like a part is a card
_ASKS_NAME = re.compile(r"(?:type|model|name|kind|sku|型号|类型|名称)$")
_COMPUTE = re.compile(r"flops|算力|\btops\b|\bpeak\b", re.IGNORECASE)
_FORMAT_BODY = re.compile(r"(?:fp|bf|int|w)\d|awq|gptq|bit", re.IGNORECASE)


_DEMAND = re.compile(
    r"\b(?:must|shall|need\w*|require\w*|should|at (?:most|least)|no more than|only)\b|必须|需要|要求|不得|至少|"
    r"至多",
    re.IGNORECASE,
)
_NOISE_KEY = re.compile(
    r"(?:.* )?(?:name|brief|subject|phase|type|topology|scenario|use case|driver|vendor|manufacturer|title|version|"
    r"date|author|owner|team|contact|project|id|notes?|comments?|description|purpose|status|region|"
    r"zone|currency|"
    r"hostname|ip|format|schema|kind|api ?version|source|link|url|架构师|作者|日期|版本|备注|名称|说明|项目|负责人)"
)


@dataclass(slots=True)
class Names:
    """Models and cards that were named, known (`value` is the entry) or not (`value` is the words)."""

    models: list[Fact] = field(default_factory=list[Fact])
    cards: list[Fact] = field(default_factory=list[Fact])
    in_headings: list[Fact] = field(default_factory=list[Fact])
    folder: Path = Path()  # what a path in the brief is relative to
    sizes: NodeSizes = field(default_factory=NodeSizes)
    weights: DType | None = None  # a suffix of the model's name ("-FP8")

    def settle(self) -> None:
        """Where nothing but a heading names the model or the card, that name counts."""
        self.models = self.models or [fact for fact in self.in_headings if fact.field == "model"]
        self.cards = self.cards or [fact for fact in self.in_headings if fact.field == "accelerator"]


def read_statement(statement: Statement, facts: Facts, names: Names) -> None:
    """Read one statement into `facts` and `names`.

    Raises:
        BriefError: it contradicts itself, states the impossible or asks for a non-goal; the message names the place.
    """
    reading = lay_out(statement)
    count, before = len(facts.items), (len(names.models), len(names.cards))
    try:
        _read_names(statement, reading.page, names)
        if not statement.heading:
            _read_body(reading, facts, names)
    except RequestError as error:
        if statement.heading:  # "from A100 to H100": what the brief is about is said under the title
            return
        raise BriefError(f"{statement.where}: {error.reason}") from error
    if statement.heading:
        names.in_headings += [*names.models[before[0] :], *names.cards[before[1] :]]
        del names.models[before[0] :], names.cards[before[1] :]
    else:
        understood = len(facts.items) > count or (len(names.models), len(names.cards)) != before
        _list_unread(reading, facts, understood)


def _read_names(statement: Statement, page: Page, names: Names) -> None:
    """Take the names off the page; one that no catalogue knows is kept as the words that it is."""
    for mention in model_mentions.mentions(page.text):
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


def _read_strategy(page: Page, claims: Claims) -> None:
    read_strategy(page, claims)
    allow_stated(claims)


def _read_body(reading: Reading, facts: Facts, names: Names) -> None:
    statement, page = reading.statement, reading.page
    facts.add(read_traits(statement))
    run_readers(reading, facts, (read_constraints, _read_strategy))
    if _IN_AND_OUT.search(reading.key):
        run_readers(reading, facts, (read_load,))
    elif _TWO_LIMITS.search(reading.key):
        run_readers(reading, facts, (read_limits,))
    _read_unknown_names(reading, names)
    if not reading.in_words:
        _read_plain(reading, facts, names)
        return
    run_readers(reading, facts, (set_aside_instructions, refuse_non_goals))
    read_wishes(reading, facts)
    if not statement.keyed and not _PER_GPU.search(reading.body) and len(set(statistics_in(reading.body.lower()))) < 2:
        run_readers(reading, facts, (read_limits,))  # a sentence, as requests are made of
    facts.add(read_figures(statement, page, reading.start, skip=_COUNTS))
    if not _COMPUTE.search(" ".join((*statement.path[-2:], statement.text))):
        run_readers(reading, facts, (lambda p, c: read_precision(p, c, NamedModel()),))
    if _NAMED_CARD.search(page.text) or any(q.unit in ("gpus", "nodes") for q in find_quantities(page.text)):
        run_readers(reading, facts, (lambda p, c: read_hardware(p, c, names.sizes),))
    facts.add(read_figures(statement, page, reading.start))
    readers: tuple[Reader, ...] = (read_price,) if statement.keyed else (read_price, read_load)
    run_readers(reading, facts, readers)


def _read_plain(reading: Reading, facts: Facts, names: Names) -> None:
    """A figure, a name or a yes or no under a key."""
    if reading.is_yes or reading.is_no:
        read_wishes(reading, facts)
        return
    page = reading.page
    if _NAMED_CARD.search(page.text):
        run_readers(reading, facts, (lambda p, c: read_hardware(p, c, names.sizes),))
    facts.add(read_figures(reading.statement, page, reading.start))
    if _FORMAT_BODY.search(reading.body):
        run_readers(reading, facts, (lambda p, c: read_precision(p, c, NamedModel()),))


def _read_unknown_names(reading: Reading, names: Names) -> None:
    """A short name under a key that asks for a model or a card, which no catalogue knows."""
    left = reading.page.text[reading.start :].split("(")[0]
    if _ASKS_NAME.search(reading.asked):  # "card type: X200, 8 per server": the first of several things is the name
        left = re.split(r"[,;]", left)[0]
    name = left.strip(" ,").rstrip(".")
    is_name = 0 < len(name) <= 80 and len(name.split()) <= 5 and any(c.isalpha() for c in name)
    if not is_name or MODEL in left or TAKEN in left or _NAMED_CARD.search(left) or OPEN.search(name):
        return
    if reading.is_yes or reading.is_no or any(not _is_in_word(left, q) for q in find_quantities(left)):
        return
    fact = Fact("name", name, statement_words(reading.statement), reading.statement.where, name)
    if _MODEL_KEY.fullmatch(reading.asked):
        names.models.append(fact)
    elif _CARD_KEY.fullmatch(reading.asked) and (reading.key not in _WIDE_KEYS or any(c.isdigit() for c in name)):
        names.cards.append(fact)
    else:
        return
    reading.page.take(reading.start, reading.start + len(left))


def _is_in_word(text: str, quantity: Quantity) -> bool:
    """Whether a number is part of a name ("TPX-3"), not a figure of its own."""
    return quantity.unit == "count" and quantity.start > 0 and not text[quantity.start - 1].isspace()


def _list_unread(reading: Reading, facts: Facts, understood: bool) -> None:
    text = _FACTOR.sub(" ", reading.page.text[reading.start :])
    left = [q for q in find_quantities(text) if not is_word(q)]
    own = statement_words(reading.statement)
    if left and not (reading.key and _NOISE_KEY.fullmatch(reading.key)):
        facts.leave_unread(f"{left[0].words!r} was not understood in: {own}")
    elif not understood and not left and (reading.key or _DEMAND.search(reading.body)):
        noise = reading.key and _NOISE_KEY.fullmatch(reading.key)
        if not noise and not any(reading.statement.where in note for note in facts.readings):
            facts.leave_unread(f"not understood: {own}")
