"""A recorded run done again without a model: every judgement anew, the answers out of the recording.

It shows that the recording is whole and that today's tools come to the same end; where they do not, it says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...tools.errors import InputError
from ...tools.plan.canonical import content_hash
from ..model.client import EndpointError, FaultKind
from ..model.deadline import Deadline
from ..model.messages import ModelRequest, Reply, Usage
from ..results import PlanResult
from ..toolset.all_tools import ALL_TOOLS
from ..toolset.strategy_answer import STRATEGY_ANSWER
from .loop import Options, run
from .passages import passages_for
from .question import ask
from .report import result_of
from .request_digest import request_digest
from .transcript import Recorder, Result, Step, Transcript


class Replay(BaseModel):
    """What a replay found. `differences` is empty where it came to the same end by the same way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    same: bool
    differences: tuple[str, ...]
    recorded: Result | None
    replayed: Result
    result: PlanResult


class _RecordedFault(BaseModel):
    kind: FaultKind
    message: str
    attempts: int = Field(ge=0)
    usage: Usage | None = None


class RecordedModel:
    """A `ModelClient` that answers as was recorded, and notes where it is asked something else than then."""

    def __init__(self, transcript: Transcript) -> None:
        self._steps = [step for step in transcript.steps if step.kind in ("request", "reply", "fault")]
        self._name = transcript.setup.model
        self._asked = 0
        self.differences: list[str] = []

    @property
    def name(self) -> str:
        """The name of the model that was recorded."""
        return self._name

    @property
    def unplayed(self) -> int:
        """Answers that were not asked for."""
        return sum(1 for step in self._steps if step.kind != "request")

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The next recorded answer.

        Raises:
            EndpointError: it is a fault, or the recording is at its end.
            InputError: it is neither an answer nor a fault.
        """
        self._asked += 1
        recorded = self._next("request")
        if recorded is not None and recorded.data.get("digest") != request_digest(request):
            self.differences.append(f"request {self._asked} is not the one that was recorded")
        step = self._next("reply", "fault")
        if step is None:
            raise EndpointError("unplayed", f"the recording has no answer to request {self._asked}", 0)
        try:
            if step.kind == "reply":
                return Reply.model_validate(step.data)
            fault = _RecordedFault.model_validate(step.data)
        except ValidationError as error:
            first = error.errors()[0]
            where = "/".join(map(str, first["loc"]))
            raise InputError(f"the recorded answer to request {self._asked}: {where}: {first['msg']}") from None
        raise EndpointError(fault.kind, fault.message, fault.attempts, fault.usage)

    def _next(self, *kinds: str) -> Step | None:
        if self._steps and self._steps[0].kind in kinds:
            return self._steps.pop(0)
        return None


def replay(transcript: Transcript) -> Replay:
    """Do the run of `transcript` again.

    Raises:
        InputError: what it asked for cannot be planned any more, it names tools that there are not, or an answer in it
            cannot be read.
    """
    setup = transcript.setup
    question = ask(setup.intent)
    if isinstance(question, PlanResult):
        reason = question.infeasible.reason if question.infeasible is not None else "no reason is known"
        raise InputError(f"the recorded request has no plan any more: {reason}")
    tools = {tool.name: tool for tool in ALL_TOOLS}
    unknown = [name for name in setup.tools if name not in tools]
    if unknown:
        raise InputError(f"the recording offered tools that there are not: {', '.join(unknown)}")
    model = RecordedModel(transcript)
    options = Options(
        limits=setup.limits.model_copy(update={"seconds": 86_400.0}),
        prices=setup.prices,
        level=setup.level,
        repairs=setup.repairs,
        tools=tuple(tools[name] for name in setup.tools),
        answer=STRATEGY_ANSWER if setup.has_answer_schema else None,
        max_output_tokens=setup.max_output_tokens,
        fence=lambda: setup.fence,
    )
    passages = passages_for(setup.intent, setup.knowledge_tokens)
    ending = run(question, setup.request, passages, model, options, Recorder(setup))
    result = result_of(question, ending, model.name)
    replayed = Result(
        status=ending.status,
        origin=ending.origin,
        plan_hash=None if result.plan is None else content_hash(result.plan),
        spent=ending.spent,
    )
    differences = (*model.differences, *_differences(transcript.result, replayed, model.unplayed))
    return Replay(
        same=not differences, differences=differences, recorded=transcript.result, replayed=replayed, result=result
    )


# A clock ended the recorded run; a replay has none, and ends where the recording does.
_BY_CLOCK = frozenset({"time_spent", "endpoint_failed"})


def _differences(recorded: Result | None, replayed: Result, unplayed: int) -> Iterator[str]:
    if unplayed:
        yield f"{unplayed} recorded answers were not asked for"
    if recorded is None:
        yield "the recording was cut off before the run ended"
        return
    by_clock = recorded.status == "time_spent" and replayed.status in _BY_CLOCK
    if recorded.status != replayed.status and not by_clock:
        yield f"status: recorded {recorded.status}, now {replayed.status}"
    if recorded.plan_hash != replayed.plan_hash:
        yield "the plan that is returned is another"
