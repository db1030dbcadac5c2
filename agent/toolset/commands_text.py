"""The launch commands of a document for an engine, or why that engine cannot run it."""

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
    """The launch commands of the document of `handle` for `engine`, else for the one that it names, else the usual one.

    Raises:
        InputError: no such document, or no such engine.
    """
    document = bench.desk.get(handle)
    if engine is not None and engine not in JUDGED:
        raise InputError(f"no engine {engine[:40]!r}: {', '.join(JUDGED)}")
    plan_engine = as_str(as_mapping(document.get("serving")).get("engine"))
    named = engine or engine_of(plan_engine) or engine_or_usual(plan_engine)
    exported = export(document, target_named(named))
    content: dict[str, Any] = {"handle": handle, "engine": f"{exported.engine} {exported.engine_version}"}
    if exported.refused:
        return Answer({**content, "refused": list(exported.refused), "nearest": exported.nearest}, "infeasible")
    more = len(exported.launches) - _MOST_COMMANDS
    content["commands"] = [_command(launch) for launch in exported.launches[:_MOST_COMMANDS]]
    if more > 0:
        content["more_commands"] = more
    files = {file.name: file.text for file in exported.files[:_MOST_COMMANDS]}
    return Answer({**content, **({"files": files} if files else {}), "mind": list(exported.remarks)})


def _command(launch: Launch) -> str:
    settings = [f"{name}={value}" for name, value in launch.environment.items()]
    return f"{launch.node}: {' '.join([*settings, shlex.join(launch.arguments)])}"
