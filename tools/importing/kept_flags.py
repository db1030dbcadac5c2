"""Flags of commands that no plan states: a plan keeps them as written, for an export to the same engine.

Options in a file, or in objects of flags, are kept as one flag with all of them, where the engine reads a file of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..engines.vocabulary import VALUELESS, Vocabulary, is_open, nested
from ..plan.kept_flags import KEPT_WORD, MOST_WORDS, KeptFlags, Role
from .flags import Spoken, spoken
from .launch import DIALECTS, Command, Launch
from .options import Path, concept_of, is_plain, leaves, names_of, object_in

# Concepts that a plan states in part or not at all.
_OPEN_CONCEPTS = frozenset({
    "max_tokens", "quantization", "transfer", "whole_prompts", "cuts_prompts", "all_to_all", "positions", "rope_type",
    "rope_factor", "rope_original", "options",
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
    """Whether a plan states the flag itself, or an option in it, or an export writes it anew (how processes meet)."""
    if key_of(flag, vocabulary) == "options":
        return any(_is_planned(concept_of(path, vocabulary)) for path in options_of(flag))
    planned = _is_planned(vocabulary.concepts.get(flag.name)) and not is_e5m2(flag, vocabulary)
    return not flag.name or planned or flag.name in vocabulary.meeting.split()


def is_e5m2(flag: Spoken, vocabulary: Vocabulary) -> bool:
    """Whether a flag has the KV cache in e5m2: a plan's `fp8` does not say which of the two, and exports have e4m3."""
    return vocabulary.concepts.get(flag.name) == "kv_cache" and flag.value.lower().endswith("e5m2")


def _is_planned(concept: str | None) -> bool:
    return concept is not None and concept not in _OPEN_CONCEPTS


def options_of(flag: Spoken) -> dict[Path, Any]:
    """The options in the object of a flag."""
    return leaves(object_in(flag.value) or {})


def shown(flag: Spoken, vocabulary: Vocabulary) -> str:
    """A kept flag as a person sees it."""
    is_options = key_of(flag, vocabulary) == "options"
    return names_of(options_of(flag)) if is_options else flag.shown


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
        commands = [list(_own(command, vocabulary)) for command in launch.commands if (command.phase or "both") == role]
        others = [{flag.words for flag in command} for command in commands]
        for flag in dict.fromkeys(flag for command in commands for flag in command):
            why = _why_not(flag, vocabulary)
            if why is None and any(flag.words not in other for other in others):
                why = "not in all commands of its side"
            if why is None:
                flags[role] = (*flags.get(role, ()), _whole(flag, vocabulary))
            else:
                left_out.append(f"{shown(flag, vocabulary)} ({why})")
    left_out += [words for command in launch.commands for words in _filed_apart(command, vocabulary)]
    left_out += [f"{name} (around the command)" for command in launch.commands for name in command.process.beside]
    names = {flag.name for role_flags in flags.values() for flag in role_flags}
    left_out += [
        f"{name} (a variable)"
        for name in launch.variables
        if not _SET_ANEW.fullmatch(name) and vocabulary.variables.get(name) not in names
    ]
    return Kept(flags, tuple(dict.fromkeys(left_out)))


def _own(command: Command, vocabulary: Vocabulary) -> Iterator[Spoken]:
    """The flags of a command that no plan states; its options are one flag where a file of them is read."""
    options: dict[Path, Any] = {}
    for flag in _in_todays_words(command, vocabulary):
        value = object_in(flag.value) if vocabulary.in_file and flag.words[0].startswith("-") else None
        if value is not None:
            is_whole = key_of(flag, vocabulary) == "options"
            options |= leaves(value if is_whole else {flag.shown.lstrip("-").replace("-", "_"): value})
        elif not is_of_plan(flag, vocabulary):
            yield flag
    own = _of_no_plan(options | leaves(command.filed), vocabulary)
    if kept := {path: value for path, value in own.items() if _is_kept(path, value, vocabulary)}:
        yield options_flag(kept, vocabulary)


def _in_todays_words(command: Command, vocabulary: Vocabulary) -> Iterator[Spoken]:
    """The flags of a command, with those that its variables and its switches of earlier releases stand for."""
    flags = flags_in(command.process.words, vocabulary)
    names = {flag.name for flag in flags}
    for flag in flags:
        name, value = vocabulary.renamed.get(flag.name, (flag.name, flag.value))
        if name == flag.name:
            yield flag
        elif flag.value == VALUELESS and name not in names:
            yield _said(name, value)
    for variable, name in vocabulary.variables.items():
        value = command.process.environment.get(variable, "$")
        if name not in names and not is_open(value) and vocabulary.refuses(name, value) is None:
            yield _said(name, value)


def _said(name: str, value: str) -> Spoken:
    return Spoken(name, value, f"--{name}", (f"--{name}", value))


def _of_no_plan(options: Mapping[Path, Any], vocabulary: Vocabulary) -> dict[Path, Any]:
    return {path: value for path, value in options.items() if not _is_planned(concept_of(path, vocabulary))}


def _is_kept(path: Path, value: object, vocabulary: Vocabulary) -> bool:
    is_secret = _SECRET.fullmatch(path[-1].replace("_", "-").lower()) is not None
    return vocabulary.in_file and is_plain(value) and not is_secret


def options_flag(options: Mapping[Path, Any], vocabulary: Vocabulary) -> Spoken:
    """The flag that states options, in order of their names: files of equal options are the same."""
    name, text = vocabulary.spelled["options"], json.dumps(nested(options), sort_keys=True)
    return Spoken(name, text, f"--{name}", (f"--{name}", text))


def _filed_apart(command: Command, vocabulary: Vocabulary) -> Iterator[str]:
    """The options of a command's file that are not kept."""
    if command.unread is not None:
        yield f"options of {command.unread[:80]} (in a file)"
    own = _of_no_plan(leaves(command.filed), vocabulary)
    if apart := {path: value for path, value in own.items() if not _is_kept(path, value, vocabulary)}:
        yield f"{names_of(apart)} (in a file)"


def _whole(flag: Spoken, vocabulary: Vocabulary) -> Spoken:
    """A flag spelled out: `-q awq` as `--quantization awq`, `enable_x: true` of a file as `--enable-x`."""
    if key_of(flag, vocabulary) == "options":
        return flag
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
    if flag.name in vocabulary.starting.split():
        return "an export starts ranks in its own way"
    if any(is_open(word) or _WORD.fullmatch(word) is None for word in flag.words):
        return "left to a variable, of several lines, or too long"
    return None if flag.shown.startswith("--") or flag.name in vocabulary.concepts else "of one letter"


def beside(kept: Kept, written: Mapping[Role, Sequence[str]], vocabulary: Vocabulary) -> KeptFlags | None:
    """The flags of `kept` that an export does not write anyway (`written`); `None` if it writes all."""
    kept_words = {role: tuple(_other(flags, written.get(role, ()), vocabulary)) for role, flags in kept.flags.items()}
    kept_roles = {role: words for role, words in kept_words.items() if words}
    return KeptFlags.model_validate(kept_roles) if kept_roles else None


def _other(flags: Iterable[Spoken], written: Sequence[str], vocabulary: Vocabulary) -> Iterator[str]:
    exported = {(key_of(flag, vocabulary), flag.value) for flag in flags_in(written, vocabulary, names_model=True)}
    for flag in flags:
        if key_of(flag, vocabulary) == "options":
            flag = _beside(flag, written, vocabulary)
            is_written = not options_of(flag)
        else:
            is_written = (key_of(flag, vocabulary), flag.value) in exported
        if not is_written:
            yield from flag.words


def _beside(flag: Spoken, written: Sequence[str], vocabulary: Vocabulary) -> Spoken:
    """The options that an export does not write anyway."""
    exported = {
        path: value
        for other in flags_in(written, vocabulary, names_model=True)
        if other.name == flag.name
        for path, value in options_of(other).items()
    }
    others = {path: value for path, value in options_of(flag).items() if (path, value) not in exported.items()}
    return options_flag(others, vocabulary)


def key_of(flag: Spoken, vocabulary: Vocabulary) -> str:
    """The key that flags of the same meaning share: their concept, or their name."""
    return vocabulary.concepts.get(flag.name, flag.name)
