"""Repeats a recorded run without a model: every judgement anew, the answers from the recording.

It shows that the recording is complete and that today's tools come to the same end, or where they differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace
from pydantic import BaseModel, Field, ValidationError

from ...tools.calibration.custom import parse_calibration
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.performance.estimate import estimate
from ...tools.plan.canonical import content_hash
from ...tools.validate import validate
from ..intent.intent import Intent
from ..model.client import EndpointError, FaultKind, OnText
from ..model.deadline import MAX_SECONDS, Deadline
from ..model.messages import ModelRequest, Reply, Usage
from ..results import PlanResult
from ..runs.spent import Spent
from ..toolset.all_tools import ALL_TOOLS
from ..toolset.strategy_answer import STRATEGY_ANSWER
from .budget import Budget
from .clock import Stop
from .loop import Mode, Options, run
from .passages import passages_for
from .question import Question, ask, question_of
from .report import result_of
from .request_digest import request_digest
from .shorten import short_text
from .transcript import Recorder, Result, Setup, Step, Transcript


class Replay(Frozen):
    """What a replay found. `differences` is empty where it came to the same end by the same way."""

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


class _RecordedMode(BaseModel):
    tools: tuple[str, ...] = ()
    has_answer_schema: bool = False


class RecordedModel:
    """A `ModelClient` with the recorded answers, which notes requests that differ from the recorded ones."""

    def __init__(self, steps: Iterable[Step], name: str) -> None:
        self._steps = [step for step in steps if step.kind in ("request", "reply", "fault")]
        self._name = name
        self._asked = 0
        self.differences: list[str] = []

    @property
    def name(self) -> str:
        """The name of the model that was recorded."""
        return self._name

    @property
    def unplayed(self) -> int:
        """The number of answers not asked for."""
        return sum(1 for step in self._steps if step.kind != "request")

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        """The next recorded answer.

        Raises:
            EndpointError: a fault is recorded, or the recording is at its end.
            InputError: the step is neither an answer nor a fault.
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
    """Repeat the run of `transcript`.

    Raises:
        InputError: its request cannot be planned any more, it names unknown tools, or an answer in it cannot be read.
    """
    setup = transcript.setup
    differed, spent = _read_again(setup)
    question = _question_of(setup)
    if isinstance(question, PlanResult) and transcript.result is not None and transcript.result.status == "infeasible":
        replayed = Result(status="infeasible", origin="builtin", plan_hash=None, spent=spent or Spent())
        return _replay_of(transcript, replayed, question, (*differed, *_differences(transcript.result, replayed, 0)))
    if isinstance(question, PlanResult):
        reason = question.infeasible.reason if question.infeasible is not None else "no reason is known"
        raise InputError(f"the recorded request has no plan any more: {reason}")
    model = RecordedModel(transcript.steps, setup.model)
    options = replace(_options_of(transcript), spent=spent)
    passages = passages_for(question.intent, setup.knowledge_tokens)
    ending = run(question, setup.request, passages, model, options, Recorder(setup))
    result = result_of(question, ending, model.name)
    replayed = Result(
        status=ending.status,
        origin=ending.origin,
        plan_hash=None if result.plan is None else content_hash(result.plan),
        spent=ending.spent,
    )
    differences = (*differed, *model.differences, *_differences(transcript.result, replayed, model.unplayed))
    return _replay_of(transcript, replayed, result, differences)


def _replay_of(transcript: Transcript, replayed: Result, result: PlanResult, differences: tuple[str, ...]) -> Replay:
    return Replay(
        same=not differences, differences=differences, recorded=transcript.result, replayed=replayed, result=result
    )


def _read_again(setup: Setup) -> tuple[tuple[str, ...], Spent | None]:
    """The differences in reading the request again, and the cost."""
    from ..reading.again import read_again

    differences, budget = list[str](), Budget.start(setup.limits, setup.prices, Deadline.after(MAX_SECONDS))
    for recorded in setup.readings:
        model = RecordedModel(recorded.steps, setup.model)
        differences += (f"the reading: {line}" for line in read_again(recorded, model, budget, setup.max_output_tokens))
        differences += (f"the reading: {line}" for line in model.differences)
    return tuple(differences), budget.spent if setup.readings else None


def _question_of(setup: Setup) -> Question | PlanResult:
    """The question of the recorded run; the answer of a search that was cut is judged anew.

    Raises:
        InputError: that answer is invalid, or the request cannot be planned any more.
    """
    intent, reference = _intent_of(setup), setup.reference
    if reference is None or reference.plan is None or reference.report is None:
        return ask(intent)
    if not validate(reference.plan).valid:
        raise InputError("the recorded plan of the built-in proposer is not valid")
    figures = estimate(reference.plan, intent.usd_per_gpu_hour, intent.calibration)
    return question_of(intent, reference.model_copy(update={"estimate": figures, "valid": True, "intent": intent}))


def _intent_of(setup: Setup) -> Intent:
    """The recorded intent with its calibration.

    Raises:
        InputError: a constant of the calibration is out of its bounds.
    """
    if setup.calibration is None:
        return setup.intent
    checked = parse_calibration(setup.calibration.model_dump_json(), "the calibration of the recording")
    return setup.intent.model_copy(update={"calibration": checked})


def _options_of(transcript: Transcript) -> Options:
    """The options of the recorded run; its time ends where it ended then.

    Raises:
        InputError: it names unknown tools, or a step of it cannot be read.
    """
    setup = transcript.setup
    first = _mode(_RecordedMode(tools=setup.tools, has_answer_schema=setup.has_answer_schema))
    stops = [_read(Stop, step) for step in transcript.steps if step.kind == "stopped"]
    return Options(
        limits=setup.limits.model_copy(update={"seconds": 86_400.0}),
        prices=setup.prices,
        feedback=setup.level,
        repairs=setup.repairs,
        tools=first.tools,
        answer=first.answer,
        max_output_tokens=setup.max_output_tokens,
        fence=lambda: setup.fence,
        further=tuple(_mode(_read(_RecordedMode, step)) for step in transcript.steps if step.kind == "mode"),
        stop=stops[0] if stops else None,
        reference=setup.has_reference,
    )


def _mode(recorded: _RecordedMode) -> Mode:
    tools = {tool.name: tool for tool in ALL_TOOLS}
    unknown = [name for name in recorded.tools if name not in tools]
    if unknown:
        raise InputError(f"the recording offered tools that there are not: {short_text(', '.join(unknown))}")
    return Mode(
        tools=tuple(tools[name] for name in recorded.tools),
        answer=STRATEGY_ANSWER if recorded.has_answer_schema else None,
    )


_S = TypeVar("_S", bound=BaseModel)


def _read(kind: type[_S], step: Step) -> _S:
    """The data of a step.

    Raises:
        InputError: it is malformed.
    """
    try:
        return kind.model_validate(step.data)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise InputError(f"a recorded step `{step.kind}`: {short_text(where)}: {first['msg']}") from None


def _differences(recorded: Result | None, replayed: Result, unplayed: int) -> Iterator[str]:
    if unplayed:
        yield f"{unplayed} recorded answers were not asked for"
    if recorded is None:
        yield "the recording was cut off before the run ended"
        return
    if recorded.status != replayed.status:
        yield f"status: recorded {recorded.status}, now {replayed.status}"
    if recorded.plan_hash != replayed.plan_hash:
        yield "the plan that is returned is another"
