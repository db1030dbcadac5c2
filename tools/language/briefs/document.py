"""A brief as one page of text, with what only briefs state taken off it: a card's figures, a model's dimensions, names.

What a request may state as well is left on the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ...catalog import hardware, model_mentions
from ..conflicts.claims import Claims
from ..model.precisions import FORMAT
from ..model.unknown_names import counted_parts, own_cards
from ..patterns.gated import Gated
from ..patterns.page import APART, BARRIER, CARD, MODEL, STATISTIC, Page
from ..patterns.quantities import find_quantities
from ..unread_words import list_unread
from ..writing.prepared_text import mended
from .counts import with_counts_joined
from .facts import Fact, Facts, statement_words
from .fields import GPU
from .figures import read_figures
from .key_words import key_words
from .layout import Line, lines_of, places_of, why_aside, without_asides
from .model import DESCRIBES, read_traits
from .statements import Statement

_MODEL_KEY = Gated(
    r"(?:.* )?(?:model|llm|checkpoint|base model|model (?:name|id|path|config)|(?:model|architecture) card(?: name)?|"
    r"模型(?:名称)?|大模型)"
)
_NAME = r"(?:type|model|name|kind|sku|product|designation|part(?: (?:no|number))?|chip|型号|类型|名称|产品)"
_CARD_KEY = Gated(rf"(?:.* )?{GPU}(?: ?{_NAME})?|hardware|硬件|算力卡|卡型|型号")
_WIDE_KEYS = ("hardware", "硬件")  # these may hold any words: only what looks like a part is a card
_ASKS_NAME = re.compile(rf"{_NAME}$")
_PLAIN_ANSWER = Gated(
    r"(?:no|false|off|none|n/a|yes|true|on|any|open|unlimited|as many.*|no limit.*|不限.*|无限.*|否|是)\W*|"
    # not decided yet
    r"(?:tb[dca]|to be (?:decided|confirmed|announced|chosen)|not (?:yet )?(?:chosen|decided|known|selected|final)|"
    r"undecided|unknown|pending|still open|待[定选]|[未尚没]定|待确认)(?:\W.*)?",
)
_WORDS_OF_REASON = re.compile(r"'(?:[^'\\]|\\.){1,400}'|\"(?:[^\"\\]|\\.){1,400}\"")
_TFLOPS = "card.tflops"
_DESCRIBES_CARD = {_TFLOPS, "card.memory_bytes", "card.memory_bandwidth"}
_ORDER = Gated(r"\b(?:must|shall|keep|leave|never|at (?:most|least)|no more than|only)\b|必须|不得|至少|至多")
_WANT = Gated(r"\b(?:need\w*|require\w*|should)\b|需要|要求")
_PRODUCT = "product|tenant|business unit|department|org"
# Keys that say nothing about the deployment.
_FOREIGN_KEY = Gated(
    r"(?:.* )?(?:author|owner|team|contact|date|sponsor|ticket|prepared by|requested by|requester|reviewed|"
    r"ref(?:erence)?|our ref|your ref|approved(?: by)?|reviewers?|cost ?cent(?:er|re)|subject|"
    r"status|revision|room|rack|address|phone|(?:image |container |docker )?tag|"
    rf"{_PRODUCT}|(?:request|customer|user|job|run|brief) (?:id|no|number)|"
    r"document(?: id| no)?|e ?mail|license|invoice|联系人|作者|日期|负责人|申请人|审批人?|编号|工单|机房|机柜"
    r"|地址|电话|状态)"
    r"|re|from|cc|sent(?: (?:by|to))?|(?:(?:reply|copy|attention) )?to"
)
# The name under which a model is served, beside the model: "endpoint: kimi-k2".
_SERVED_AS_KEY = Gated(r"(?:.* )?(?:endpoint|alias|slug|served (?:model )?name)(?: name)?")
_NAMES_MODEL = Gated(r"(?:llm |base )?model(?: (?:name|id|repo(?:sitory)?))?|模型(?:名称)?")
_PRODUCT_KEY = Gated(rf"(?:.* )?(?:{_PRODUCT})")
# "Subject: Re: Re: DeepSeek sizing" has the words of an older mail.
_REPLY = Gated(r"(?:subject|betreff|objet|主题)\s?[:：]\s?(?:re|aw|fwd?|wg|sv|rv|答复|回复|转发)\s?[:：]")
_NOISE_KEY = Gated(
    r"(?:.* )?(?:name|brief|subject|phase|type|topology|scenario|use case|driver|vendor|manufacturer|maker|title|"
    r"version|date|author|owner|team|contact|project|service|id|notes?|comments?|description|purpose|status|region|zone|"
    r"currency|"
    r"hostname|ip|format|schema|kind|api ?version|source|link|url|架构师|作者|日期|版本|备注|名称|说明|"
    r"项目|负责人|厂[家商]|供应商)"
)


def _tells_a_load(key: str, text: str) -> bool:
    """Whether the line that names a product or its users says how many they are: "product: chat, 40 users at once"."""
    return bool(_PRODUCT_KEY.fullmatch(key)) and any(quantity.unit != "count" for quantity in find_quantities(text))


class Document(Struct, frozen=True):
    """The lines of a brief on one page, the `facts` on its card and model, and names that no catalogue has."""

    lines: tuple[Line, ...]
    page: Page
    facts: Facts
    models: tuple[Fact, ...] = ()
    cards: tuple[Fact, ...] = ()

    @classmethod
    def of(cls, statements: Sequence[Statement], *, has_config: bool = False) -> Document:
        """Lay the statements out and take off the page what only briefs state; `has_config`: beside a model config."""
        facts = Facts()
        models: list[Fact] = []
        cards: list[Fact] = []
        pages: list[Page] = []
        line_facts: list[tuple[Fact, ...]] = []
        statements, aside = without_asides(statements)
        for entry in aside:
            facts.reading(f"{entry.text[:160]!r} ({entry.where}) {why_aside(entry)}, and was set aside")
        lines = lines_of(with_counts_joined(statements))
        has_model = any(_NAMES_MODEL.fullmatch(line.key) for line in lines)
        has_known_card = any(mention.accelerator for line in lines for mention in hardware.mentions(line.text))
        for line in lines:
            settled = mended(line.text)
            spelled = [f"{written!r} read as {meant!r}" for written, meant in settled.slips]
            for note in (*spelled, *settled.notes, *settled.lengths.values()):
                facts.reading(f"{note} ({line.statement.where})")
            page = Page(settled.text)
            pages.append(page)
            is_named = _with_names(page).text != page.text and not _REPLY.match(line.text)
            is_named = is_named or _CARD_KEY.fullmatch(_asked(line.statement)) is not None  # "accelerator", "product"
            is_foreign = _FOREIGN_KEY.fullmatch(line.key) and not is_named and not _tells_a_load(line.key, page.text)
            is_name = " " not in line.statement.text.strip()
            if is_foreign or (has_model and is_name and _SERVED_AS_KEY.fullmatch(line.key)):
                page.take(0, len(page.text))
                line_facts.append(())
                continue
            _read_unknown_name(line, page, models, cards)
            if not has_known_card:
                _read_counted_name(line, page, cards)
            facts.add(read_traits(line.statement))
            line_facts.append(read_figures(line.statement, _with_names(page), line.start))
        if (
            not cards
            and not has_known_card
            and _DESCRIBES_CARD.issubset(fact.field for facts in line_facts for fact in facts)
        ):
            for line, page in zip(lines, pages, strict=True):
                _read_counted_name(line, page, cards, counted_parts)
        if not models:
            _read_name_of_described(lines, pages, line_facts, models)
        for page, stated in zip(pages, _of_parts(lines, line_facts, has_config, bool(cards)), strict=True):
            _take(page, stated)
            facts.add(stated)
        whole = Page(BARRIER.join(page.original for page in pages))
        whole.text = BARRIER.join(page.text for page in pages)
        return cls(lines, whole, facts, tuple(models), tuple(cards))

    def list_unread(self, claims: Claims) -> None:
        """List the figures that nothing read, and keyed or demanding lines that were not understood."""
        at = 0
        parts = self.page.original.split(BARRIER) if self.lines else ()  # a config alone has no line
        for line, length in zip(self.lines, map(len, parts), strict=True):
            end = at + length
            text, original = self.page.text[at + line.start : end], self.page.original[at:end]
            is_order = _ORDER.search(line.text) is not None
            if line.key and _NOISE_KEY.fullmatch(line.key) and not is_order:
                self.page.take(at, end)
            elif (line.key or is_order or _WANT.search(line.text)) and not self._is_read(claims, line, text, original):
                claims.leave_unread(f"not understood: {original.strip()[:160]!r}")
            at = end + len(BARRIER)
        list_unread(self.page, claims)

    def _is_read(self, claims: Claims, line: Line, text: str, original: str) -> bool:
        """Whether anything was read from a line, or it still holds a figure, which is listed by itself."""
        where, body = line.statement.where, original[line.start :]
        is_part = any(fact.where == where for fact in (*self.facts.items, *self.models, *self.cards))
        notes = (*claims.words.values(), *claims.readings, *claims.unread)
        is_reported = any(words in original or body.strip() in words for words in notes)
        is_taken = text != body and text.strip(f"{STATISTIC} ") != ""  # a percentile alone is of nothing
        return is_taken or is_part or is_reported or len(find_quantities(text)) > 0

    def place(self, words: str) -> str:
        """The first place of words in the brief, "" where it does not have them."""
        places = places_of(self.lines, self.page.original, words)
        return places[0] if places else ""

    def placed(self, reason: str) -> str:
        """A reason of the reader, with the place of each quotation behind it."""
        reason = without_marks(reason)
        quoted = list(_WORDS_OF_REASON.finditer(reason))
        places: list[str] = []
        for i, match in enumerate(quoted):
            words = match.group()[1:-1].replace("\\n", "\n")
            quote_places = places_of(self.lines, self.page.original, words)
            again = any(earlier.group() == match.group() for earlier in quoted[:i])
            places.append(quote_places[-1 if again else 0] if quote_places else "")
        for i in reversed(range(len(quoted))):
            if places[i] and places[i] not in places[i + 1 : i + 2]:
                reason = f"{reason[: quoted[i].end()]} ({places[i]}){reason[quoted[i].end() :]}"
        return reason

    def words(self, words: str) -> str:
        """Words of a field as a person sees them in the report: the line that they stand in, and its place."""
        words = without_marks(words)
        parts = [words] if self.page.original.find(words) >= 0 else re.split(r"[;,+] ", words)
        shown = [f"{part} ({where})" if (where := self.place(part)) else part for part in parts]
        return "; ".join(dict.fromkeys(shown))[:400]


def without_marks(words: str) -> str:
    """Words of a line, or a message that quotes them, as a person sees them."""
    return words.replace(APART, "").replace(ascii(APART)[1:-1], "")


def _with_names(page: Page) -> Page:
    """A copy of a page on which the names of models and cards are marked, so that their digits are no figures."""
    named = Page(page.original)
    named.text = page.text
    for mention in model_mentions.mentions(page.text):
        named.take(mention.start, mention.end, mark=MODEL)
    for card in hardware.mentions(named.text):
        named.take(card.start, card.end, mark=CARD)
    return named


def _of_parts(
    lines: Sequence[Line], line_facts: Sequence[tuple[Fact, ...]], has_config: bool, has_own_card: bool
) -> list[tuple[Fact, ...]]:
    """By line, the figures of a card or model that the brief describes, without stray ones of sentences.

    A model is described by its layers or its width, a card by a name that no catalogue has, by its peak or its
    bandwidth, or by a key for its memory.
    """
    fields = {fact.field for facts in line_facts for fact in facts}
    has_model = has_config or bool(fields & {"model.num_hidden_layers", "model.hidden_size"})
    of_card = {_TFLOPS, "card.memory_bandwidth", "card.compute_efficiency", "card.memory_efficiency"}
    has_card = has_own_card or bool(fields & of_card)
    described: list[tuple[Fact, ...]] = []
    for line, facts in zip(lines, line_facts, strict=True):
        keyed = has_card or "mem" in line.key or "显存" in line.key
        described.append(tuple(f for f in facts if (has_model if f.field.startswith("model.") else keyed)))
    return described


def _take(page: Page, facts: Sequence[Fact]) -> None:
    """Take figures of parts off the page, and the formats that peaks are stated for."""
    for fact in facts:
        if fact.quantity is not None:
            page.take(fact.quantity.start, fact.quantity.end)
    if any(fact.field == _TFLOPS for fact in facts):
        page.take_all(FORMAT)


def _read_unknown_name(line: Line, page: Page, models: list[Fact], cards: list[Fact], asked: str = "") -> None:
    """Read a short name that no catalogue knows, under a key (or what was `asked`) that asks for a model or a card."""
    asked, body = asked or _asked(line.statement), page.text[line.start :]
    name = body.split("(")[0]
    if _ASKS_NAME.search(asked):  # "card type: X200, 8 per server": the first of several things is the name
        name = re.split(r"[,;]", name)[0]
    end = line.start + len(name)
    name = name.strip(" ,").rstrip(".")
    is_name = 0 < len(name) <= 80 and len(name.split()) <= 5 and any(c.isalpha() for c in name)
    if not is_name or _PLAIN_ANSWER.fullmatch(name) or any(_is_figure(name, q.start) for q in find_quantities(name)):
        return
    if any(m.entry for m in model_mentions.mentions(name)) or any(m.accelerator for m in hardware.mentions(name)):
        return
    fact = Fact("name", name, statement_words(line.statement), line.statement.where, name)
    if _MODEL_KEY.fullmatch(asked):
        models.append(fact)
    elif _CARD_KEY.fullmatch(asked) and (asked not in _WIDE_KEYS or any(c.isdigit() for c in name)):
        cards.append(fact)
    else:
        return
    page.take(line.start, end)


def _read_name_of_described(
    lines: Sequence[Line], pages: Sequence[Page], line_facts: Sequence[tuple[Fact, ...]], models: list[Fact]
) -> None:
    """Read the name that stands as a key beside the dimensions of a model, whatever it is called above both."""
    described = {f"model.{name}" for name in DESCRIBES}
    places = {
        line.statement.path[:-1]
        for line, stated in zip(lines, line_facts, strict=True)
        if described & {fact.field for fact in stated}
    }
    for line, page in zip(lines, pages, strict=True):
        if line.key == "name" and line.statement.path[:-1] in places:
            _read_unknown_name(line, page, models, [], asked="model name")


def _read_counted_name(
    line: Line,
    page: Page,
    cards: list[Fact],
    named: Callable[[str], Iterator[tuple[int, int, str]]] = own_cards,
) -> None:
    """Read the name of a card that no catalogue has, where it is counted: "8 x Orion accelerators"."""
    for start, end, name in named(page.text):
        page.take(start, end, mark=CARD)
        cards.append(Fact("name", name, statement_words(line.statement), line.statement.where, name))


def _asked(statement: Statement) -> str:
    """The key in plain words, behind the key above it where it is generic ("name")."""
    path = [key_words(part) for part in statement.path] if statement.keyed else []
    is_generic = len(path) > 1 and _ASKS_NAME.fullmatch(path[-1])
    return " ".join(path[-2:] if is_generic else path[-1:])


def _is_figure(name: str, start: int) -> bool:
    """Whether a number is a figure of its own, not part of a name ("TPX-3")."""
    return start == 0 or name[start - 1].isspace()
