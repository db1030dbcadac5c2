"""`inspect_dag`: the tools' answers on a document of the desk: findings, figures, a comparison, launch commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from ...tools.errors import InputError
from .commands_text import commands
from .comparison_text import comparison
from .documents import summary, validated
from .figures_text import figures
from .tool import Answer, Arguments, Bench, Tool


class InspectArguments(Arguments):
    """Which document, and what of it."""

    handle: str = Field(description="handle of a document")
    what: Literal["findings", "figures", "comparison", "commands"]
    other: str | None = Field(default=None, description="comparison: another handle; commands: vllm, sglang or trtllm")


def _findings(bench: Bench, arguments: InspectArguments) -> Answer:
    document = bench.desk.get(arguments.handle)
    return Answer({"handle": arguments.handle, **summary(document), **validated(document, bench.level)})


def _comparison(bench: Bench, arguments: InspectArguments) -> Answer:
    if arguments.other is None:
        raise InputError("`other` is missing: the handle to compare with, such as `reference`")
    return comparison(bench, arguments.handle, arguments.other)


_WAYS: dict[str, Callable[[Bench, InspectArguments], Answer]] = {
    "findings": _findings,
    "figures": lambda bench, arguments: figures(bench, arguments.handle),
    "comparison": _comparison,
    "commands": lambda bench, arguments: commands(bench, arguments.handle, arguments.other),
}

INSPECT_DAG = Tool(
    name="inspect_dag",
    description=(
        "Look at a document: its findings; its figures with their parts, memory and limits; a comparison with another; "
        "the commands that start it."
    ),
    arguments=InspectArguments,
    run=lambda bench, arguments: _WAYS[arguments.what](bench, arguments),
)
