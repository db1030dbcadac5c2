"""Flags of commands that no plan states: a plan keeps them as written, for an export to the same engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..engines.vocabulary import Vocabulary, is_open
from ..plan.kept_flags import KEPT_WORD, MOST_WORDS, KeptFlags, Role
from .flags import Spoken, spoken
from .launch import DIALECTS, Launch

# Concepts that a plan states in part or not at all.
_OPEN_CONCEPTS = frozenset({
    "max_tokens", "quantization", "transfer", "whole_prompts", "all_to_all", "positions", "rope_type", "rope_factor",
    "rope_original",
})  # fmt: skip
_SECRET = re.compile(r"api-key|hf-token|.*password.*")
_WORD = re.compile(KEPT_WORD)
# Variables that choose the GPUs of a process; an export or a scheduler sets them anew.
_SET_ANEW = re.compile(
    r"\w+_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|VLLM_NIXL_SIDE_CHANNEL_\w+|VLLM_HTTP_TIMEOUT_KEEP_ALIVE|\w+_PP_LAYER_PARTITION"
    r"|(?:SLURM|SKYPILOT|LWS)_\w+"
)


class Kept(Struct, frozen=True):
    """The flags that a plan keeps, by the role of their servers; flags and variables left out, each with the reason."""

    flags: Mapping[Role, tuple[Spoken, ...]]
    left_out: tuple[str, ...]


def is_of_plan(flag: Spoken, vocabulary: Vocabulary) -> bool:
    """Whether a plan states the flag itself, or an export writes it anew (how processes meet)."""
    concept = vocabulary.concepts.get(flag.name)
    planned = concept is not None and concept not in _OPEN_CONCEPTS
    return not flag.name or planned or flag.name in vocabulary.meeting.split()


def flags_in(words: Sequence[str], vocabulary: Vocabulary, *, names_model: bool = False) -> list[Spoken]:
    """The flags of a command with all their words; `names_model`: the model stands before `words`."""
    flags: list[Spoken] = []
    for flag in spoken(words[:MOST_WORDS], vocabulary):
        if flags and not flag.words[0].startswith("-") and (names_model or not flag.name):
            flags[-1] = replace(flags[-1], words=(*flags[-1].words, flag.value))
        else:
            flags.append(flag)
        names_model |= vocabulary.concepts.get(flag.name) == "model"
    return flags


def kept_flags(launch: Launch) -> Kept:
    """The flags that a plan keeps of the commands of `launch`: those that all commands of a role share."""
    vocabulary = DIALECTS[launch.engine].engine.vocabulary
    flags: dict[Role, tuple[Spoken, ...]] = {}
    left_out: list[str] = []
    for role in ("both", "prefill", "decode"):
        commands = [
            [flag for flag in flags_in(command.process.words, vocabulary) if not is_of_plan(flag, vocabulary)]
            for command in launch.commands
            if (command.phase or "both") == role
        ]
        others = [{flag.words for flag in command} for command in commands]
        for flag in dict.fromkeys(flag for command in commands for flag in command):
            why = _why_not(flag, vocabulary)
            if why is None and any(flag.words not in other for other in others):
                why = "not in all commands of its side"
            if why is None:
                flags[role] = (*flags.get(role, ()), _whole(flag, vocabulary))
            else:
                left_out.append(f"{flag.shown} ({why})")
    filed = (command.flags.written["config"] for command in launch.commands if "config" in command.flags.values)
    left_out += [f"options of {name} (in a file)" for name in filed]
    left_out += [f"{name} (a variable)" for name in launch.variables if not _SET_ANEW.fullmatch(name)]
    return Kept(flags, tuple(dict.fromkeys(left_out)))


def _whole(flag: Spoken, vocabulary: Vocabulary) -> Spoken:
    """A flag spelled out: `-q awq` as `--quantization awq`, `enable_x: true` of a file as `--enable-x`."""
    outer, point, inner = flag.shown.lstrip("-").partition(".")
    name = outer if flag.shown.startswith("--") else vocabulary.spelled[vocabulary.concepts[flag.name]].split()[0]
    name = (name if vocabulary.in_file else name.replace("_", "-")) + point + inner
    is_switch = len(flag.words) == 2 and flag.value.lower() in ("true", "false")
    if is_switch:
        return replace(flag, words=(f"--{name}" if flag.value.lower() == "true" else f"--no-{name}",))
    return replace(flag, words=(f"--{name}", *flag.words[1:]))


def _why_not(flag: Spoken, vocabulary: Vocabulary) -> str | None:
    """Why a flag is not kept; `None` if it is."""
    if _SECRET.fullmatch(flag.name):
        return "a secret"
    if any(is_open(word) or _WORD.fullmatch(word) is None for word in flag.words):
        return "left to a variable, or of several lines"
    return None if flag.shown.startswith("--") or flag.name in vocabulary.concepts else "of one letter"


def beside(kept: Kept, written: Mapping[Role, Sequence[str]], vocabulary: Vocabulary) -> KeptFlags | None:
    """The flags of `kept` that an export does not write anyway (`written`); `None` if it writes all."""
    kept_words = {role: tuple(_other(flags, written.get(role, ()), vocabulary)) for role, flags in kept.flags.items()}
    kept_roles = {role: words for role, words in kept_words.items() if words}
    return KeptFlags.model_validate(kept_roles) if kept_roles else None


def _other(flags: Iterable[Spoken], written: Sequence[str], vocabulary: Vocabulary) -> Iterator[str]:
    exported = {(key_of(flag, vocabulary), flag.value) for flag in flags_in(written, vocabulary, names_model=True)}
    for flag in flags:
        if (key_of(flag, vocabulary), flag.value) not in exported:
            yield from flag.words


def key_of(flag: Spoken, vocabulary: Vocabulary) -> str:
    """The key that flags of the same meaning share: their concept, or their name."""
    return vocabulary.concepts.get(flag.name, flag.name)
