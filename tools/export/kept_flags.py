"""The flags that a plan keeps from an imported command, in the commands of an export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from msgspec.structs import replace

from ..catalog.dtypes import DType
from ..engines.vocabulary import Vocabulary, nested
from ..importing.flags import most_tokens_taken, read_flags
from ..importing.kept_flags import flags_in, is_e5m2, is_of_plan, key_of, options_flag, options_of, shown
from ..importing.options import Path, leaves
from ..performance.layout import LoadedLayout
from ..plan.document import Plan
from ..plan.kept_flags import KeptFlags, Role
from .server import Server, ServingSettings, servers_of, settings_of
from .target import MODEL, CannotExportError, Commands, Target
from .text import as_yaml

_ROLES: tuple[Role, ...] = ("both", "decode", "prefill")


def flags_of(plan: Plan) -> KeptFlags:
    """The flags that `plan` keeps."""
    return (None if plan.serving is None else plan.serving.flags) or KeptFlags()


def lost_flags(plan: Plan) -> Iterator[str]:
    """Remark on kept flags of another engine than the target's, which are left out."""
    if plan.serving is not None and plan.serving.flags is not None:
        serving = plan.serving
        yield f"the flags that the plan keeps are those of {serving.engine}, and are left out: {serving.flags}"


def checked(flags: KeptFlags, target: Target, kv_cache: DType) -> None:
    """Raise CannotExportError if a kept flag sets what the plan itself states, or another format of the KV cache."""
    vocabulary = target.engine.vocabulary
    for flag in (flag for role in _ROLES for flag in flags_in(flags.of(role), vocabulary, names_model=True)):
        if is_of_plan(flag, vocabulary) or flag.name in vocabulary.starting.split():
            says = "the plan says" if is_of_plan(flag, vocabulary) else "an export decides"
            raise CannotExportError(f"serving.flags: {flag.shown[:60]} is what {says} itself: leave it out there")
        if is_e5m2(flag, vocabulary) and kv_cache != "fp8":
            raise CannotExportError(
                f"serving.flags: {' '.join(flag.words)[:60]}: the plan has the KV cache in {kv_cache}: leave it out"
            )


def parted(flags: KeptFlags, target: Target) -> tuple[KeptFlags, tuple[str, ...]]:
    """Kept flags without those that the target's version lacks, and the names of the latter."""
    vocabulary, supported, gone = target.engine.vocabulary, dict[Role, tuple[str, ...]](), dict[str, None]()
    for role in _ROLES:
        ours = flags_in(flags.of(role), vocabulary, names_model=True)
        lacked = [
            flag for flag in ours if flag.shown in read_flags((MODEL, *flag.words), vocabulary).lacking(vocabulary)
        ]
        gone |= dict.fromkeys(flag.shown for flag in lacked)
        supported[role] = tuple(word for flag in ours if flag not in lacked for word in flag.words)
    return KeptFlags.model_validate({role: words for role, words in supported.items() if words}), tuple(gone)


def settings_with(settings: ServingSettings, flags: KeptFlags, positions: int, target: Target) -> ServingSettings:
    """The settings with the longest request of the kept flags, or all `positions` if those leave it open."""
    for role in _ROLES:
        stated = read_flags((MODEL, *flags.of(role)), target.engine.vocabulary)
        if "max_tokens" in stated.values:
            return replace(settings, max_tokens=most_tokens_taken(stated) or positions, keeps_max_tokens=True)
    return settings


def written_by_itself(layout: LoadedLayout, model: str, target: Target) -> Mapping[Role, Sequence[str]]:
    """The flags of each role's commands for a plan that keeps none."""
    settings = settings_of(layout, target.engine, model)
    words_by_role: dict[Role, Sequence[str]] = {}
    for server in servers_of(layout):
        if server.role not in words_by_role:
            commands = target.commands(server, settings)
            words = _flags_after_model(commands.launches[0].arguments)
            filed = (options_flag(options_in(file.text), target.engine.vocabulary) for file in commands.files)
            words_by_role[server.role] = (*words, *(word for flag in filed for word in flag.words))
    return words_by_role


def _flags_after_model(arguments: Sequence[str]) -> Sequence[str]:
    return arguments[arguments.index(MODEL) + 1 :]


def with_kept(commands: Commands, server: Server, flags: KeptFlags, target: Target) -> Commands:
    """Commands with kept flags in place of equivalent ones, ahead of the flags that let processes meet.

    Kept options are written in the file of options.
    """
    words_kept, vocabulary = flags.of(server.role), target.engine.vocabulary
    if not words_kept:
        return commands
    kept = flags_in(words_kept, vocabulary, names_model=True)
    holders = [flag for flag in kept if key_of(flag, vocabulary) == "options"]
    options = {path: value for flag in holders for path, value in options_of(flag).items()}
    words = [word for flag in kept if flag not in holders for word in flag.words]
    launches = (
        launch.model_copy(update={"arguments": tuple(_merged(launch.arguments, words, vocabulary))})
        for launch in commands.launches
    )
    files = (file.model_copy(update={"text": _with_options(file.text, options)}) for file in commands.files)
    return replace(commands, launches=tuple(launches), files=tuple(files))


def options_in(text: str) -> dict[Path, Any]:
    """The options of a file that an export writes."""
    return leaves(yaml.safe_load(text))


def _with_options(text: str, options: Mapping[Path, Any]) -> str:
    return as_yaml(nested({**options_in(text), **options})) if options else text


def _merged(arguments: Sequence[str], words: Sequence[str], vocabulary: Vocabulary) -> Iterator[str]:
    after = _flags_after_model(arguments)
    replaced = {key_of(flag, vocabulary) for flag in flags_in(words, vocabulary, names_model=True)}
    others = [
        flag for flag in flags_in(after, vocabulary, names_model=True) if key_of(flag, vocabulary) not in replaced
    ]
    meeting = vocabulary.meeting.split()
    first = next((place for place, flag in enumerate(others) if flag.name in meeting), len(others))
    yield from arguments[: len(arguments) - len(after)]
    yield from (word for flag in others[:first] for word in flag.words)
    yield from words
    yield from (word for flag in others[first:] for word in flag.words)


def kept_remarks(flags: KeptFlags, gone: Sequence[str], servers: Iterable[Server], target: Target) -> Iterator[str]:
    """Remarks on kept flags: written as they were, unknown here, `gone`, or left out as no server takes them."""
    roles, vocabulary = {server.role for server in servers}, target.engine.vocabulary
    if gone:
        names = ", ".join(f"{name}{vocabulary.successor(name)}" for name in gone)
        yield f"left out, since {target.engine.title} {target.engine.version} has them no longer: {names}"
    for role in _ROLES:
        words = flags.of(role)
        names = ", ".join(shown(flag, vocabulary) for flag in flags_in(words, vocabulary, names_model=True))
        if words and role not in roles:
            yield f"no server is of {role} alone: the flags that were kept for such servers are left out ({names})"
        elif words:
            unknown = read_flags((MODEL, *words), vocabulary).unknown
            unsure = f"; not known here: {', '.join(unknown)}" if unknown else ""
            yield f"kept from the command that was imported, as they stood there: {names}{unsure}"
