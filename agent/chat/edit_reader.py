"""Reads a follow-up into an edit, beside what was said before: "double the GPUs", "back to 8", "drop the TTFT limit".

It guesses nothing: words that may mean several things are asked back, and what is not understood is listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...tools.errors import InputError
from ...tools.language.errors import RequestError
from ...tools.language.merge import merge_said
from ...tools.language.quantities import normalise
from ...tools.language.request import read_words
from ...tools.language.said import Said
from ...tools.plan.document import Relaxation
from . import edit_words as words
from .edits import Edit, Spoken, stated_fields
from .figures import FIGURES, TITLES, WHOLE, example, last_changed, shown, sum_text, unlike
from .shift_words import GOES_ON, Shift, find_shift, still_relative

# A change is a sentence or two.
MAX_EDIT_CHARACTERS = 4_000
# Fields of `Said` that say one thing together.
_COUNTS = ("gpus", "nodes", "gpus_per_node", "gpus_open")
_FORMATS = ("weights", "kv_cache", "activations", "precisions")
_TOGETHER: dict[str, tuple[str, ...]] = {
    "gpus": _COUNTS,
    "nodes": _COUNTS,
    "precision": _FORMATS,
    "ttft_ms_max": ("ttft_ms_max", "ttft_statistic"),
    "tpot_ms_max": ("tpot_ms_max", "tpot_statistic"),
    "input_tokens": ("input_tokens", "input_tokens_range"),
    "output_tokens": ("output_tokens", "output_tokens_range"),
}
# Clauses that are looked at for a relaxation to forbid.
_MOST_FORBIDDEN = 8
_ENDS = " ;,.!?。,!?"
# Changes by an amount that one text may make.
_MOST_SHIFTS = 8


class _Reader:
    """One follow-up while it is read: what is understood is taken out of the text."""

    def __init__(self, text: str, spoken: Sequence[Spoken]) -> None:
        self.text = text
        self.spoken = spoken
        self.now = spoken[-1] if spoken else None
        self.stated: dict[str, Any] = {}
        self.words: dict[str, str] = {}
        self.dropped: list[str] = []
        self.forbidden: list[Relaxation] = []
        self.whole_attention = False
        self.readings: list[str] = []
        self.questions: list[str] = []

    def take(self, match: re.Match[str]) -> str:
        """Take the words of a match out of the text."""
        self.text = f"{self.text[: match.start()]} ; {self.text[match.end() :]}"
        return match.group().strip()

    def state(self, name: str, value: float, said_as: str, how: str = "") -> None:
        """State a figure; `how` is the sum that it came from."""
        if name in WHOLE and value != int(value):
            raise InputError(f"{said_as!r} makes {TITLES[name]} {value:g}, which is no whole number")
        if how and value <= 0:
            raise InputError(f"{said_as!r} makes {TITLES[name]} {how}: there must be something left")
        self.stated[name] = int(value) if name in WHOLE else value
        self.words[name] = said_as
        self.readings.append(f"{said_as!r} read as {TITLES[name]} {how or f'{value:g}'}")

    def value(self, name: str) -> float | None:
        """What a figure is now, with what this text has changed of it; `None` where it is open."""
        if name in self.stated:
            return self.stated[name]
        return FIGURES[name](self.now.intent) if self.now is not None and name in FIGURES else None

    def drop(self, name: str, said_as: str) -> None:
        """Take back what was said of a field."""
        if name == "gpus":
            self.stated["gpus_open"] = True
            self.words["gpus_open"] = said_as
        self.dropped += [one for one in _TOGETHER.get(name, (name,)) if one not in self.stated]


def read_edit(text: str, spoken: Sequence[Spoken]) -> Edit:
    """What `text` changes of the last request of `spoken`, which are all requests of the chat, oldest first.

    Raises:
        InputError: it is too long, contradicts itself, or states what cannot be.
    """
    if len(text) > MAX_EDIT_CHARACTERS:
        raise RequestError(
            f"the text has {len(text):,} characters, a change at most {MAX_EDIT_CHARACTERS:,}; "
            "/new begins with a longer request"
        )
    reader = _Reader(" ".join(normalise(text).split()), spoken)
    if reader.now is not None:
        reader.text = words.MOVES.sub("", reader.text)
        for read in (_traffic, _back, _bare, _shifted, _scaled, _dropped, _forbidden, _directions, _left_relative):
            read(reader)
    _objective(reader)
    is_joined = words.JOINED.search(reader.text) is not None
    left = reader.text.strip(_ENDS)
    read = read_words(left) if left else Said()
    own = Said(**reader.stated, words=reader.words)
    return Edit(
        said=merge_said([read, own]) if stated_fields(own) else read,
        dropped=tuple(dict.fromkeys(reader.dropped)),
        forbidden=tuple(reader.forbidden),
        whole_attention=reader.whole_attention,
        is_joined=is_joined,
        readings=(*read.readings, *reader.readings),
        unread=read.unread,
        questions=tuple(reader.questions),
    )


def _traffic(reader: _Reader) -> None:
    """ "traffic": what the load of the request is stated by."""
    if (match := words.TRAFFIC.search(reader.text)) is not None:
        called = "concurrency" if reader.value("request_rate") is None else "request rate"
        reader.text = " ".join(words.TRAFFIC.sub(f" {called} ", reader.text).split())
        reader.readings.append(f"{match.group()!r} read as {called}, by which the load is stated")


def _back(reader: _Reader) -> None:
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
    found: list[tuple[int, str, Spoken]] = []
    for name, get in FIGURES.items():
        if get(reader.now.intent) == value:
            continue
        ago = next((at for at, one in enumerate(reversed(reader.spoken)) if get(one.intent) == value), None)
        if ago is not None:
            found.append((ago, name, reader.spoken[-1 - ago]))
    if not found:
        reader.questions.append(f"nothing was {value:g} before: say what is to be {value:g}, such as '{value:g} GPUs'")
        reader.text = ""
        return
    _, name, then = min(found, key=lambda one: one[0])
    said_as = reader.take(match)
    for one in _TOGETHER.get(name, (name,)):
        earlier = getattr(then.said, one)
        if earlier == getattr(Said(), one):
            reader.dropped.append(one)
        else:
            reader.stated[one], reader.words[one] = earlier, said_as
    reader.readings.append(f"{said_as!r} read as {TITLES[name]} {value:g}, as it was before")


def _bare(reader: _Reader) -> None:
    """A figure and nothing else: the figure that was changed last."""
    match = words.BARE.search(reader.text)
    if match is None:
        return
    value, changed = _figure(match["figure"]), last_changed(reader.spoken)
    said_as = reader.take(match)
    if changed is None:
        reader.questions.append(f"{value:g} of what? say it with its name, such as '{value:g} GPUs'")
    else:
        reader.state(changed, value, said_as)


def _figure(text: str) -> float:
    plain = text.replace(" ", "")
    return float(plain[:-1]) * 1024 if plain[-1] in "kK" else float(plain)


def _scaled(reader: _Reader) -> None:
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
                reader.questions.append(f"{said_as!r}: there is no figure of it to multiply; say the figure itself")
            else:
                reader.state(name, value * factor, said_as, sum_text(value, "×", factor, value * factor))


def _shifted(reader: _Reader) -> None:
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
    reader.questions.append(f"more than {_MOST_SHIFTS} changes by an amount: say the new figures themselves")


def _shift(reader: _Reader, shift: Shift, said_as: str) -> None:
    assert reader.now is not None
    name = shift.name or last_changed(reader.spoken)
    if name is None:
        reader.questions.append(f"{said_as!r}: of what? say it with its name, such as '8 more GPUs'")
        return
    value, odd = reader.value(name), unlike(reader.now.intent.hardware, shift.card, shift.each)
    if odd is not None:
        reader.questions.append(f"{said_as!r}: {odd}")
    elif value is None:
        example = f"{TITLES[name]} {shown(abs(shift.amount) or 16)}"
        reader.questions.append(
            f"{said_as!r}: there is no figure of it yet to change; say the figure, such as {example!r}"
        )
    elif shift.factor is not None:
        reader.state(name, value * shift.factor, said_as, sum_text(value, "×", shift.factor, value * shift.factor))
    else:
        sign = "+" if shift.amount >= 0 else "-"
        reader.state(
            name, value + shift.amount, said_as, sum_text(value, sign, abs(shift.amount), value + shift.amount)
        )


def _left_relative(reader: _Reader) -> None:
    """A figure beside words that compare is not taken for the new value."""
    left = still_relative(reader.text)
    if left is not None:
        reader.questions.append(f"{left!r}: more or less of what, and from what? say the new figure with its name")
        reader.text = ""


def _named(groups: dict[str, Any]) -> str:
    return next(name for name in words.FIELD_NAMES if groups.get(name) or groups.get(f"zh_{name}"))


def _dropped(reader: _Reader) -> None:
    while (match := words.DROP_ALL.search(reader.text)) is not None:
        said_as = reader.take(match)
        for name in words.LIMITS:
            reader.drop(name, said_as)
    for pattern in (words.DROP, words.DROP_CHINESE, words.DROP_CHINESE_AFTER):
        while (match := pattern.search(reader.text)) is not None:
            name = _named(match.groupdict())
            reader.drop(name, reader.take(match))


def _forbidden(reader: _Reader) -> None:
    """Relaxations that are allowed no more, by the words that would allow them."""
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
            reader.readings.append(f"{match.group().strip()!r} read as: {', '.join(named)} not allowed")
            reader.text = reader.text.replace(match.group(), " ; ")


def _states_attention_dp(said: Said) -> bool:
    strategy = said.strategy
    return strategy is not None and any((one.attention_dp or 1) > 1 for one in (strategy.prefill, strategy.decode))


def _directions(reader: _Reader) -> None:
    """ "more GPUs": a direction is no figure."""
    assert reader.now is not None
    while (match := words.DIRECTION.search(reader.text)) is not None:
        name = _named(match.groupdict())
        said_as = reader.take(match)
        reader.questions.append(f"{said_as!r}: how many? say the figure, such as {example(reader.now.intent, name)!r}")
    while (match := words.UNCLEAR.search(reader.text)) is not None:
        said_as = reader.take(match)
        reader.questions.append(f"{said_as!r}: to that figure, or by it? say 'to' or 'by'")


def _objective(reader: _Reader) -> None:
    match = words.OBJECTIVE.search(reader.text)
    if match is not None:
        objective = str(match.lastgroup)
        said_as = reader.take(match)
        reader.stated["objective"], reader.words["objective"] = objective, said_as
        reader.readings.append(f"{said_as!r} read as the objective {objective}")
