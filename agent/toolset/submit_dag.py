"""`submit_dag`: a proposal, as a strategy, by handle or as a whole document; judged at once, it answers the run.

With `only_try` it is judged and kept, but the run goes on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import Field

from ...tools.autofix.autofix import MOST_RATIONALE
from ...tools.errors import InputError
from ...tools.plan.document import FORMAT, VERSION
from ..loop.feedback import feedback
from ..loop.judge import Judgement, judge_document, judge_handle
from .documents import outline, summary
from .strategy_argument import StrategyArgument
from .tool import Answer, Arguments, Bench, Tool

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class SettingsArgument(Arguments):
    """How the engine runs it, as far as the request leaves it open. Null: as the engine does by itself."""

    prefill_chunk_tokens: Count | None = None
    max_batch: Count | None = None
    microbatches: Annotated[int, Field(ge=1, le=4096)] | None = None
    overlap: Literal["none", "two_batch"] | None = None


class SubmitArguments(Arguments):
    """Exactly one of `handle`, `strategy` and `document`."""

    strategy: StrategyArgument | None = None
    handle: str | None = Field(default=None, description="handle of a document made before, or `reference`")
    document: dict[str, Any] | None = Field(default=None, description="a whole plan document")
    settings: SettingsArgument | None = Field(default=None, description="with a strategy")
    concurrency: Count | None = Field(default=None, description="requests in flight, where the request leaves it open")
    only_try: bool | None = Field(default=None, description="true: judge it, with its figures, and go on")
    rationale: str | None = Field(default=None, description="why, in one or two sentences", max_length=MOST_RATIONALE)


def _run(bench: Bench, arguments: SubmitArguments) -> Answer:
    named = [name for name in ("handle", "strategy", "document") if getattr(arguments, name) is not None]
    if len(named) != 1:
        raise InputError(f"give exactly one of handle, strategy and document; given: {', '.join(named) or 'none'}")
    judgement = replace(_judged(bench, arguments), rationale=arguments.rationale)
    if not arguments.only_try:
        return Answer(feedback(judgement, bench.level), judgement=judgement)
    return Answer(_tried(bench, judgement))


def _judged(bench: Bench, arguments: SubmitArguments) -> Judgement:
    if arguments.handle is not None:
        return judge_handle(bench.desk, arguments.handle, repairs=bench.repairs)
    document = arguments.document
    if arguments.strategy is not None:
        # A document in our format: its blocks are read by name, without guessing what they may mean.
        document = {"format": FORMAT, "version": VERSION, "strategy": arguments.strategy.block()}
        if arguments.concurrency is not None:
            document["workload"] = {"concurrency": arguments.concurrency}
        if arguments.settings is not None:
            document["serving"] = arguments.settings.model_dump(mode="json", exclude_none=True)
    return judge_document(bench.desk, document or {}, repairs=bench.repairs)


def _tried(bench: Bench, judgement: Judgement) -> dict[str, Any]:
    """The feedback on a proposal that is not yet the answer, with its size and its stages."""
    content = feedback(judgement, bench.level)
    would_be_accepted = content.pop("accepted", None)
    if would_be_accepted is not None:
        content = {"would_be_accepted": would_be_accepted, **content}
    if judgement.handle is None:
        return content
    document = bench.desk.get(judgement.handle)
    return {**content, "handle": judgement.handle, **summary(document), "stages": outline(document)}


SUBMIT_DAG = Tool(
    name="submit_dag",
    description=(
        "Submit your answer: a strategy, whose DAG the tools build. It is validated, repaired where that keeps your "
        "decisions, estimated, and accepted if it is valid and no worse than the reference; else you are told why not."
    ),
    arguments=SubmitArguments,
    run=_run,
    is_strict=False,
)
