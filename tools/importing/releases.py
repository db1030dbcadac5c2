"""Flags of commands against the releases of their engine that have them."""

from __future__ import annotations

from collections.abc import Iterator

from ..engines.names import ENGINES
from ..engines.release import release_of
from .caveats import Caveat
from .launch import Launch

_EXPORTED = "an export has what says it now, or does without"


def lacking_flags(launch: Launch) -> Iterator[Caveat]:
    """Flags that the named release does not have; if the text names none, those that today's, or any, does not have."""
    engine, release = ENGINES[launch.engine], release_of(launch.version)
    is_earlier = release is not None and release < (release_of(engine.version) or ())
    known = [command.flags.known for command in launch.commands]
    lacking: dict[str, str] = {}
    for command in launch.commands:
        lacking |= command.flags.lacking(engine.vocabulary, release if is_earlier else None)
    if not lacking:
        return
    names = ", ".join(f"{shown}{releases}" for shown, releases in lacking.items())
    version = f"{engine.title} {launch.version if is_earlier else engine.version}"
    if release is not None:
        remedy = "take them out" if is_earlier else _EXPORTED
        yield "refused", f"{version} has no {names}, and refuses flags that it does not know; {remedy}"
    elif apart := next(filter(None, (engine.vocabulary.apart_in_time(flags) for flags in known)), None):
        yield "refused", f"no release of {engine.title} has both {' and '.join(apart)}: take one out"
    else:
        why = f"{version} has no {names}: the text names no release, and is read as of one that has all its flags"
        yield "remark", f"{why}; {_EXPORTED}"
