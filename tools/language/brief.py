"""Briefs: what planners write down before they ask, in Markdown, YAML, JSON, TOML, INI, CSV, read into `Said`.

Every text becomes lines of plain words, and the reader of requests reads them: a sentence means the same in both. Only
the figures of a card and the dimensions of a model, which requests do not have, are read by a table of their own. It
refuses briefs that contradict themselves, with the places, and completes nothing. Words are data: nothing in a brief is
followed, evaluated or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..catalog.accelerators import Accelerator
from ..catalog.hardware import find_accelerator
from ..catalog.models import find_model
from ..errors import InputError
from ..input.files import read_bounded, shown_path, utf8_text
from ..input.strict_values import HALF_A_CHARACTER, is_text, whole_characters
from .briefs.card import Card, read_card
from .briefs.document import Document, without_marks
from .briefs.facts import Fact
from .briefs.layout import plain_text
from .briefs.markdown import read_markdown
from .briefs.model import DESCRIBES, read_model
from .briefs.rows import read_rows
from .briefs.statements import Source, StatedObject, join_sources
from .briefs.structured import read_json, read_settings, read_yaml
from .conflicts.alternatives import with_later_figures
from .conflicts.claims import Claims
from .conflicts.counts import check_counts
from .conflicts.taken_back import with_replies
from .conflicts.turns import is_chat, without_stamps
from .conflicts.withdrawn_figures import with_later_figures_in_place
from .engine.launched import claim_started, leave_unplanned
from .errors import BriefError, RequestError
from .hardware.card_names import read_accelerator
from .merge import merge_said
from .model.files import claim_model_file, take_model_file
from .model.names import own_name
from .model.names import read_model as read_model_name
from .patterns.page import Page
from .quoted import quoted_apart
from .request import read_page
from .said import Said
from .superseded import still_holding

_Text = tuple[str, str]  # its name and its words
MAX_FILES = 20
MAX_FILE_BYTES = 1_000_000
_MARKDOWN = (".md", ".markdown", ".txt", ".rst")
_STRUCTURED = (".json", ".yaml", ".yml")
_JSON_START = re.compile(r"\{|\[(?!\w)")
_NESTED_KEY = re.compile(r"  +[\w\-]{1,40}:(?:\s|$)")
_BLOCK_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/)){0,4000}\*/")
_COMMENT = re.compile(r"(^|[\s,{}\[\]])//", re.MULTILINE)
_YAML_LINE = re.compile(r"\s*(?:#.*|---|-\s.*|[\w\u4e00-\u9fff .()/\"'-]{1,60}:(?:\s.*)?)?")


def read_brief_files(paths: Iterable[str | Path]) -> Said:
    """Read the files of one brief together.

    Raises:
        BriefError: too many files, one that is too large or not UTF-8 text, or as `read_brief`.
    """
    return read_brief(brief_texts(paths))


def brief_texts(paths: Iterable[str | Path]) -> list[tuple[str, str]]:
    """The (name, text) pairs of the files of one brief.

    Raises:
        BriefError: too many files, one that is too large or not UTF-8 text.
    """
    sources: list[tuple[str, str]] = []
    for path in paths:
        if len(sources) == MAX_FILES:
            raise BriefError(f"a brief has at most {MAX_FILES} files; join some")
        sources.append((str(path), _read_text(Path(path))))
    return sources


def read_brief(sources: Sequence[tuple[str, str]]) -> Said:
    """Read the (name, text) pairs of one brief together; a name's suffix tells the form, else the text does.

    Raises:
        BriefError: nothing in it, unreadable, contradictory, impossible, or it names what is unknown; the message is
            one line that names the place.
    """
    if len(sources) > MAX_FILES:
        raise BriefError(f"a brief has at most {MAX_FILES} texts, not {len(sources)}; join some")
    older, newer, notes = _settled(sources)
    if older:
        before, texts = read_brief(older), [*newer]
        for place, (name, text) in enumerate(newer):
            before, text = still_holding(before, text)
            texts[place] = name, text
        said = merge_said([before, *([read_brief(texts)] if any(text.strip() for _, text in texts) else [])])
    else:
        said = _read_parsed(newer)
    return said.model_copy(update={"readings": (*said.readings, *notes)})


def _read_parsed(sources: Sequence[_Text]) -> Said:
    source = join_sources([_parse(name, text) for name, text in sources])
    if not source.statements and not source.objects:
        raise BriefError("the brief is empty; write down the model, the hardware, the load and the limits")
    try:
        prose = "\n\n".join(text for name, text in sources if not name.endswith(_STRUCTURED))
        return _read_joined(source, Path(sources[0][0]).parent, prose)
    except ValidationError as error:
        first = error.errors()[0]
        raise BriefError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from error


def _settled(sources: Sequence[_Text]) -> tuple[list[_Text], list[_Text], list[str]]:
    """The mails that texts quote, the newer texts with the figures that chats agreed on, and notes on changes."""
    notes: list[str] = []
    older: list[_Text] = []
    newer: list[_Text] = []
    for name, text in sources:
        before = ""
        if Path(name).suffix.lower() not in _STRUCTURED and len(text) <= MAX_FILE_BYTES:
            chat = without_stamps(text)
            if is_chat(chat):
                text, more = with_replies(chat)
                notes += more
            text, more = with_later_figures_in_place(text)
            notes += more
            before, text = quoted_apart(text, needs_header=True)
        if before:
            before, text, changed = with_later_figures(before, text)
            notes += changed
            older.append((name, before))
        newer.append((name, text))
    return older, newer, notes


def _read_text(path: Path) -> str:
    name = shown_path(path)
    try:
        data = read_bounded(path, MAX_FILE_BYTES, name, "; a brief is a page or two")
        return utf8_text(data, name)
    except InputError as error:
        raise BriefError(str(error)) from None


def _parse(path: str, text: str) -> Source:
    name = whole_characters(Path(path).name[:80] or path[:80])
    if not is_text(text):
        raise BriefError(f"{name}: {HALF_A_CHARACTER}")
    if len(text) > MAX_FILE_BYTES:
        raise BriefError(f"{name} is longer than {MAX_FILE_BYTES} characters; a brief is a page or two")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    suffix = Path(path).suffix.lower()
    if suffix not in _STRUCTURED and (settings := read_settings(name, text)) is not None:
        return settings
    stripped = text.strip()
    # A page of Markdown may begin and end with a bracket, as chats do.
    is_json = _JSON_START.match(stripped) is not None and (
        suffix not in _MARKDOWN or stripped[:1] + stripped[-1:] == "{}"
    )
    if suffix == ".json" or (is_json and suffix not in (".yaml", ".yml")):
        return read_yaml(name, _with_yaml_comments(text)) if _COMMENT.search(text) else read_json(name, text)
    if suffix in (".yaml", ".yml"):
        return read_yaml(name, text)
    if (rows := read_rows(name, text)) is not None:
        return rows
    if _looks_like_yaml(stripped):
        try:
            return read_yaml(name, text)
        except BriefError:  # plain text with colons, after all
            return read_markdown(name, text)
    return read_markdown(name, text)


def _with_yaml_comments(text: str) -> str:
    """JSON with comments as YAML, of which JSON is a part; every line keeps its place."""
    text = _BLOCK_COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    return _COMMENT.sub(r"\1# ", text)


def _looks_like_yaml(text: str) -> bool:
    lines = text.split("\n")
    is_nested = any(_NESTED_KEY.match(line) for line in lines)
    return is_nested and all(_YAML_LINE.fullmatch(line) for line in lines[:2000])


def _read_joined(source: Source, folder: Path, prose: str) -> Said:
    has_config = any(entry.kind == "config" for entry in source.objects)
    document = Document.of(source.statements, has_config=has_config)
    described = has_config or any(document.facts.of(f"model.{name}") for name in DESCRIBES)
    claims = Claims(text=document.page.original, describes_model=described)
    leave_unplanned(prose, claims)
    file = take_model_file(document.page, folder)
    try:
        read_page(document.page, claims)
        _read_headings(source, claims)
        claim_model_file(claims, file)
        claim_started(prose, document.page, claims)
        document.list_unread(claims)
        check_counts(claims)
        said = claims.said()
    except RequestError as error:
        raise BriefError(document.placed(error.reason), error.understood, error.field) from error
    facts = document.facts
    model = read_model(facts, _named_models(document, said, file), list(source.objects), folder)
    card = _card(document, said, source.objects)
    of_card = [*document.cards, *(fact for fact in facts.items if fact.field.startswith("card."))]
    parts = "; ".join(dict.fromkeys(fact.words for fact in of_card))[:400]
    shown = [bound.model_copy(update={"words": without_marks(bound.words)}) for bound in said.constraints]
    updates: dict[str, Any] = {
        "constraints": tuple(shown),
        "model": model.name,
        "model_config_object": model.config,
        "accelerator": card.accelerator,
        "accelerator_object": card.accelerator_object,
        "readings": (*map(document.placed, said.readings), *facts.readings)[:100],
        "unread": (*map(document.placed, said.unread), *facts.unread)[:100],
    }
    words = {name: document.words(words) for name, words in said.words.items()}
    words |= dict.fromkeys(("model", "model_config_object"), model.words)
    words |= {"accelerator_object": parts or words.get("accelerator", "")}
    said = said.model_copy(update=updates)
    words = {name: text for name, text in words.items() if getattr(said, name) is not None}
    return said.model_copy(update={"words": words})


def _read_headings(source: Source, claims: Claims) -> None:
    """Claim the model or card that only a heading names."""
    page = Page("\n".join(plain_text(statement.text) for statement in source.statements if statement.heading))
    heading_claims = Claims()
    try:
        read_model_name(page, heading_claims)
        read_accelerator(page, heading_claims)
    except RequestError:  # "from A100 to H100": the text under the title settles it
        return
    for name, value in heading_claims.values.items():
        if name in ("model", "accelerator") and not claims.has(name):
            claims.claim(name, value, heading_claims.words[name])


def _named_models(document: Document, said: Said, file: str | None) -> list[Fact]:
    if said.model is None:
        name = own_name(document.page) if not document.models else None
        return [*document.models, *([] if name is None else [Fact("name", name, name, document.place(name), name)])]
    words = said.words["model"]
    if said.model == file:
        return [Fact("name", file, words, document.place(words), words)]
    return [Fact("model", find_model(said.model), document.words(words), document.place(words), words)]


def _card(document: Document, said: Said, objects: Sequence[StatedObject]) -> Card:
    """The card in words and figures, or a card object in the catalogue's own form."""
    stated = [entry for entry in objects if entry.kind == "card"]
    if not stated:
        names = list(document.cards)
        if said.accelerator is not None:
            words = said.words["accelerator"]
            card = find_accelerator(said.accelerator)
            names = [Fact("accelerator", card, document.words(words), document.place(words), words)]
        if said.gpus_per_node is not None:
            document.facts.add([Fact("gpus_per_node", said.gpus_per_node, "", "")])
        return read_card(document.facts, names)
    try:
        cards = [Accelerator.model_validate({"id": "custom", **item.value}) for item in stated]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BriefError(f"{stated[0].where}: the card's {where}: {first['msg']}") from error
    if any(card != cards[0] for card in cards):
        raise BriefError(f"two different cards: at {stated[0].where} and at {stated[1].where}; keep one")
    return Card(accelerator_object=cards[0], base=cards[0])
