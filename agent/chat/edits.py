"""A follow-up as an edit of the request: what it states, what it takes back, and how each word was read.

It is read beside what was said before: "double the GPUs", "back to 8", "drop the limit on TTFT" mean nothing alone. An
edit says everything that it does; what was not understood is listed and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...tools.errors import InputError
from ...tools.plan.document import Relaxation
from ..intent.errors import RequestError
from ..intent.intent import Intent, Said, StatedDegrees, StatedStrategy
from ..intent.merge import merge_said
from ..intent.quantities import normalise
from ..intent.request import MAX_REQUEST_CHARACTERS, read_words
from . import edit_words as words

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


@dataclass(frozen=True, slots=True)
class Spoken:
    """A request as it stood at one point of a chat: what was said, and what it came to."""

    said: Said
    intent: Intent


@dataclass(frozen=True, slots=True)
class Edit:
    """What a follow-up changes. `dropped` are fields of `Said` that are unsaid again, `forbidden` relaxations that are
    allowed no more, `degrees` degrees that join the stated strategy. `questions` is what has to be asked back.
    """

    said: Said = field(default_factory=Said)
    dropped: tuple[str, ...] = ()
    forbidden: tuple[Relaxation, ...] = ()
    degrees: tuple[tuple[str, int], ...] = ()
    is_joined: bool = False
    readings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not (stated_fields(self.said) or self.dropped or self.forbidden or self.degrees)

    @property
    def strategy_only(self) -> StatedStrategy | None:
        """The strategy that it states, where it does nothing else."""
        others = stated_fields(self.said) - {"strategy", "relaxations"}
        return None if others or self.dropped or self.forbidden or self.degrees else self.said.strategy


def stated_fields(said: Said) -> set[str]:
    """The fields of a request that say something."""
    return set(said.model_dump(exclude_defaults=True, exclude={"words", "unread", "readings"}))


def apply_edit(current: Said, edit: Edit) -> Said:
    """The request `current` with `edit` done to it."""
    said, updates = edit.said, dict[str, Any]()
    # How earlier words were read was told when they were said.
    base = current.model_copy(update={"readings": (), "unread": ()})
    unsaid = Said()
    for name in edit.dropped:
        updates[name] = getattr(unsaid, name)
    if edit.forbidden:
        updates["relaxations"] = tuple(name for name in base.relaxations if name not in edit.forbidden)
    if _names_other_card(base, said):
        # The links of a node are the card's; those between nodes stay as they are.
        updates["intra_node_bw_gb_s"] = None
    kept = {name: text for name, text in base.words.items() if name not in updates}
    merged = merge_said([base.model_copy(update={**updates, "words": kept}), said])
    strategy = merged.strategy
    if edit.is_joined and base.strategy is not None and said.strategy is not None and "strategy" not in edit.dropped:
        strategy = _joined(base.strategy, said.strategy)
    if edit.degrees:
        strategy = _with_degrees(strategy or StatedStrategy(), edit.degrees)
    return merged.model_copy(
        update={"strategy": strategy, "readings": edit.readings, "unread": tuple(dict.fromkeys(edit.unread))}
    )


def _names_other_card(base: Said, said: Said) -> bool:
    named = said.accelerator or said.accelerator_object
    return named is not None and named != (base.accelerator or base.accelerator_object)


def _joined(before: StatedStrategy, after: StatedStrategy) -> StatedStrategy:
    phases = {
        phase: getattr(before, phase).model_copy(update=getattr(after, phase).model_dump(exclude_none=True))
        for phase in ("prefill", "decode")
    }
    own = {name: getattr(after, name) for name in ("dp", "gpus") if getattr(after, name) is not None}
    return before.model_copy(update={**phases, **own})


def _with_degrees(strategy: StatedStrategy, degrees: Sequence[tuple[str, int]]) -> StatedStrategy:
    own = {name: degree for name, degree in degrees if name != "dp"}
    fields: dict[str, Any] = {
        phase: StatedDegrees.model_validate({**getattr(strategy, phase).model_dump(), **own})
        for phase in ("prefill", "decode")
    }
    dp = dict(degrees).get("dp")
    return strategy.model_copy(update=fields | ({} if dp is None else {"dp": dp}))


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
    if len(text) > MAX_REQUEST_CHARACTERS:
        raise RequestError(f"the text has {len(text)} characters; at most {MAX_REQUEST_CHARACTERS} are read")
    reader = _Reader(" ".join(normalise(text).split()), spoken)
    if reader.now is not None:
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
    for match in list(words.FORBID.finditer(reader.text)):
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
