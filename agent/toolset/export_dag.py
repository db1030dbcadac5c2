"""`export_dag`: the launch commands of a document in an engine, or why that engine cannot run it."""

from __future__ import annotations

import shlex
from typing import Any, Literal

from pydantic import Field

from ...tools.engines.names import engine_of, engine_or_usual
from ...tools.export.export import export
from ...tools.export.result import Launch
from ...tools.plan.elements import as_mapping, as_str
from .tool import Answer, Arguments, Bench, Tool

_MOST_COMMANDS = 8


class ExportArguments(Arguments):
    """Which document, and for which engine."""

    handle: str = Field(description="handle of a document")
    engine: Literal["vllm", "sglang", "trtllm"] | None = Field(
        default=None, description="null: the one that the document names, else vllm"
    )


def _run(bench: Bench, arguments: ExportArguments) -> Answer:
    document = bench.desk.get(arguments.handle)
    own = as_str(as_mapping(document.get("serving")).get("engine"))
    found = export(document, arguments.engine or engine_of(own) or engine_or_usual(own))
    told: dict[str, Any] = {"handle": arguments.handle, "engine": f"{found.engine} {found.engine_version}"}
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


EXPORT_DAG = Tool(
    name="export_dag",
    description="The commands that start a document in vLLM, SGLang or TensorRT-LLM, or why the engine cannot run it.",
    arguments=ExportArguments,
    run=_run,
)
