"""`validate_dag`: the findings of a document by its handle, in the form of the feedback; nothing is mended."""

from __future__ import annotations

from pydantic import Field

from .documents import summary, validated
from .tool import Answer, Arguments, Bench, Tool


class ValidateArguments(Arguments):
    """Which document."""

    handle: str = Field(description="handle of a document")


def _run(bench: Bench, arguments: ValidateArguments) -> Answer:
    document = bench.desk.get(arguments.handle)
    return Answer({"handle": arguments.handle, **summary(document), **validated(document, bench.level)})


VALIDATE_DAG = Tool(
    name="validate_dag",
    description="Check a document against every hard rule: each finding with its place and what would pass.",
    arguments=ValidateArguments,
    run=_run,
)
