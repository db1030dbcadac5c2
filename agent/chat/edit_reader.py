"""Reads a follow-up into an edit, beside what was said before: "double the GPUs", "back to 8", "drop the TTFT limit".

It guesses nothing: words that may mean several things are asked back, and what is not understood is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tools.errors import InputError
from ...tools.language.errors import RequestError
from ...tools.language.merge import merge_said
from ...tools.language.request import read_words
from ...tools.language.said import Said
from ...tools.language.writing.normal_form import normalise
from ...tools.plan.latency_limits import LIMIT_FIELDS
from ..languages.say import say
from . import edit_words as words
from .edit_page import TOGETHER, EditPage
from .edits import Edit, Spoken, stated_fields
from .figures import FIGURES, example, last_changed, shown, sum_text, title, unlike
from .shift_words import GOES_ON, Shift, find_shift, still_relative

# A change is a sentence or two.
MAX_EDIT_CHARACTERS = 4_000
# Clauses that are looked at for a relaxation to forbid.
_MOST_FORBIDDEN = 8
_ENDS = " ;,.!?。,!?"
# Changes by an amount that one text may make.
_MOST_SHIFTS = 8


def read_edit(text: str, spoken: Sequence[Spoken]) -> Edit:
    """The edit that `text` makes of the last request in `spoken`, the requests of the chat, oldest first.

    Raises:
        InputError: it is too long, contradicts itself, or states what cannot be.
    """
    if len(text) > MAX_EDIT_CHARACTERS:
        raise RequestError(
            say(
                "the text has {length:,} characters, a change at most {most:,}; /new begins with a longer request",
                length=len(text),
                most=MAX_EDIT_CHARACTERS,
            )
        )
    reader = EditPage(" ".join(normalise(text).split()), spoken)
    if reader.now is not None:
        reader.text = words.MOVES.sub("", words.ALL_ELSE.sub("", reader.text))
        for read in (_traffic, _back, _bare, _shifted, _scaled, _dropped, _forbidden, _directions, _left_relative):
            read(reader)
    _objective(reader)
    is_joined = words.JOINED.search(reader.text) is not None
    remaining = reader.text.strip(_ENDS)
    read = read_words(remaining) if remaining else Said()
    changed = Said(**reader.stated, words=reader.words)
    return Edit(
        said=merge_said([read, changed]) if stated_fields(changed) else read,
        dropped=tuple(dict.fromkeys(reader.dropped)),
        forbidden=tuple(reader.forbidden),
        whole_attention=reader.whole_attention,
        is_joined=is_joined,
        readings=(*read.readings, *reader.readings),
        unread=read.unread,
        questions=tuple(reader.questions),
    )


def _traffic(reader: EditPage) -> None:
    """ "traffic": what the load of the request is stated by."""
    if (match := words.TRAFFIC.search(reader.text)) is not None:
        called = "concurrency" if reader.value("request_rate") is None else "request rate"
        reader.text = " ".join(words.TRAFFIC.sub(f" {called} ", reader.text).split())
        reader.read_as(match.group(), say("{called}, by which the load is stated", called=say(called)))


def _back(reader: EditPage) -> None:
    """ "back to 8": the figure that was 8 before. What names its field ("back to 8 GPUs") is read as any request."""
    match = words.BACK.search(reader.text)
    if match is None:
        return
    what = (match["what"] or match["zh"] or "").strip(" .!?。")
    bare = words.BARE.search(what)
    if bare is None:
        reader.text = what
        return
    value = _figure(bare["figure"])
    assert reader.now is not None
    # How long ago each figure last was that; the nearest is meant.
    candidates: list[tuple[int, str, Spoken]] = []
    for name, get in FIGURES.items():
        if get(reader.now.intent) == value:
            continue
        ago = next((at for at, request in enumerate(reversed(reader.spoken)) if get(request.intent) == value), None)
        if ago is not None:
            candidates.append((ago, name, reader.spoken[-1 - ago]))
    if not candidates:
        reader.ask("nothing was {value:g} before: say what is to be {value:g}, such as '{value:g} GPUs'", value=value)
        reader.text = ""
        return
    _, name, then = min(candidates, key=lambda candidate: candidate[0])
    said_as = reader.take(match)
    for field in TOGETHER.get(name, (name,)):
        earlier = getattr(then.said, field)
        if earlier == getattr(Said(), field):
            reader.dropped.append(field)
        else:
            reader.stated[field], reader.words[field] = earlier, said_as
    reader.read_as(said_as, say("{title} {value:g}, as it was before", title=title(name), value=value))


def _bare(reader: EditPage) -> None:
    """A figure and nothing else: the figure that was changed last."""
    match = words.BARE.search(reader.text)
    if match is None:
        return
    value, changed = _figure(match["figure"]), last_changed(reader.spoken)
    said_as = reader.take(match)
    if match["on"] and changed != "nodes":  # a plan is on GPUs
        changed = "gpus"
    if changed is None:
        reader.ask("{value:g} of what? say it with its name, such as '{value:g} GPUs'", value=value)
    else:
        reader.state(changed, value, said_as)


def _figure(text: str) -> float:
    plain = text.replace(" ", "")
    return float(plain[:-1]) * 1024 if plain[-1] in "kK" else float(plain)


def _scaled(reader: EditPage) -> None:
    assert reader.now is not None
    for pattern in (words.SCALE, words.SCALE_AFTER):
        while (match := pattern.search(reader.text)) is not None:
            groups = match.groupdict()
            times = groups.get("times")
            factor = float(times) if times else next(words.FACTORS[n] for n in words.FACTORS if groups.get(n))
            name = _named(groups)
            said_as = reader.take(match)
            value = reader.value(name)
            if value is None:
                reader.ask("{said!r}: there is no figure of it to multiply; say the figure itself", said=said_as)
            else:
                reader.state(name, value * factor, said_as, sum_text(value, "×", factor, value * factor))


def _shifted(reader: EditPage) -> None:
    """ "add 8 GPUs": what there is now and the amount."""
    for _ in range(_MOST_SHIFTS):
        shift = find_shift(reader.text)
        if shift is None:
            return
        said_as, after = reader.text[shift.start : shift.end].strip(), reader.text[shift.end :]
        goes_on = GOES_ON.match(after) if shift.verb else None
        if goes_on is not None:
            after = f" {shift.verb} {after[goes_on.end() :]}"
        reader.text = f"{reader.text[: shift.start]} ;{after}"
        _shift(reader, shift, said_as)
    reader.ask("more than {most} changes by an amount: say the new figures themselves", most=_MOST_SHIFTS)


def _shift(reader: EditPage, shift: Shift, said_as: str) -> None:
    assert reader.now is not None
    name = shift.name or last_changed(reader.spoken)
    if name is None:
        reader.ask("{said!r}: of what? say it with its name, such as '8 more GPUs'", said=said_as)
        return
    value, odd = reader.value(name), unlike(reader.now.intent.hardware, shift.card, shift.each)
    if odd is not None:
        reader.ask("{said!r}: {odd}", said=said_as, odd=odd)
    elif value is None:
        figure = f"{title(name)} {shown(abs(shift.amount) or 16)}"
        no_figure = "{said!r}: there is no figure of it yet to change; say the figure, such as {example!r}"
        reader.ask(no_figure, said=said_as, example=figure)
    elif shift.factor is not None:
        reader.state(name, value * shift.factor, said_as, sum_text(value, "×", shift.factor, value * shift.factor))
    else:
        sign = "+" if shift.amount >= 0 else "-"
        reader.state(
            name, value + shift.amount, said_as, sum_text(value, sign, abs(shift.amount), value + shift.amount)
        )


def _left_relative(reader: EditPage) -> None:
    """A figure beside words that compare is not taken for the new value."""
    relative = still_relative(reader.text)
    if relative is not None:
        reader.ask("{said!r}: more or less of what, and from what? say the new figure with its name", said=relative)
        reader.text = ""


def _named(groups: dict[str, Any]) -> str:
    return next(name for name in words.FIELD_NAMES if groups.get(name) or groups.get(f"zh_{name}"))


def _dropped(reader: EditPage) -> None:
    while (match := words.DROP_ALL.search(reader.text)) is not None:
        said_as = reader.take(match)
        for name in LIMIT_FIELDS:
            reader.drop(name, said_as)
    for pattern in (words.DROP, words.DROP_CHINESE, words.DROP_CHINESE_AFTER):
        while (match := pattern.search(reader.text)) is not None:
            name = _named(match.groupdict())
            reader.drop(name, reader.take(match))


def _forbidden(reader: EditPage) -> None:
    """Take back relaxations, named in the words that would allow them."""
    assert reader.now is not None
    for match in list(words.FORBID.finditer(reader.text))[:_MOST_FORBIDDEN]:
        try:
            named = read_words(f"allow {match['what']}").relaxations
        except InputError:
            continue
        if named:
            # A relaxation is also in force because a stated degree needs it: that degree goes as well.
            reader.forbidden.extend(name for name in named if name in reader.now.said.relaxations)
            if "attention_dp" in named and _states_attention_dp(reader.now.said):
                reader.whole_attention = True
            reader.read_as(match.group().strip(), say("{names} not allowed", names=", ".join(named)))
            reader.text = reader.text.replace(match.group(), " ; ")


def _states_attention_dp(said: Said) -> bool:
    strategy = said.strategy
    return strategy is not None and any((phase.attention_dp or 1) > 1 for phase in (strategy.prefill, strategy.decode))


def _directions(reader: EditPage) -> None:
    """ "more GPUs": a direction is no figure."""
    assert reader.now is not None
    while (match := words.DIRECTION.search(reader.text)) is not None:
        name = _named(match.groupdict())
        said_as = reader.take(match)
        how_many = "{said!r}: how many? say the figure, such as {example!r}"
        reader.ask(how_many, said=said_as, example=example(reader.now.intent, name))
    while (match := words.UNCLEAR.search(reader.text)) is not None:
        said_as = reader.take(match)
        reader.ask("{said!r}: to that figure, or by it? say 'to' or 'by'", said=said_as)


def _objective(reader: EditPage) -> None:
    match = words.OBJECTIVE.search(reader.text)
    if match is not None:
        objective = str(match.lastgroup)
        said_as = reader.take(match)
        reader.stated["objective"], reader.words["objective"] = objective, said_as
        reader.read_as(said_as, say("the objective {objective}", objective=say(objective)))
