"""The foreign reader: turns any text or object that proposes a strategy into a document of our format.

It also reads the sentences around the proposal or in its place. Only what is certain is taken; all else is noted and
left out, never guessed. A document in our format stays as it is, with its compact form expanded. The reader never
raises, completes nothing, and judges nothing.

Sentences add only what the proposal itself does not state, and nothing that they state in two ways. A text that
contradicts itself is read sentence by sentence; a sentence that contradicts itself is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ...catalog import hardware, model_mentions
from ...errors import InputError
from ...input.strict_values import cleaned, whole_characters
from ...plan.compact import expand
from ...plan.describe import read_shorthand
from ...plan.document import PHASES
from ...plan.elements import as_mapping
from ...plan.latency_limits import LATENCY_FIELDS
from ...plan.plan_size import excess_of
from ...plan.reader import collector_paused
from .assemble import assemble
from .lexicon import any_case
from .notes import Note, Notes
from .own_format import own_document, own_header
from .scope import Scope
from .text import Extract, extract
from .walker import UNPLANNED, Walker
from .words import Degrees, counts_in, degrees_in, said_in

if TYPE_CHECKING:
    from ...language.said import Said


__all__ = ["Note", "ReadProposal", "read_proposal"]


class ReadProposal(Struct, frozen=True):
    """A proposal as read: the document as far as it goes (`None` if nothing of a plan was found), and the notes.

    `assumed` are the phases whose `tp_ffn` nobody stated; it was taken from the TP.
    """

    document: dict[str, Any] | None
    notes: tuple[Note, ...]
    assumed: frozenset[str] = frozenset()


@collector_paused()
def read_proposal(source: str | Mapping[str, Any]) -> ReadProposal:
    """Read a proposal in any form. Never raises."""
    notes = Notes()
    if isinstance(source, str):
        extracted = extract(whole_characters(source), notes)
    else:
        value, faults = cleaned(source)
        extracted = Extract(value)
        for fault in faults:
            notes.unclear(fault.reason, fault.pointer or "/")
    value = extracted.value
    ours = own_document(value)
    if ours is not None:
        return ReadProposal(_expanded(ours, notes), notes.all())
    walker = Walker(notes, is_cut=extracted.is_cut)
    header = own_header(value)
    if value is not None:
        walker.walk(_without(value, header.keys() - _READ_OF_ALL), Scope())
    if extracted.prose:
        read_prose(extracted, walker, alone=value is None or not walker.facts.says_degrees())
    document = {**assemble(walker, notes), **header}
    if not document:
        notes.unclear("nothing that a plan holds was found", "/")
        return ReadProposal(None, notes.all())
    return ReadProposal(document, notes.all(), frozenset(phase for phase, _ in walker.facts.of("assumed")))


def _without(value: object, names: Collection[str]) -> object:
    return {name: member for name, member in as_mapping(value).items() if name not in names} if names else value


def _expanded(document: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    if excess_of(document) is not None:
        return dict(document)
    raw, faults = expand(document)
    for fault in faults:
        notes.unclear(fault.message, fault.path)
    return raw


# Blocks of our format that say what a graph in another form means.
_READ_OF_ALL = frozenset({"model", "hardware", "precision", "strategy"})
_MAX_CHARS = 20_000
# A text with more figures is no prose, and reading it would take seconds: only its beginning is read, in pieces.
_MOST_FIGURES = 400
_MOST_AT_ONCE = 4_000
_PIECE = re.compile(rf"[\s\S]{{1,{_MOST_AT_ONCE}}}(?:\n|\Z)|[\s\S]{{1,{_MOST_AT_ONCE}}}")
_MOST_LINES = 100
_LONGEST_SENTENCE = 1_000
_KEY_LINE = re.compile(
    r"^[ \t-]{0,40}[\w\u4e00-\u9fff\"'][\w .\u4e00-\u9fff/\"'-]{0,60}[:：=][^\n]{0,2000}$", re.MULTILINE
)
_FLAG = re.compile(r"(?<!\S)(?:--[A-Za-z][\w-]{0,60}|-[a-z]{1,3}(?=[ =]\d))(?:[= ](?!-)\S{1,200})?")
_FIGURE = re.compile(r"\d+")
_SENTENCE = re.compile(r"[\n;；。]|\.\s")
_UNPLANNED = {
    "speculative": any_case(r"speculative[ -](?:decoding|sampling)|speculation|投机(?:解码|采样)"),
    "lora": any_case(r"(?<![a-z_-])q?loras?(?![a-z_])"),
}
# A figure without a word that says what it is may be part of a calculation.
_UNNAMED = any_case(r"\d[\d.,]*\s?[km万千]?\s?(?:tok(?:en)?s?|requests?|词元)?")
_LIMITS = (*LATENCY_FIELDS, "request_rate")
_LOAD = {
    **{name: f"workload.{name}" for name in ("input_tokens", "output_tokens", "concurrency")},
    **{name: f"precision.{name}" for name in ("weights", "kv_cache", "activations")},
}
_DENIED = any_case(r"(?:\b(?:no|not|without|never|non)\b|不|无|没)[^.,;\n。，；]{0,20}$")


def read_prose(source: Extract, walker: Walker, *, alone: bool) -> None:
    """Claim what the text of `source` adds to earlier claims; degrees only if it is `alone`."""
    facts, where = walker.facts, "the text" if alone else "the text around"
    text = _planned(_readable(source.prose), walker, where)
    # If the text is the proposal itself, its flags and its lines of a key and a value were read as such.
    keyless = _FLAG.sub(" ", _KEY_LINE.sub("", text) if source.holds_keys else text)
    option = text if source.recommended is None else _readable(source.recommended)
    short = _in_shorthand(option) if alone else None
    statements = list(_statements(keyless, walker, where, alone=alone))
    if not facts.has("config") and not facts.has("model"):
        _model(text, statements, walker, where)
    _hardware("" if keyless == text else text, statements, walker, where)
    if short is not None:
        _degrees([short], walker, where)
    elif alone:
        stated = statements if source.recommended is None else list(_statements(option, walker, where, alone=True))
        _degrees([degrees_in(strategy) for strategy in _strategies(stated, option)], walker, where)
    if any(map(facts.has, ("model", "config", "accelerator"))) or facts.says_degrees():  # load alone is no proposal
        _load(statements, walker, where)


def _readable(text: str) -> str:
    """The beginning of the text, as far as reading it is worth the time."""
    figure = next(islice(_FIGURE.finditer(text, 0, _MAX_CHARS), _MOST_FIGURES, None), None)
    return text[: _MAX_CHARS if figure is None else figure.start()]


def _planned(text: str, walker: Walker, where: str) -> str:
    """The text without words for what is not planned; these are noted unless they are negated."""
    for concept, pattern in _UNPLANNED.items():
        before = [text[max(0, match.start() - 30) : match.start()] for match in pattern.finditer(text)]
        if not all(map(_DENIED.search, before)):
            walker.notes.unclear(UNPLANNED[concept], where)
        text = pattern.sub(" ", text)
    return text


def _statements(text: str, walker: Walker, where: str, *, alone: bool) -> Iterator[Said]:
    """What the text says; if it contradicts itself, what each of its sentences says."""
    for piece in filter(str.strip, _PIECE.findall(text)):
        whole = said_in(piece)
        for said in [whole] if not isinstance(whole, InputError) else map(said_in, _sentences(piece)):
            if not isinstance(said, InputError):
                yield said
            elif alone or said.field != "strategy":
                walker.notes.unclear(said.reason, where)


def _sentences(text: str) -> Iterator[str]:
    sentences = _SENTENCE.split(text)
    return islice(
        (sentence for sentence in sentences if sentence.strip() and len(sentence) <= _LONGEST_SENTENCE), _MOST_LINES
    )


def _strategies(statements: list[Said], text: str) -> Iterator[Any]:
    """The strategies that are stated; if a text compares several, those of its single sentences."""
    from ...language.layouts.whole_strategy import with_ruled_out

    for only in (statements, (said for said in map(said_in, _sentences(text)) if not isinstance(said, InputError))):
        stated = [with_ruled_out(said.strategy, said.constraints) for said in only]
        if any(stated):
            yield from filter(None, stated)
            return


def _degrees(stated: list[Degrees], walker: Walker, where: str) -> None:
    """Claim degrees, and that the phases are served apart if the replicas of both are counted."""
    for degrees in stated:
        if all("replicas" in degrees.get(phase, ()) for phase in PHASES):
            walker.facts.claim("separate", True, where, weak=True)
        walker.claim_degrees(degrees, Scope(where))


def _in_shorthand(text: str) -> Degrees | None:
    """The degrees of the text, or of its first line, in shorthand with replicas of each phase or layers of stages."""
    for line in [text, *text.splitlines()[:_MOST_LINES]]:
        short = read_shorthand(line.strip(" \t\n.`*-"))
        if short is not None and {"replicas", "stage_layers"} & {*short["prefill"], *short["decode"]}:
            return {None: {"dp": short["dp"]} if "dp" in short else {}, **{phase: short[phase] for phase in PHASES}}
    return None


def _claim(walker: Walker, stated: list[tuple[str, Any]], where: str) -> None:
    """Claim fields without earlier claims; if a field is stated in two ways, neither is taken."""
    fresh = {field for field, _ in stated if not walker.facts.has(field)}
    for field, value in stated:
        if field in fresh and value is not None:
            walker.facts.claim(field, value, where)


def _model(text: str, statements: list[Said], walker: Walker, where: str) -> None:
    """Claim the model, also from a line of a key or a command."""
    if any(said.model for said in statements):
        _claim(walker, [("model", said.model) for said in statements], where)
        return
    named = {match.entry.name: match.words for match in model_mentions.mentions(text) if match.entry is not None}
    if len(named) == 1:
        walker.model_name(next(iter(named.values())), Scope(where))


def _hardware(text: str, statements: list[Said], walker: Walker, where: str) -> None:
    """Claim the accelerator with the counts beside it; the only one in `text` if the sentences name none."""
    facts = walker.facts
    named = {said.accelerator for said in statements} - {None} or {
        None if match.accelerator is None else match.accelerator.id for match in hardware.mentions(text)
    }
    accelerator = named.pop() if len(named) == 1 else None
    if accelerator is None or facts.get("accelerator") not in (None, accelerator):
        return
    facts.claim("accelerator", accelerator, where, weak=True)
    counts = [pair for said in statements if said.accelerator for pair in counts_in(said).items()]
    shown = (f"hardware: {accelerator}", *(f"{name} {number}" for name, number in dict(counts).items()))
    walker.notes.read(", ".join(shown), where)
    if all(facts.get(name) in (None, number) for name, number in counts) and not facts.has("total"):
        _claim(walker, counts, where)


def _load(statements: list[Said], walker: Walker, where: str) -> None:
    """Claim load and number formats; limits are only noted, since what a text expects of a plan is no request."""
    facts, notes = walker.facts, walker.notes
    stated = dict.fromkeys(
        (field, name, getattr(said, name))
        for said in statements
        for name, field in _LOAD.items()
        if name in said.words and not _UNNAMED.fullmatch(said.words[name])
    )
    for field, name, value in stated:
        if facts.get(field) not in (None, value):
            notes.unclear(f"{name} {value} here, {facts.get(field)} in the proposal, which counts", where)
        elif not facts.has(field):
            notes.read(f"{name} {value}", where)
    _claim(walker, [(field, value) for field, _, value in stated], where)
    words = [said.words.get(name) for said in statements for name in _LIMITS if not facts.has(f"workload.{name}")]
    for limit in filter(None, words):
        notes.unclear(f"{limit!r}: a limit is read only from a key", where)
