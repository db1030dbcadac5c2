"""Reads a follow-up into an edit, beside what was said before: "double the GPUs", "back to 8", "drop the TTFT limit".

It guesses nothing: words that may mean several things are asked back, and what is not understood is listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...tools.errors import InputError
from ...tools.plan.document import Relaxation
from ..intent.errors import RequestError
from ..intent.intent import Intent, Said
from ..intent.merge import merge_said
from ..intent.quantities import normalise
from ..intent.request import read_words
from . import edit_words as words
from .edits import Edit, Spoken, stated_fields

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
# Figures that can be scaled, gone back to, or be what a bare figure means; the first that fits is meant.
_FIGURES: dict[str, Callable[[Intent], float | None]] = {
    "gpus": lambda intent: None if intent.hardware is None else intent.hardware.gpus,
    "nodes": lambda intent: None if intent.hardware is None else intent.hardware.nodes,
    "concurrency": lambda intent: None if intent.concurrency_open else intent.workload.concurrency,
    "input_tokens": lambda intent: intent.workload.input_tokens,
    "output_tokens": lambda intent: intent.workload.output_tokens,
    "ttft_ms_max": lambda intent: intent.workload.ttft_ms_max,
    "tpot_ms_max": lambda intent: intent.workload.tpot_ms_max,
    "request_rate": lambda intent: intent.workload.request_rate,
    "min_tokens_per_second": lambda intent: intent.workload.min_tokens_per_second,
    "usd_per_gpu_hour": lambda intent: intent.usd_per_gpu_hour,
}
# Clauses that are looked at for a relaxation to forbid.
_MOST_FORBIDDEN = 8
_ENDS = " ;,.!?。,!?"
_WHOLE = frozenset({"gpus", "nodes", "concurrency", "input_tokens", "output_tokens"})
TITLES = {
    "gpus": "GPUs",
    "nodes": "nodes",
    "concurrency": "concurrency",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "ttft_ms_max": "TTFT limit (ms)",
    "tpot_ms_max": "TPOT limit (ms)",
    "request_rate": "requests/s",
    "min_tokens_per_second": "tokens/s",
    "usd_per_gpu_hour": "USD per GPU hour",
}


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
        self.degrees: dict[str, int] = {}
        self.readings: list[str] = []
        self.questions: list[str] = []

    def take(self, match: re.Match[str]) -> str:
        """Take the words of a match out of the text."""
        self.text = f"{self.text[: match.start()]} ; {self.text[match.end() :]}"
        return match.group().strip()

    def state(self, name: str, value: float, said_as: str) -> None:
        """State a figure."""
        if name in _WHOLE and value != int(value):
            raise InputError(f"{said_as!r} makes {TITLES[name]} {value:g}, which is no whole number")
        self.stated[name] = int(value) if name in _WHOLE else value
        self.words[name] = said_as
        self.readings.append(f"{said_as!r} read as {TITLES[name]} {value:g}")

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
        for read in (_back, _bare, _scaled, _dropped, _forbidden, _avoided, _directions):
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
        degrees=tuple(reader.degrees.items()),
        is_joined=is_joined,
        readings=(*read.readings, *reader.readings),
        unread=read.unread,
        questions=tuple(reader.questions),
    )


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
    for name, get in _FIGURES.items():
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
    value, changed = _figure(match["figure"]), _last_changed(reader.spoken)
    said_as = reader.take(match)
    if changed is None:
        reader.questions.append(f"{value:g} of what? say it with its name, such as '{value:g} GPUs'")
    else:
        reader.state(changed, value, said_as)


def _figure(text: str) -> float:
    plain = text.replace(" ", "")
    return float(plain[:-1]) * 1024 if plain[-1] in "kK" else float(plain)


def _last_changed(spoken: Sequence[Spoken]) -> str | None:
    """The one figure by which the last two different requests differ; `None` where that is not one."""
    for before, after in zip(reversed(spoken[:-1]), reversed(spoken), strict=False):
        names = [name for name, get in _FIGURES.items() if get(before.intent) != get(after.intent)]
        if "gpus" in names and "nodes" in names:  # the number of nodes follows from that of the GPUs
            names.remove("nodes" if after.said.gpus is not None else "gpus")
        if names:
            return names[0] if len(names) == 1 else None
    return None


def _scaled(reader: _Reader) -> None:
    assert reader.now is not None
    for pattern in (words.SCALE, words.SCALE_AFTER):
        while (match := pattern.search(reader.text)) is not None:
            groups = match.groupdict()
            times = groups.get("times")
            factor = float(times) if times else next(words.FACTORS[n] for n in words.FACTORS if groups.get(n))
            name = _named(groups)
            said_as = reader.take(match)
            value = _FIGURES[name](reader.now.intent) if name in _FIGURES else None
            if value is None:
                reader.questions.append(f"{said_as!r}: there is no figure of it to multiply; say the figure itself")
            else:
                reader.state(name, value * factor, said_as)


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
                reader.degrees["attention_dp"] = 1
            reader.readings.append(f"{match.group().strip()!r} read as: {', '.join(named)} not allowed")
            reader.text = reader.text.replace(match.group(), " ; ")


def _states_attention_dp(said: Said) -> bool:
    strategy = said.strategy
    return strategy is not None and any((one.attention_dp or 1) > 1 for one in (strategy.prefill, strategy.decode))


def _avoided(reader: _Reader) -> None:
    while (match := words.AVOID.search(reader.text)) is not None:
        name = str(match.lastgroup)
        said_as = reader.take(match)
        reader.degrees[name] = 1
        reader.readings.append(f"{said_as!r} read as {name.upper()} 1")


def _directions(reader: _Reader) -> None:
    """ "more GPUs": a direction is no figure."""
    while (match := words.DIRECTION.search(reader.text)) is not None:
        name = _named(match.groupdict())
        said_as = reader.take(match)
        reader.questions.append(f"{said_as!r}: how many? say the figure, such as {_example(reader, name)!r}")


def _example(reader: _Reader, name: str) -> str:
    assert reader.now is not None
    value = _FIGURES[name](reader.now.intent) if name in _FIGURES else None
    return f"{TITLES.get(name, name.replace('_', ' '))} {2 * value if value else 16:g}"


def _objective(reader: _Reader) -> None:
    match = words.OBJECTIVE.search(reader.text)
    if match is not None:
        objective = str(match.lastgroup)
        said_as = reader.take(match)
        reader.stated["objective"], reader.words["objective"] = objective, said_as
        reader.readings.append(f"{said_as!r} read as the objective {objective}")
