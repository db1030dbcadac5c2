"""`build_dag`: the DAG of a strategy, laid out and checked, kept under a handle; nothing is accepted by it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..loop.judge import stated_document
from .documents import kept, outline, summary, validated
from .strategy_argument import StrategyArgument
from .tool import Answer, Arguments, Bench, Tool


class BuildArguments(Arguments):
    """What is built."""

    strategy: StrategyArgument
    concurrency: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="requests in flight, only where the request leaves them open"
    )


def _run(bench: Bench, arguments: BuildArguments) -> Answer:
    built = stated_document(bench.desk, arguments.strategy.stated(), arguments.concurrency)
    handle, document, _ = kept(bench, built)
    told = {"handle": handle, **summary(document), "stages": outline(document), **validated(document, bench.level)}
    return Answer(told)


BUILD_DAG = Tool(
    name="build_dag",
    description=(
        "Build the DAG of a strategy without submitting it. Answers with a handle for estimate_dag, compare_dags, "
        "patch_dag and submit_dag, and with the findings where it breaks rules."
    ),
    arguments=BuildArguments,
    run=_run,
)
