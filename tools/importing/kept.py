"""Flags of commands that say what no plan says: a plan keeps them as they stand, for an export to the same engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..engines.vocabulary import Vocabulary, is_open
from ..plan.kept_flags import KEPT_WORD, MOST_WORDS, KeptFlags, Role
from .flags import Spoken, spoken
from .launch import DIALECTS, Launch

# Concepts of which a plan says a part, or nothing.
_OPEN_CONCEPTS = frozenset({"max_tokens", "quantization", "transfer", "whole_prompts", "all_to_all"})
_SECRET = re.compile(r"api-key|hf-token|.*password.*")
_WORD = re.compile(KEPT_WORD)
# Variables that say which GPUs a process sees, which an export sets anew, or which a scheduler does.
_SET_ANEW = re.compile(
    r"\w+_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|VLLM_NIXL_SIDE_CHANNEL_\w+|VLLM_HTTP_TIMEOUT_KEEP_ALIVE|\w+_PP_LAYER_PARTITION"
    r"|(?:SLURM|SKYPILOT|LWS)_\w+"
)


class Kept(Struct, frozen=True):
    """The flags that a plan keeps, by the role of their servers; flags and variables that it does not, with why."""

    flags: Mapping[Role, tuple[Spoken, ...]]
    left_out: tuple[str, ...]


def is_of_plan(one: Spoken, vocabulary: Vocabulary) -> bool:
    """Whether a plan says itself what a flag says, or an export says it anew: how processes find each other."""
    concept = vocabulary.concepts.get(one.name)
    planned = concept is not None and concept not in _OPEN_CONCEPTS
    return not one.name or planned or one.name in vocabulary.meeting.split()


def flags_in(words: Sequence[str], vocabulary: Vocabulary, *, names_model: bool = False) -> list[Spoken]:
    """The flags of a command with all of their words: one may take several values; `names_model`: before them."""
    found: list[Spoken] = []
    for one in spoken(words[:MOST_WORDS], vocabulary):
        if found and not one.words[0].startswith("-") and (names_model or not one.name):
            found[-1] = replace(found[-1], words=(*found[-1].words, one.value))
        else:
            found.append(one)
        names_model |= vocabulary.concepts.get(one.name) == "model"
    return found


def kept_flags(launch: Launch) -> Kept:
    """What a plan keeps of the commands of `launch`: what all commands of a role say alike."""
    vocabulary = DIALECTS[launch.engine].engine.vocabulary
    flags: dict[Role, tuple[Spoken, ...]] = {}
    left_out: list[str] = []
    for role in ("both", "prefill", "decode"):
        commands = [
            [one for one in flags_in(command.process.words, vocabulary) if not is_of_plan(one, vocabulary)]
            for command in launch.commands
            if (command.phase or "both") == role
        ]
        others = [{one.words for one in command} for command in commands]
        for one in dict.fromkeys(one for command in commands for one in command):
            why = _why_not(one, vocabulary)
            if why is None and any(one.words not in other for other in others):
                why = "not in all commands of its side"
            if why is None:
                flags[role] = (*flags.get(role, ()), _whole(one, vocabulary))
            else:
                left_out.append(f"{one.shown} ({why})")
    filed = (one.flags.written["config"] for one in launch.commands if "config" in one.flags.values)
    left_out += [f"options of {name} (in a file)" for name in filed]
    left_out += [f"{name} (a variable)" for name in launch.variables if not _SET_ANEW.fullmatch(name)]
    return Kept(flags, tuple(dict.fromkeys(left_out)))


def _whole(one: Spoken, vocabulary: Vocabulary) -> Spoken:
    """A flag as a command has it: `-q awq` as `--quantization awq`, `enable_x: true` of a file as `--enable-x`."""
    outer, point, inner = one.shown.lstrip("-").partition(".")
    name = outer if one.shown.startswith("--") else vocabulary.spelled[vocabulary.concepts[one.name]].split()[0]
    name = (name if vocabulary.in_file else name.replace("_", "-")) + point + inner
    is_switch = len(one.words) == 2 and one.value.lower() in ("true", "false")
    if is_switch:
        return replace(one, words=(f"--{name}" if one.value.lower() == "true" else f"--no-{name}",))
    return replace(one, words=(f"--{name}", *one.words[1:]))


def _why_not(one: Spoken, vocabulary: Vocabulary) -> str | None:
    """Why a flag is not kept."""
    if _SECRET.fullmatch(one.name):
        return "a secret"
    if any(is_open(word) or _WORD.fullmatch(word) is None for word in one.words):
        return "left to a variable, or of several lines"
    return None if one.shown.startswith("--") or one.name in vocabulary.concepts else "of one letter"


def beside(kept: Kept, written: Mapping[Role, Sequence[str]], vocabulary: Vocabulary) -> KeptFlags | None:
    """The flags of `kept` that are not `written` as they stand by an export anyway; `None` where all are."""
    found = {role: tuple(_other(flags, written.get(role, ()), vocabulary)) for role, flags in kept.flags.items()}
    said = {role: words for role, words in found.items() if words}
    return KeptFlags.model_validate(said) if said else None


def _other(flags: Iterable[Spoken], written: Sequence[str], vocabulary: Vocabulary) -> Iterator[str]:
    own = {(key_of(one, vocabulary), one.value) for one in flags_in(written, vocabulary, names_model=True)}
    for one in flags:
        if (key_of(one, vocabulary), one.value) not in own:
            yield from one.words


def key_of(one: Spoken, vocabulary: Vocabulary) -> str:
    """What two flags that say the same have in common: their concept, or their name."""
    return vocabulary.concepts.get(one.name, one.name)
