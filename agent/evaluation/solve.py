"""One case through the agent, for any solver: the built-in proposer, a script, a recording, an endpoint.

It judges what a user would get: the same question, the same loop, the same judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...tools.errors import InputError
from ...tools.language.errors import RequestError
from ...tools.plan.document import Plan
from ..agent import Agent
from ..loop.agent_options import AgentOptions
from ..loop.desk import Desk
from ..loop.judge import Judgement, judge_document, judge_text
from ..loop.loop import Ending
from ..loop.question import Question
from ..model.client import ModelClient, OnText
from ..model.deadline import Deadline
from ..model.messages import ModelRequest, Reply, Usage
from ..model.scripted import calls
from ..reading.reader import ModelReader
from ..reading.source import Source
from ..results import PlanResult
from ..runs.spent import Spent
from .judged import as_written
from .marks import Attempt, Solution, Subject
from .posed import PosedCase, with_calibration
from .solver import Finishing, OwnWay, Reading, Solver


def solve(posed: PosedCase, solver: Solver, epoch: int) -> Solution:
    """The answer of `solver` to a case in an epoch.

    Raises:
        ShardwrightError: the solver cannot be asked, or rejects how the run went.
    """
    if posed.question is not None:
        return solver.solve(posed, epoch) if isinstance(solver, OwnWay) else solve_question(posed, solver, epoch)
    if posed.case.expect == "reading":
        return read_case(posed, solver, epoch)
    if posed.refusal is not None:
        solution = Solution("refused", Subject(False, refusal=posed.refusal), refusal=posed.refusal)
    else:
        solution = Solution("infeasible", Subject(False), result=posed.infeasible)
    return _finished(posed, solver, epoch, None, solution)


def solve_question(
    posed: PosedCase, solver: Solver, epoch: int, options: AgentOptions | None = None, *, takes_up: bool = True
) -> Solution:
    """One run of the agent for a case with a question, with `options`, else those of `solver`.

    The proposal that the case gives opens the run and is corrected there; without `takes_up` it is only judged, and the
    solver answers as if there were none.

    Raises:
        ShardwrightError: as `solve`.
    """
    question = posed.question
    assert question is not None
    if solver.calibration is not None:
        try:
            question = with_calibration(posed, solver.calibration)
        except InputError as error:
            return Solution("failed", Subject(False, refusal=str(error)), refusal=str(error))
    client, first = solver.client(posed, epoch), _first_proposal(posed)
    chosen = options or solver.options
    if first is None or not takes_up:
        solution = _built_in(question) if client is None else _run(question, posed, client, chosen)
        if first is not None:
            solution = replace(solution, attempts=(_judged_alone(question, posed, first), *solution.attempts))
    else:
        solution = _run(question, posed, _Opened(first, client or _BuiltIn(question)), chosen)
    return _finished(posed, solver, epoch, client, solution)


def read_case(posed: PosedCase, solver: Solver, epoch: int) -> Solution:
    """The reading of a case's request: by the rules and the model of a solver that `reads`, else by the rules alone.

    Raises:
        ShardwrightError: as `solve`.
    """
    client = solver.client(posed, epoch) if isinstance(solver, Reading) and solver.reads else None
    is_brief = "brief" in posed.case.tags
    source = Source(kind="brief" if is_brief else "words", texts=(("the request", posed.case.request or ""),))
    options, spent = solver.options, Spent()
    if client is None:
        reading = source.rules()
    else:
        reader = ModelReader.by(client, options, Deadline.after(options.limits.seconds))
        try:
            reading = reader.read(source)
        except RequestError as error:
            reading = error
        spent = reader.budget.spent
    if isinstance(reading, RequestError):
        solution = Solution("reading", Subject(False), refusal=str(reading), spent=spent)
    else:
        solution = Solution("reading", Subject(False), said=reading, spent=spent)
    return _finished(posed, solver, epoch, client, solution)


def _finished(posed: PosedCase, solver: Solver, epoch: int, client: ModelClient | None, solution: Solution) -> Solution:
    if isinstance(solver, Finishing):
        solver.finish(posed, epoch, client, solution)
    return solution


def _judged_alone(question: Question, posed: PosedCase, first: str) -> Attempt:
    """The proposal that a case gives, judged as written, without repair."""
    if posed.broken is not None:
        subject = as_written(posed.broken)
        return Attempt(subject, subject)
    desk = Desk(question)
    return _attempt(judge_text(desk, first, repairs=False), desk.documents)


def _first_proposal(posed: PosedCase) -> str | None:
    """The proposal that a case gives, as text."""
    return posed.proposal if posed.broken is None else json.dumps(posed.broken, ensure_ascii=False)


def _built_in(question: Question) -> Solution:
    """The built-in proposer's answer: its one proposal, judged as any other."""
    document = question.reference_plan.model_dump(mode="json")
    subject = as_written(document)
    attempt = Attempt(subject, subject)
    if not subject.is_valid:
        # Auto-fix is part of the answer.
        attempt = _attempt(judge_document(Desk(question), document), {}, document)
    return Solution("plan", attempt.repaired, (attempt,), question.reference, plan_from="builtin")


def _run(question: Question, posed: PosedCase, client: ModelClient, options: AgentOptions) -> Solution:
    """A run of the agent."""
    finished = Agent(client, options=options).run_question(question, posed.case.request or "")
    ending, result = finished.ending, finished.result
    attempts = _attempts(ending, posed)
    return Solution(
        kind="plan" if result.plan is not None else "failed",
        final=_of_result(result),
        attempts=attempts,
        result=result,
        beaten=None if ending.behind is None else _of_plan(ending.behind.plan),
        status=ending.status,
        plan_from=ending.origin,
        spent=ending.spent,
    )


def _attempts(ending: Ending, posed: PosedCase) -> tuple[Attempt, ...]:
    attempts = [_attempt(judgement, ending.documents) for judgement in ending.judgements]
    if posed.broken is not None and attempts:
        # The run corrects its header to the question before judging; the proposal itself is as it was written.
        attempts[0] = replace(attempts[0], proposed=as_written(posed.broken))
    return tuple(attempts)


def _attempt(
    judgement: Judgement, documents: Mapping[str, dict[str, Any]], written: Mapping[str, Any] | None = None
) -> Attempt:
    document = written if written is not None else documents.get(judgement.handle or "")
    proposed = Subject(judgement.verdict != "unread", document, judgement.rules, judgement.refusal)
    standing = judgement.standing
    if standing is None:
        return Attempt(proposed, proposed, judgement)
    # A plan for another model or load was not right at once, though it was adapted to the question.
    wrong = [contradiction for contradiction in judgement.contradictions if not contradiction.startswith("model.name:")]
    first = replace(proposed, refusal=f"it answers another question: {wrong[0]}" if wrong else None)
    if judgement.verdict == "valid":
        return Attempt(first, replace(proposed, refusal=None), judgement)
    return Attempt(first, _of_plan(standing.plan), judgement)


def _of_plan(plan: Plan) -> Subject:
    return Subject(True, plan.model_dump(mode="json"))


def _of_result(result: PlanResult) -> Subject:
    """The user's result, judged anew, whatever was said on the way."""
    if result.plan is None:
        return Subject(False, refusal="no plan came of it")
    document = result.plan.model_dump(mode="json")
    return as_written(document)


class _Opened(Struct, frozen=True):
    """A client that starts with a given proposal, then asks `then`."""

    first: str
    then: ModelClient

    @property
    def name(self) -> str:
        return self.then.name

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        if any(message.role == "assistant" for message in request.messages):
            return self.then.complete(request, deadline, on_text)
        return Reply(text=self.first, finish="stop", usage=_NOTHING)


_NOTHING = Usage(input_tokens=0, output_tokens=0)


# How feedback names the valid document of a repair.
_REPAIRED = re.compile(r'"repaired_as": "(\w+)"')


class _BuiltIn(Struct, frozen=True):
    """The built-in proposer as a client: it takes the repair of a proposal, else proposes its own plan."""

    question: Question
    name: str = "builtin"

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        repaired = _REPAIRED.search(request.messages[-1].content)
        if repaired is not None:
            return calls(("submit_dag", {"handle": repaired[1]}))
        text = json.dumps(self.question.reference_plan.model_dump(mode="json"), ensure_ascii=False)
        return Reply(text=text, finish="stop", usage=_NOTHING)
