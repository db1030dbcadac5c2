"""One case through the agent, whoever proposes: the built-in proposer, a script, a recording, an endpoint.

What a user would get is what is judged: the same question, the same loop, the same judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
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
from ..model.client import ModelClient
from ..model.deadline import Deadline
from ..model.messages import ModelRequest, Reply, Usage
from ..model.scripted import calls
from ..reading.reader import ModelReader
from ..reading.source import Source
from ..results import PlanResult
from ..spent import Spent
from .judged import as_written
from .marks import Attempt, Solution, Subject
from .posed import PosedCase, with_calibration
from .solver import Finishing, OwnWay, Reading, Solver


def solve(found: PosedCase, solver: Solver, epoch: int) -> Solution:
    """What `solver` answers to a case, the `epoch`-th time.

    Raises:
        ShardwrightError: the solver cannot be asked, or is not content with how it was.
    """
    if found.question is not None:
        return solver.solve(found, epoch) if isinstance(solver, OwnWay) else solve_question(found, solver, epoch)
    if found.case.expect == "reading":
        return read_case(found, solver, epoch)
    if found.refusal is not None:
        solution = Solution("refused", Subject(False, refusal=found.refusal), refusal=found.refusal)
    else:
        solution = Solution("infeasible", Subject(False), result=found.infeasible)
    return _finished(found, solver, epoch, None, solution)


def solve_question(
    found: PosedCase, solver: Solver, epoch: int, options: AgentOptions | None = None, *, takes_up: bool = True
) -> Solution:
    """One run of the agent for a case that has a question, by the `options` of `solver` where none are given.

    What the case says is proposed first opens the run and is corrected there; without `takes_up` it is only judged, and
    the solver answers the question as if nothing had been proposed.

    Raises:
        ShardwrightError: as `solve`.
    """
    question = found.question
    assert question is not None
    if solver.calibration is not None:
        try:
            question = with_calibration(found, solver.calibration)
        except InputError as error:
            return Solution("failed", Subject(False, refusal=str(error)), refusal=str(error))
    client, first = solver.client(found, epoch), _first(found)
    chosen = options or solver.options
    if first is None or not takes_up:
        solution = _own(question) if client is None else _run(question, found, client, chosen)
        if first is not None:
            solution = replace(solution, attempts=(_judged_alone(question, found, first), *solution.attempts))
    else:
        solution = _run(question, found, _Opened(first, client or _BuiltIn(question)), chosen)
    return _finished(found, solver, epoch, client, solution)


def read_case(found: PosedCase, solver: Solver, epoch: int) -> Solution:
    """What the request of a case is read as: by the rules and the model of a solver that `reads`, else by the rules.

    Raises:
        ShardwrightError: as `solve`.
    """
    client = solver.client(found, epoch) if isinstance(solver, Reading) and solver.reads else None
    is_brief = "brief" in found.case.tags
    source = Source(kind="brief" if is_brief else "words", texts=(("the request", found.case.request or ""),))
    options, spent = solver.options, Spent()
    if client is None:
        said = source.rules()
    else:
        reader = ModelReader.by(client, options, Deadline.after(options.limits.seconds))
        try:
            said = reader.read(source)
        except RequestError as error:
            said = error
        spent = reader.budget.spent
    if isinstance(said, RequestError):
        solution = Solution("reading", Subject(False), refusal=str(said), spent=spent)
    else:
        solution = Solution("reading", Subject(False), said=said, spent=spent)
    return _finished(found, solver, epoch, client, solution)


def _finished(found: PosedCase, solver: Solver, epoch: int, client: ModelClient | None, solution: Solution) -> Solution:
    if isinstance(solver, Finishing):
        solver.finish(found, epoch, client, solution)
    return solution


def _judged_alone(question: Question, found: PosedCase, first: str) -> Attempt:
    """What a case says is proposed first, as it was written, not repaired."""
    if found.broken is not None:
        subject = as_written(found.broken)
        return Attempt(subject, subject)
    desk = Desk(question)
    return _attempt(judge_text(desk, first, repairs=False), desk.documents)


def _first(found: PosedCase) -> str | None:
    """What a case says is proposed first."""
    return found.proposal if found.broken is None else json.dumps(found.broken, ensure_ascii=False)


def _own(question: Question) -> Solution:
    """The built-in proposer's answer: its one proposal, judged as any other."""
    document = question.reference_plan.model_dump(mode="json")
    subject = as_written(document)
    attempt = Attempt(subject, subject)
    if not subject.is_valid:
        # What auto-fix makes of it is part of the answer.
        attempt = _attempt(judge_document(Desk(question), document), {}, document)
    return Solution("plan", attempt.repaired, (attempt,), question.reference, plan_from="builtin")


def _run(question: Question, found: PosedCase, client: ModelClient, options: AgentOptions) -> Solution:
    """A run of the agent."""
    finished = Agent(client, options=options).run_question(question, found.case.request or "")
    ending, result = finished.ending, finished.result
    attempts = _attempts(ending, found)
    return Solution(
        kind="plan" if result.plan is not None else "failed",
        final=_of_result(result),
        attempts=attempts,
        result=result,
        status=ending.status,
        plan_from=ending.origin,
        spent=ending.spent,
    )


def _attempts(ending: Ending, found: PosedCase) -> tuple[Attempt, ...]:
    attempts = [_attempt(one, ending.documents) for one in ending.judgements]
    if found.broken is not None and attempts:
        # Under the question its header is put right before it is judged; as it was proposed it is as it was written.
        attempts[0] = replace(attempts[0], proposed=as_written(found.broken))
    return tuple(attempts)


def _attempt(
    judgement: Judgement, documents: Mapping[str, dict[str, Any]], own: Mapping[str, Any] | None = None
) -> Attempt:
    document = own if own is not None else documents.get(judgement.handle or "")
    proposed = Subject(judgement.verdict != "unread", document, judgement.rules, judgement.refusal)
    standing = judgement.standing
    if standing is None:
        return Attempt(proposed, proposed, judgement)
    # A plan for another model or load was not right at once, though all that was asked has been put right in it.
    wrong = [one for one in judgement.contradictions if not one.startswith("model.name:")]
    first = replace(proposed, refusal=f"it answers another question: {wrong[0]}" if wrong else None)
    if judgement.verdict == "valid":
        return Attempt(first, replace(proposed, refusal=None), judgement)
    return Attempt(first, _of_plan(standing.plan), judgement)


def _of_plan(plan: Plan) -> Subject:
    return Subject(True, plan.model_dump(mode="json"))


def _of_result(result: PlanResult) -> Subject:
    """What a user would get, judged anew: what was said of it on the way does not count."""
    if result.plan is None:
        return Subject(False, refusal="no plan came of it")
    document = result.plan.model_dump(mode="json")
    return as_written(document)


class _Opened(Struct, frozen=True):
    """A client before which something was proposed already."""

    first: str
    then: ModelClient

    @property
    def name(self) -> str:
        return self.then.name

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        if any(one.role == "assistant" for one in request.messages):
            return self.then.complete(request, deadline, on_text)
        return Reply(text=self.first, finish="stop", usage=_NOTHING)


_NOTHING = Usage(input_tokens=0, output_tokens=0)


# How feedback names the valid document that a repair led to.
_REPAIRED = re.compile(r'"repaired_as": "(\w+)"')


class _BuiltIn(Struct, frozen=True):
    """The built-in proposer as a client: it takes the repair of what was proposed, else proposes its own plan."""

    question: Question
    name: str = "builtin"

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        repaired = _REPAIRED.search(request.messages[-1].content)
        if repaired is not None:
            return calls(("submit_dag", {"handle": repaired[1]}))
        text = json.dumps(self.question.reference_plan.model_dump(mode="json"), ensure_ascii=False)
        return Reply(text=text, finish="stop", usage=_NOTHING)
