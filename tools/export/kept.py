"""The flags that a plan keeps of the command that it was imported from, in the commands of an export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..engines.vocabulary import Vocabulary
from ..importing.flags import most_tokens_taken, read_flags
from ..importing.kept import flags_in, is_of_plan, key_of
from ..performance.layout import LoadedLayout
from ..plan.document import Plan
from ..plan.kept_flags import KeptFlags, Role
from .server import Server, ServingSettings, servers_of, settings_of
from .target import MODEL, CannotExportError, Commands, Target

_ROLES: tuple[Role, ...] = ("both", "decode", "prefill")


def flags_of(plan: Plan) -> KeptFlags:
    """The flags that `plan` keeps."""
    return (None if plan.serving is None else plan.serving.flags) or KeptFlags()


def lost_flags(plan: Plan) -> Iterator[str]:
    """That a plan keeps flags of another engine than the target's."""
    if plan.serving is not None and plan.serving.flags is not None:
        own = plan.serving
        yield f"the flags that the plan keeps are those of {own.engine}, and are left out: {own.flags}"


def checked(flags: KeptFlags, target: Target) -> None:
    """Check that a plan keeps no flag of what it says itself. Raises CannotExportError: it does."""
    vocabulary = target.engine.vocabulary
    for one in (one for role in _ROLES for one in flags_in(flags.of(role), vocabulary, names_model=True)):
        if is_of_plan(one, vocabulary):
            raise CannotExportError(f"serving.flags: {one.shown[:60]} is what the plan says itself: leave it out there")


def parted(flags: KeptFlags, target: Target) -> tuple[KeptFlags, tuple[str, ...]]:
    """Kept flags without those that the target's version has not, and these as they are shown."""
    vocabulary, left, gone = target.engine.vocabulary, dict[Role, tuple[str, ...]](), dict[str, None]()
    for role in _ROLES:
        ours = flags_in(flags.of(role), vocabulary, names_model=True)
        lacked = [one for one in ours if one.shown in read_flags((MODEL, *one.words), vocabulary).lacking(vocabulary)]
        gone |= dict.fromkeys(one.shown for one in lacked)
        left[role] = tuple(word for one in ours if one not in lacked for word in one.words)
    return KeptFlags.model_validate({role: words for role, words in left.items() if words}), tuple(gone)


def settings_with(settings: ServingSettings, flags: KeptFlags, positions: int, target: Target) -> ServingSettings:
    """The settings of servers with the longest request that kept flags state; all `positions` where they leave it."""
    for role in _ROLES:
        said = read_flags((MODEL, *flags.of(role)), target.engine.vocabulary)
        if "max_tokens" in said.values:
            return replace(settings, max_tokens=most_tokens_taken(said) or positions, keeps_max_tokens=True)
    return settings


def written_by_itself(layout: LoadedLayout, model: str, target: Target) -> Mapping[Role, Sequence[str]]:
    """What the commands of each role say of a plan that keeps no flags."""
    settings = settings_of(layout, target.engine, model)
    found: dict[Role, Sequence[str]] = {}
    for server in servers_of(layout):
        if server.role not in found:
            found[server.role] = _flags_after_model(target.commands(server, settings).launches[0].arguments)
    return found


def _flags_after_model(arguments: Sequence[str]) -> Sequence[str]:
    return arguments[arguments.index(MODEL) + 1 :]


def with_kept(commands: Commands, server: Server, flags: KeptFlags, target: Target) -> Commands:
    """Commands with the kept flags in place of those that say the same, before those by which processes meet."""
    words, vocabulary = flags.of(server.role), target.engine.vocabulary
    if not words:
        return commands
    launches = (
        one.model_copy(update={"arguments": tuple(_merged(one.arguments, words, vocabulary))})
        for one in commands.launches
    )
    return replace(commands, launches=tuple(launches))


def _merged(arguments: Sequence[str], words: Sequence[str], vocabulary: Vocabulary) -> Iterator[str]:
    after = _flags_after_model(arguments)
    replaced = {key_of(one, vocabulary) for one in flags_in(words, vocabulary, names_model=True)}
    own = [one for one in flags_in(after, vocabulary, names_model=True) if key_of(one, vocabulary) not in replaced]
    meeting = vocabulary.meeting.split()
    first = next((place for place, one in enumerate(own) if one.name in meeting), len(own))
    yield from arguments[: len(arguments) - len(after)]
    yield from (word for one in own[:first] for word in one.words)
    yield from words
    yield from (word for one in own[first:] for word in one.words)


def kept_remarks(flags: KeptFlags, gone: Sequence[str], servers: Iterable[Server], target: Target) -> Iterator[str]:
    """Which flags are written as they were stated, which are not known here or are `gone`, which no server takes."""
    roles, vocabulary = {server.role for server in servers}, target.engine.vocabulary
    if gone:
        yield f"left out, since {target.engine.title} {target.engine.version} has them no longer: {', '.join(gone)}"
    for role in _ROLES:
        words = flags.of(role)
        shown = ", ".join(one.shown for one in flags_in(words, vocabulary, names_model=True))
        if words and role not in roles:
            yield f"no server is of {role} alone: the flags that were kept for such servers are left out ({shown})"
        elif words:
            unknown = read_flags((MODEL, *words), vocabulary).unknown
            unsure = f"; not known here: {', '.join(unknown)}" if unknown else ""
            yield f"kept from the command that was imported, as they stood there: {shown}{unsure}"
