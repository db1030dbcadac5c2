"""The launch commands of a document in an engine, or why that engine cannot run it."""

from __future__ import annotations

import shlex
from typing import Any

from ...tools.engines.names import JUDGED, engine_of, engine_or_usual
from ...tools.errors import InputError
from ...tools.export.export import export, target_named
from ...tools.export.result import Launch
from ...tools.plan.elements import as_mapping, as_str
from .tool import Answer, Bench

_MOST_COMMANDS = 8


def commands(bench: Bench, handle: str, engine: str | None) -> Answer:
    """The launch commands of the document of `handle` for `engine`, else the one that it names, else the usual one.

    Raises:
        InputError: there is no such document, or no such engine.
    """
    document = bench.desk.get(handle)
    if engine is not None and engine not in JUDGED:
        raise InputError(f"no engine {engine[:40]!r}: {', '.join(JUDGED)}")
    own = as_str(as_mapping(document.get("serving")).get("engine"))
    named = engine or engine_of(own) or engine_or_usual(own)
    found = export(document, target_named(named))
    told: dict[str, Any] = {"handle": handle, "engine": f"{found.engine} {found.engine_version}"}
    if found.refused:
        return Answer({**told, "refused": list(found.refused), "nearest": found.nearest}, "infeasible")
    more = len(found.launches) - _MOST_COMMANDS
    told["commands"] = [_command(one) for one in found.launches[:_MOST_COMMANDS]]
    if more > 0:
        told["more_commands"] = more
    files = {one.name: one.text for one in found.files[:_MOST_COMMANDS]}
    return Answer({**told, **({"files": files} if files else {}), "mind": list(found.remarks)})


def _command(launch: Launch) -> str:
    settings = [f"{name}={value}" for name, value in launch.environment.items()]
    return f"{launch.node}: {' '.join([*settings, shlex.join(launch.arguments)])}"
