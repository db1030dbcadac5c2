"""A request in English or Chinese, read deterministically into `Said`: what it states, with the words of each field.

Each reader takes its words off one page, the most telling first: names, instructions and non-goals, formats, degrees,
counts, limits, lengths. What looks like a demand and was not understood is listed in `Said.unread`. It refuses requests
that contradict themselves or ask the impossible, completes nothing, and obeys nothing: words are data.
"""

from __future__ import annotations

from ..catalog.model_mentions import mentions
from ..errors import expect
from ..input.strict_values import HALF_A_CHARACTER, is_text
from .briefs.rows import with_row_under_its_keys
from .conflicts.alternatives import with_later_figures
from .conflicts.claims import Claims
from .conflicts.counts import check_counts
from .conflicts.evidence import Grade, grade
from .conflicts.other_systems import set_aside_others
from .conflicts.past_words import note_past
from .conflicts.set_aside import (
    set_aside_denied,
    set_aside_former,
    set_aside_rejected,
    set_aside_replaced,
    set_aside_restored,
)
from .conflicts.statement_rank import standing_of, tells_of_before
from .constraints.kept_of_each_node import settle_kept_of_each
from .constraints.spare_replicas import read_reserve
from .constraints.words import leave_primitives_unread, read_constraints, refuse_broken_bounds, settle_constraints
from .dialogue import with_answers
from .engine.launched import claim_started, leave_unplanned, with_commands_in_words
from .engine.names import read_engine
from .engine.settings import read_settings, settle_settings
from .errors import RequestError
from .goals.limits import read_limits, settle_speed
from .goals.most_load import read_most_load, settle_most_load
from .goals.objective import read_objective
from .goals.wishes import note_conditions, set_aside_wishes
from .hardware.card_names import read_accelerator
from .hardware.links import read_links, settle_missing_nvlink
from .hardware.offload import read_offload, settle_offload
from .hardware.prices import read_price
from .hardware.words import FEWEST, UNLIMITED, read_hardware
from .layouts.permissions import allow_stated, read_disaggregation, read_relaxations
from .layouts.strategy import read_strategy
from .load.changes import settle_growth
from .load.curve import read_rate_curve
from .load.prefixes import read_prefixes, settle_measured, settle_repeated
from .load.rates import leave_mixed_units, read_batches, settle_rates
from .load.token_amounts import read_token_amounts
from .load.words import read_load
from .merge import merge_said, refusal, stated_fields
from .model.files import claim_missing_file, claim_model_file, take_model_file
from .model.names import read_model, refuse_unknown_model, with_size_said_before
from .model.precisions import read_precision
from .model.unknown_names import refuse_unknown_card, why_no_model
from .patterns.gated import Gated
from .patterns.page import Page
from .quoted import quoted_apart, without_reference
from .refusals import refuse_non_goals, set_aside_instructions, set_aside_orders
from .said import Said
from .superseded import still_holding
from .unread_words import TICKET, list_unread
from .writing.dictation import undictated
from .writing.markup import without_markup
from .writing.normal_form import normalise
from .writing.prepared_text import mended
from .writing.written_lengths import assume_written

MAX_REQUEST_CHARACTERS = 20_000
# What a newer text may name of other systems, beside those of the text that it quotes.
_NAMED = {"model", "accelerator", "gpus", "nodes", "gpus_per_node"}
# People that exist, who need not all ask at once.
_PEOPLE = Gated(r"(?<![a-z])(?:people|persons?|members|employees|staff|colleagues?|us)(?![a-z])|个?人(?!工)")
_LONGEST_REQUEST_S = 3600.0
_FEWEST = Gated(r"few|minim|min(?![a-z])|least|small|lowest|back|少")
# Who said a line of a chat, and when: "dana  10:02  ok, 8 H100s in that box", "[10:02] dana: ok", "[voice memo, 1:12]".
_STAMP = Gated(
    r"(?:^|\n)\s{0,4}(?:[^\W\d][\w.\-]{1,20}\s{1,4}\(?(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]m)?\)?(?=\s)\s?:?|"
    r"[\[(](?:[^\[\]()\n]{0,60}[\s,])?\d{1,2}:[0-5]\d(?::[0-5]\d)?(?:\s?[ap]m)?[\])](?:\s[^\W\d][\w.\-]{1,20}:)?)",
)
# Places of a document, by their numbers: "the targets of section 4".
_PLACE_IN_A_DOCUMENT = Gated(
    r"(?<![a-z])(?:sections?|sec\.|tables?|appendix|annex|chapters?|clauses?|paragraphs?|footnotes?|slides?|sprints?|items?)\s(?:no\.?\s|#)?\d{1,3}(?:\.\d{1,2}){0,3}"
    r"(?![\w%]|,\d|\s?(?:tokens?|toks?|gpus?|cards?|ms|nodes?|servers?|x\s?\d)(?![a-z]))|(?<![a-z])(?:options?|runs?|variants?|cases?|config(?:uration)?s?|candidates?|setups?|experiments?|trials?|方案|选项)\s?#?\d{1,3}(?=\s?[|:])|§\s?\d{1,3}(?:\.\d{1,2}){0,3}|第\s?\d{1,2}\s?[章节条页]|(?<![\d.])\d{1,2}\)\s?(?:[-–—~,、]|到|至|and|to)\s?\d{1,2}\)",
)
_LIST_NUMBER = Gated(
    r"(?i:(?:^|\n)\s{0,8}(?:edit|update|note)\s\d{1,2}(?::[0-5]\d)?(?=\s?:(?!\d)))|(?:^|\n)\s{0,8}(?:\(?\d{1,2}(?:[.)、]\s|\)(?=[^\x00-\x7f]))|[-*•]\s)",
    flags=0,
)


def read_request(text: str) -> Said:
    """Read a request; every field that was said carries the words that it came from.

    Raises:
        RequestError: it is too long, names no model or an unknown one, contradicts itself, asks for a non-goal or
            states an impossible figure. The message is one line and ends with what was understood.
    """
    said = read_words(text)
    if said.model is None:
        aside = next((note for note in said.readings if any(each.entry for each in mentions(note))), None)
        raise refusal(said, why_no_model(text) if aside is None else f"no model to plan: {aside}")
    return said


def read_words(text: str) -> Said:
    """As `read_request`, for words that need not name a model (a follow-up, a sentence of a brief).

    Raises:
        RequestError: as `read_request`, but for a missing model.
    """
    expect(text, str, "the request", "a text is expected")
    return _read_words(text, is_quoted=False)


def _read_words(text: str, *, is_quoted: bool) -> Said:
    """As `read_words`; `is_quoted`: a mail quotes the text, which may quote older mails."""
    if len(text) > MAX_REQUEST_CHARACTERS:
        raise RequestError(f"the request has {len(text)} characters; at most {MAX_REQUEST_CHARACTERS} are read")
    if not is_text(text):
        raise RequestError(f"the request {HALF_A_CHARACTER}")
    written, references = without_reference(with_row_under_its_keys(text))
    text, launches = with_commands_in_words(written)
    launches = (*references, *launches)
    older, newer = quoted_apart(text, is_quoted=is_quoted)
    if older:
        older, newer, notes = with_later_figures(normalise(older), normalise(newer))
        newer = with_size_said_before(older, newer)
        before, newer = still_holding(_read_words(older, is_quoted=True), newer)
        now = _read_words(newer, is_quoted=False)
        merged = merge_said([before, _without_former(before, now, newer)])
        return merged.model_copy(update={"readings": (*launches, *merged.readings, *notes)})
    shown, hidden = without_markup(text)
    answered, answers = with_answers(normalise(shown))
    written_down, dictated = undictated(answered)
    settled = mended(written_down)
    page = Page(settled.text)
    claims = Claims(text=page.original)
    leave_unplanned(written, claims)
    for words in hidden:
        claims.leave_unread(f"{words!r} stands where no reader of the page sees it and was not read")
    for note in (*launches, *answers, *settled.notes):
        claims.reading(note)
    for typed, meant in (*dictated, *settled.slips):
        claims.reading(f"{typed!r} read as {meant!r}")
    file = take_model_file(page)
    read_page(page, claims)
    claim_model_file(claims, file)
    claim_missing_file(page, claims)
    assume_written(claims, settled.lengths)
    claim_started(written, page, claims)
    list_unread(page, claims)
    check_counts(claims)
    return claims.said()


def _without_former(before: Said, now: Said, text: str) -> Said:
    """What a text states now, without what it calls former: "scrap the 4k, that was with the old chunking"."""
    restated = stated_fields(before).keys() & stated_fields(now).keys()
    former = [name for name in restated if tells_of_before(text, now.words.get(name, ""))]
    notes = [f"{now.words[name]!r} tells what held before" for name in former]
    aside = [name for name in restated & _NAMED if standing_of(text, now.words.get(name, "")) > 1]
    notes += [f"{now.words[name]!r} is said of something else" for name in aside]
    former += aside
    current = {name: words for name, words in now.words.items() if name not in former}
    return now.model_copy(update={**dict.fromkeys(former), "words": current, "readings": (*now.readings, *notes)})


def read_page(page: Page, claims: Claims) -> None:
    """Read all that a page says into `claims`.

    Raises:
        RequestError: it contradicts itself, states the impossible, asks for a non-goal or names what is unknown.
    """
    page.take_all(_LIST_NUMBER, TICKET, _PLACE_IN_A_DOCUMENT, _STAMP)
    set_aside_orders(page, claims)
    set_aside_former(page, claims)
    set_aside_restored(page, claims)
    set_aside_rejected(page, claims)
    set_aside_replaced(page, claims)
    set_aside_denied(page, claims)
    set_aside_others(page, claims)
    note_past(page, claims)
    model = read_model(page, claims)
    sizes = read_accelerator(page, claims)
    set_aside_instructions(page, claims)
    refuse_non_goals(page, claims)
    refuse_unknown_model(page, claims)
    read_most_load(page, claims)
    leave_mixed_units(page, claims)
    read_token_amounts(page, claims)
    read_batches(page, claims)
    read_reserve(page, claims)
    read_rate_curve(page, claims)
    note_conditions(page, claims)
    set_aside_wishes(page, claims)
    read_offload(page, claims)
    read_relaxations(page, claims)
    read_disaggregation(page, claims)
    read_constraints(page, claims)
    read_precision(page, claims, model)
    read_strategy(page, claims)
    allow_stated(claims)
    read_engine(page, claims)
    read_price(page, claims)
    read_settings(page, claims)
    read_links(page, claims)
    read_prefixes(page, claims)
    read_hardware(page, claims, sizes)
    settle_missing_nvlink(page, claims)
    settle_constraints(claims)
    settle_kept_of_each(claims)
    read_objective(page, claims)
    _settle_open(claims)
    read_limits(page, claims)
    read_load(page, claims)
    settle_rates(claims)
    settle_growth(page, claims)
    settle_speed(claims)
    settle_most_load(claims)
    settle_repeated(claims)
    settle_measured(claims)
    settle_settings(claims)
    _say_people(claims)
    _doubt_unlikely_load(claims)
    _resolve_shares(claims)
    refuse_unknown_card(page, claims)
    refuse_broken_bounds(claims)
    leave_primitives_unread(page, claims)


def _say_people(claims: Claims) -> None:
    """Note that people are taken for requests at once, where nothing says that they are."""
    words = claims.words.get("concurrency", "")
    several = claims.values.get("concurrency", 1) > 1
    if several and _PEOPLE.search(words) and grade("concurrency", 1, words) is not Grade.PLAIN:
        if claims.has("request_rate"):
            _doubt_unlikely_load(claims)  # "8,000 people, a question every two minutes" may be that of each
            claims.drop("concurrency")
            claims.reading(f"{words!r} counts people; {claims.words['request_rate']!r} is planned for")
        else:
            claims.assume("concurrency", f"{words!r} taken for as many requests at once")


def _doubt_unlikely_load(claims: Claims) -> None:
    """Doubt a number at once and a rate that hold together only where one request takes hours (Little's law)."""
    at_once, rate = (claims.values.get(name) for name in ("concurrency", "request_rate"))
    if at_once and rate and at_once / rate > _LONGEST_REQUEST_S:
        claims.leave_unread(
            f"{claims.words['concurrency']!r} beside {claims.words['request_rate']!r}: each request would take "
            f"{at_once / rate / 3600:.3g} hours; say whether that is the rate of each of them"
        )


def _settle_open(claims: Claims) -> None:
    """Make cost the objective of an open number of GPUs ("the fewest") without another; refuse it beside a number."""
    fewest, unlimited = (claims.drop(name)[1] for name in (FEWEST, UNLIMITED))
    counted = next((claims.words[name] for name in ("gpus", "nodes") if claims.has(name)), None)
    if unlimited and counted:
        raise claims.refusal(f"the number of GPUs is open in {unlimited!r}, but stated in {counted!r}; keep one")
    if fewest and not claims.has("objective") and _FEWEST.search(fewest):
        claims.claim("objective", "cost", fewest)
        claims.reading(f"{fewest!r} read as the objective cost: as few of the GPUs that there are as do")


# Figures per GPU or node: their claim, the field that they become, what that needs, and how the reading is worded.
_SHARES = (
    (
        "tokens_per_second_per_gpu",
        "min_tokens_per_second",
        "a throughput per GPU is a limit only where the number of GPUs is stated",
        "{:g} tokens/s of {} GPUs together",
    ),
    (
        "usd_per_node_hour",
        "usd_per_gpu_hour",
        "a price of a node is read only where the GPUs per node are stated",
        "${:.4g} an hour for each of the {} GPUs of a node",
    ),
    (
        "inter_node_bw_gb_s_per_node",
        "inter_node_bw_gb_s",
        "a bandwidth per node is read only where the GPUs per node are stated",
        "{:g} GB/s for each of {} GPUs, one way",
    ),
)


def _resolve_shares(claims: Claims) -> None:
    """Convert figures per GPU or per node into those of the fields, where the counts are known."""
    settle_offload(claims)
    for name, field, needed, reading in _SHARES:
        value, words = claims.drop(name)
        if value is None:
            continue
        is_of_gpu = name.endswith("per_gpu")
        count = claims.gpus if is_of_gpu else claims.gpus_of_node
        if count is None:
            claims.leave_unread(f"{words!r}: {needed}")
            continue
        share = value * count if is_of_gpu else value / count
        claims.claim(field, share, words)
        claims.reading(f"{words!r} read as {reading.format(share, count)}")
