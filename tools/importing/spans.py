"""Spans of launch commands in running text, and what they start, in the words of requests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from ..catalog.models import find_model
from ..engines.names import ENGINES, EngineName
from ..errors import InputError
from ..plan.describe import describe
from ..plan.document import PHASES, PhaseStrategy, Strategy
from ..plan.placement import stage_width
from .deployment import deployment_of
from .group import Scheduling, stated_of
from .launch import DIALECTS, read_launch

_START = re.compile(
    r"(?<![\w/.-])(?:[A-Z][A-Z0-9_]{2,40}=\S{1,200}[ \t]+){0,8}(?:python3?[ \t]+-m[ \t]+)?"
    rf"(?:{'|'.join(f'(?P<{name}>{ENGINES[name].begins})' for name in DIALECTS)})(?=[ \t\\\n])"
)
_WORD = re.compile(
    r"[ \t]*(?P<breaks>(?:\\?\n[ \t]*)?)(?P<word>'[^'\n]{0,2000}'|\"[^\"\n]{0,2000}\"|[^\s'\"]\S{0,500})"
)
# Ends a sentence, not a command.
_CLOSING = ".,;:)`。，；）"
# The value of an unknown flag, as opposed to a word of the sentence.
_VALUE = re.compile(r"[\"'{\[].*|.*[\d/_.=].*|true|false|auto|none", re.IGNORECASE)
_MOST_COMMANDS = 32
_MOST_SHOWN = 60
# Without one of these concepts a command states nothing of the split.
_DEGREES = frozenset({"tp", "pp", "dp", "ep", "attention_dp", "expert_parallel", "context", "cache_parts", "tp_expert"})


class Started(Struct, frozen=True):
    """What the launch commands of a text start: all degrees, if a command states any, and settings of schedulers.

    `words` is the first command, `servers` the number of servers.
    """

    words: str
    servers: int
    strategy: Strategy | None
    scheduling: Scheduling


def commands_in(text: str) -> list[tuple[int, int]]:
    """Start and end of each launch command in `text`: up to its last flag or value."""
    spans: list[tuple[int, int]] = []
    place = 0
    while len(spans) < _MOST_COMMANDS and (start := _START.search(text, place)) is not None:
        engine = next((name for name in DIALECTS if start[name]), None)
        end = start.end() if engine is None else _end(text, start.end(), engine)
        place = max(end, start.end())
        if end > start.end():
            spans.append((start.start(), end))
    return spans


def _end(text: str, place: int, engine: EngineName) -> int:
    """End of the last flag or value of a command."""
    vocabulary, has_model, waiting = ENGINES[engine].vocabulary, False, None
    end, is_closed = place, False
    while (match := _WORD.match(text, place)) is not None:
        word, breaks = match["word"], match["breaks"]
        is_flag = word.startswith("-") and len(word) > 1 and not word[1].isdigit()
        if not is_flag and (is_closed or ("\n" in breaks and "\\" not in breaks)):
            break
        if is_flag:
            name, _, value = word.lstrip("-").replace("_", "-").lower().partition("=")
            name = vocabulary.whole(name.rstrip(_CLOSING))
            waiting = None if value or name in vocabulary.valueless else name
            has_model |= vocabulary.concepts.get(name) == "model"
        elif waiting is not None and (waiting in vocabulary.concepts or _VALUE.fullmatch(word)):
            waiting = None
        elif has_model:
            break
        else:
            has_model = True
        place = match.end()
        bare = word if word[0] in "'\"" else word.rstrip(_CLOSING)
        is_closed = bare != word
        end = match.start("word") + len(bare)
    return end


def started_by(text: str) -> Started | None:
    """What the launch commands in `text` start; `None` if there are none, or if that is unknown."""
    commands = [text[start:end] for start, end in commands_in(text)]
    try:
        launch = read_launch("\n".join(commands)) if commands else None
        deployment = None if launch is None else deployment_of(launch, find_model(launch.model or "").architecture())
    except InputError:
        return None
    if launch is None or deployment is None:
        return None
    says_degrees = _DEGREES & launch.commands[0].flags.values.keys()
    strategy = deployment.strategy if says_degrees else None
    return Started(_shown(commands[0]), deployment.strategy.dp, strategy, deployment.scheduling)


def _shown(command: str) -> str:
    line = " ".join(command.replace("\\", " ").split())
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"


def in_words(commands: Sequence[str]) -> str | None:
    """What commands start, in words: model, engine, strategy, formats and memory; `None` if unknown.

    Unknown: servers differ, a figure is left to a variable, or the catalogue lacks the model.
    """
    try:
        launch = read_launch("\n".join(commands))
        architecture = find_model(launch.model or "").architecture()
        deployment = deployment_of(launch, architecture)
        stated = stated_of(launch.commands[0].flags)
    except InputError:
        return None
    parts = [launch.model, f"with {ENGINES[launch.engine].title}"]
    if _DEGREES & launch.commands[0].flags.values.keys():
        parts.append(_degrees(deployment.strategy, is_moe=architecture.is_moe))
    parts += [f"{stated.weights} weights" if stated.weights else None]
    parts += [f"{stated.kv_cache} KV cache" if stated.kv_cache else None]
    parts += [f"gpu memory utilization {stated.memory_share:g}" if stated.memory_share else None]
    return ", ".join(filter(None, parts))


def in_place(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` with words in place of its launch commands, and how those were read; unchanged if that is unknown."""
    spans = commands_in(text)
    words = in_words([text[start:end] for start, end in spans]) if spans else None
    if words is None:
        return text, ()
    parts: list[str] = []
    place = 0
    for number, (start, end) in enumerate(spans):
        # Figures in the words of one command out of several do not apply to the strategy of all.
        parts += [text[place:start], "" if number else f"{words}; " if len(spans) > 1 else words]
        place = end
    return "".join((*parts, text[place:])), (f"{_shown(text[slice(*spans[0])])!r} read as {words}",)


def not_planned(text: str) -> tuple[str, ...]:
    """What launch commands in `text` state and no plan holds: unknown flags, and what others turn on."""
    spans = commands_in(text)
    try:
        launch = read_launch("\n".join(text[start:end] for start, end in spans))
    except InputError:
        return ()
    names = [name for command in launch.commands for name in (*command.flags.unknown, *command.flags.unplanned)]
    return tuple(f"{name} of the launch command is not planned for" for name in dict.fromkeys(names))


def _degrees(strategy: Strategy, *, is_moe: bool) -> str:
    """A strategy by the degrees that people state: EP 1 means that experts are cut over all ranks."""

    def plain(phase: PhaseStrategy) -> PhaseStrategy:
        return phase.model_copy(update={"tp_expert": None, "tp_ffn": phase.tp})

    phases = {name: plain(getattr(strategy, name)) for name in PHASES}
    words = describe(strategy.model_copy(update=phases), has_split_ffn=False) or "TP1"
    cuts_experts = is_moe and all(phase.ep == 1 < stage_width(phase) for phase in phases.values())
    return f"{words}, EP1" if cuts_experts else words
