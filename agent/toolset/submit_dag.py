"""`submit_dag`: the answer of a run, by handle, as a strategy or as a whole document; judged at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from ...tools.errors import InputError
from ..loop.feedback import feedback
from ..loop.judge import judge_document, judge_handle, judge_strategy
from .strategy_argument import StrategyArgument
from .tool import Answer, Arguments, Bench, Tool


class SubmitArguments(Arguments):
    """What is submitted: exactly one of `handle`, `strategy` and `document`."""

    handle: str | None = Field(default=None, description="handle of a document: one made before, or `reference`")
    strategy: StrategyArgument | None = Field(default=None, description="a strategy; its DAG is built and judged")
    document: dict[str, Any] | None = Field(default=None, description="a whole plan document, compact form allowed")
    concurrency: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="requests in flight, only where the request leaves them open"
    )
    rationale: str | None = Field(default=None, description="why this split, in one or two sentences", max_length=4000)


def _run(bench: Bench, arguments: SubmitArguments) -> Answer:
    given = [name for name in ("handle", "strategy", "document") if getattr(arguments, name) is not None]
    if len(given) != 1:
        raise InputError(f"give exactly one of handle, strategy and document; given: {', '.join(given) or 'none'}")
    if arguments.strategy is not None:
        judgement = judge_strategy(
            bench.desk, arguments.strategy.stated(), concurrency=arguments.concurrency, repairs=bench.repairs
        )
    elif arguments.handle is not None:
        judgement = judge_handle(bench.desk, arguments.handle, repairs=bench.repairs)
    else:
        judgement = judge_document(bench.desk, arguments.document or {}, repairs=bench.repairs)
    judgement = replace(judgement, rationale=arguments.rationale)
    return Answer(feedback(judgement, bench.level), judgement=judgement)


SUBMIT_DAG = Tool(
    name="submit_dag",
    description=(
        "Submit your answer. It is validated against every hard rule, repaired where that keeps your decisions, and "
        "accepted at once if it is valid; otherwise you are told what is wrong. Usually the first and only call."
    ),
    arguments=SubmitArguments,
    run=_run,
    is_strict=False,
)
