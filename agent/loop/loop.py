"""The loop, on one screen: a model proposes, tools judge, until a plan is accepted or a budget is spent.

    question → opening → [ model → tool calls or a proposal → judge → feedback ]* → outcome

A run always ends with a valid plan: the accepted one, else the best that stood, else the built-in proposer's. No step
begins after the time allowed, and one that is under way then is stopped at its next checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field

from ...prompts.render import render
from ...tools.checkpoint import doing
from ..model.client import EndpointError, ModelClient
from ..model.deadline import Deadline
from ..model.messages import AnswerSchema, Message, ModelRequest, Reply
from ..runs.spent import Spent
from ..runs.time_limit import within
from ..toolset.tool import Bench, Tool
from ..toolset.toolset import Toolset
from .agent_options import AgentOptions
from .budget import Budget
from .clock import Clock, Log, Stop
from .context import Passages, opening
from .desk import Desk, Maker, Standing
from .feedback import Level, feedback
from .fence import random_fence
from .judge import Judgement, judge_text
from .outcome import Origin, Status
from .progress import MOST_SAME_CALLS, MOST_SAME_PROPOSALS, SAME_CALLS_WARNED, Progress
from .question import Question
from .request_digest import request_digest
from .shorten import short_text
from .shortened import shortened
from .would_need import WouldNeed


class Mode(Struct, frozen=True):
    """How a model is asked: `tools` in this order; without any, it answers in text or in the schema `answer`."""

    tools: tuple[Tool[Any], ...] = ()
    answer: AnswerSchema | None = None


class Options(AgentOptions, frozen=True):
    """The settings of a run: how the agent works, and what is of this run alone. It begins in the mode of `tools` and
    `answer`; `further` modes follow if the server refuses what the last one needs.

    The time ends at `deadline`, else `limits.seconds` after the start; in a replay at `stop`, as recorded.
    """

    tools: tuple[Tool[Any], ...] = ()
    answer: AnswerSchema | None = None
    fence: Callable[[], str] = random_fence
    further: tuple[Mode, ...] = ()
    deadline: Deadline | None = None
    stop: Stop | None = None
    # Spent before the run: the model read the request.
    spent: Spent | None = None


_ORIGINS: Mapping[Maker, Origin] = {
    "model": "model",
    "repair": "model_repaired",
    "replan": "auto_fix",
    "builtin": "builtin",
}


class Ending(Struct, frozen=True):
    """How a run ended. `judgements` are of all proposals in order; `standing` is the model's plan, if returned.

    `behind` is the model's best valid plan if the built-in one is better and is returned. `documents` are those of the
    desk, by handle; `cut` is the step that the end of the time stopped, `would_need` what the person would gain by
    allowing more.
    """

    status: Status
    spent: Spent
    judgements: tuple[Judgement, ...]
    standing: Standing | None
    fault: EndpointError | None = None
    documents: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    cut: str | None = None
    behind: Standing | None = None
    would_need: tuple[WouldNeed, ...] = ()

    @property
    def origin(self) -> Origin:
        """The maker of the returned plan."""
        return _ORIGINS["builtin" if self.standing is None else self.standing.maker]


def run(
    question: Question, request_text: str, passages: Passages, client: ModelClient, options: Options, log: Log
) -> Ending:
    """Ask `client` until a plan is accepted, a budget is spent, or there is no progress."""
    state = _Run(question, client, options, log, _Teacher(passages, options.fence(), options.feedback))
    state.begin(Mode(options.tools, options.answer), request_text)
    further = list(options.further)
    status = state.exhausted()
    while status is None:
        try:
            reply = state.ask()
        except EndpointError as fault:
            if state.clock.is_over(state.asked):
                return state.ended("time_spent", fault)
            if fault.kind != "not_supported" or not further:
                return state.ended("endpoint_failed", fault)
            state.change_to(further.pop(0), request_text)
            status = state.exhausted()
        else:
            status = state.take(reply) or state.exhausted()
    return state.ended(status)


class _Teacher(Struct, frozen=True):
    """Adds passages on the broken rules to a correction, at the levels that explain."""

    passages: Passages
    fence: str
    level: Level

    def message(self, rules: tuple[str, ...]) -> tuple[Message, ...]:
        text = self.passages.teaching(rules) if self.level in ("full", "patch") and rules else ""
        if not text:
            return ()
        content = render("knowledge", part="for the rules that were broken", fence=self.fence, passages=text)
        return (Message(role="user", content=content),)


class _Run:
    """The state of one run: the conversation, the desk, the budget. The mode and its conversation may change."""

    def __init__(self, question: Question, client: ModelClient, options: Options, log: Log, teacher: _Teacher) -> None:
        self.client, self.options, self.log, self.teacher = client, options, log, teacher
        self.desk = Desk(question, getattr(client, "redact", str), options.reference)
        self.budget = Budget.start(options.limits, options.prices, options.deadline)
        self.budget.spent = options.spent or self.budget.spent
        self.clock = Clock(self.budget.deadline, options.stop, log)
        self.judgements: list[Judgement] = []
        self.asked = 0

    def begin(self, mode: Mode, request_text: str) -> None:
        """Begin a conversation in `mode`; judgements and costs so far stay."""
        self.answer = mode.answer
        self.toolset = Toolset(Bench(self.desk, self.options.feedback, self.options.repairs), mode.tools)
        self.progress = Progress()
        self.messages: list[Message] = []
        passages, fence = self.teacher.passages, self.teacher.fence
        start = opening(
            self.desk.question,
            request_text,
            passages,
            with_tools=bool(mode.tools),
            fence=fence,
            has_reference=self.options.reference,
        )
        self.log.add("opening", {"prompts": start.prompts, "sections": list(start.sections)})
        self.say(start.messages)

    def change_to(self, mode: Mode, request_text: str) -> None:
        """Continue in another mode with a new conversation: the last one has what the server refuses."""
        tools = [tool.name for tool in mode.tools]
        self.log.add("mode", {"tools": tools, "has_answer_schema": mode.answer is not None})
        self.begin(mode, request_text)

    def exhausted(self) -> Status | None:
        """The limit that was reached between two requests, or that the next would pass; `None` where it is ready."""
        status = "time_spent" if self.clock.is_over(self.asked) else self.budget.overspent()
        return status or self._prepared()

    def _prepared(self) -> Status | None:
        """Make the next request, or say which limit it would pass."""
        fitted = self.budget.fitted(
            ModelRequest(
                messages=tuple(self.messages),
                tools=self.toolset.specs,
                answer=self.answer,
                max_output_tokens=self.options.max_output_tokens,
            )
        )
        if isinstance(fitted, str):
            return fitted
        self.request = fitted
        return None

    def say(self, messages: Sequence[Message]) -> None:
        """Add messages to the conversation; each is logged once."""
        self.messages.extend(messages)
        self.log.add("messages", {"messages": [new.model_dump(mode="json", exclude_defaults=True) for new in messages]})

    def ask(self) -> Reply:
        """The model's next answer, charged before it is read.

        Raises:
            EndpointError: no usable answer came.
            InputError: the client returned something else than a `Reply`.
        """
        request = self.request
        self.asked += 1
        doing(f"asking {self.client.name}, request {self.asked}")
        self.log.add("request", {"messages": len(self.messages), "digest": request_digest(request)})
        return self.budget.ask(self.client, request, self.budget.deadline, self.log.add)

    def take(self, reply: Reply) -> Status | None:
        """Process an answer: the status that ends the run, or `None` with the conversation continued."""
        if reply.finish == "refusal":
            self.say([shortened(reply, [None] * len(reply.tool_calls))])
            return "refused_by_model"
        if reply.tool_calls:
            return self._take_calls(reply)
        if reply.finish == "length":
            self.say([shortened(reply, ())])
            return self._correct(render("cut_off", tokens=str(self.request.max_output_tokens)))
        judgement = None
        with self._working("the judgement of the answer", 0):
            judgement = judge_text(self.desk, reply.text, repairs=self.options.repairs)
        if judgement is None:
            self.say([shortened(reply, [None])])
            return "time_spent"
        self.say([shortened(reply, [judgement.handle])])
        if judgement.verdict == "unread":
            self._keep(judgement)
            return self._correct(render("no_proposal", reason=judgement.refusal or "it is empty"))
        status = self._weigh((judgement,))
        if status is not None:
            return status
        content = json.dumps(feedback(judgement, self.options.feedback), ensure_ascii=False)
        self.say([Message(role="user", content=render("judged", feedback=content, fence=self.teacher.fence))])
        return self._teach(judgement)

    def _take_calls(self, reply: Reply) -> Status | None:
        calls = reply.tool_calls
        room = self.budget.limits.tool_calls - self.budget.spent.tool_calls
        self.budget.charge_tool_calls(len(calls))
        most_rejected = self.budget.limits.corrections - self.budget.spent.corrections + 1
        answered = self.toolset.answer_all(
            calls,
            lambda done: self._why_stop(done, room),
            most_rejected,
            lambda done: self._working(short_text(calls[done].name, 60), done),
        )
        self.say([shortened(reply, answered.handles), *answered.messages])
        if answered.judgements:
            return self._weigh(answered.judgements) or self._teach(answered.judgements[-1])
        times = self.progress.times_called(calls)
        if times >= MOST_SAME_CALLS:
            return "no_progress"
        if times >= SAME_CALLS_WARNED:
            self.say([Message(role="user", content=render("repeated", times=str(times)))])
        return None

    @contextmanager
    def _working(self, step: str, done: int) -> Iterator[None]:
        """One step of the tools after so many calls of the answer; its effects are all or none."""
        with self.clock.working(step, self.asked, done), self.desk.whole(), within(self.options.time_limit_s):
            doing(step)
            yield

    def _why_stop(self, done: int, room: int) -> str | None:
        """Why no more calls of an answer are made, if a limit was reached within it."""
        if self.clock.is_over(self.asked, done):
            return "the time allowed is spent"
        return "the tool calls allowed are spent" if done >= room else None

    def _weigh(self, judgements: Sequence[Judgement]) -> Status | None:
        """Process the proposals of one answer: the status if the run ends; each rejected one takes a correction."""
        for judgement in judgements:
            self._keep(judgement)
        last = judgements[-1]
        if last.is_acceptable:
            self._charge_corrections(len(judgements) - 1)
            mended = last.standing is not None and last.standing.maker in ("repair", "replan")
            return "accepted_after_repair" if mended else "accepted"
        times = max(self.progress.times_proposed(judgement) for judgement in judgements)
        if times >= MOST_SAME_PROPOSALS:
            return "no_progress"
        if status := self._charge_corrections(len(judgements)):
            return status
        if times > 1:
            self.say([Message(role="user", content=render("repeated", times=str(times)))])
        return None

    def _keep(self, judgement: Judgement) -> None:
        self.judgements.append(judgement)
        standing = judgement.standing
        behind = {"behind": standing.against.words} if standing is not None and judgement.is_behind else {}
        self.log.add(
            "judgement",
            {
                "verdict": judgement.verdict,
                "handle": judgement.handle,
                "content_hash": judgement.content_hash,
                "rules": list(judgement.rules),
                **behind,
                "fixes": [fix.model_dump(mode="json") for fix in judgement.fixes],
            },
        )

    def _correct(self, words: str) -> Status | None:
        """Ask for another proposal, if corrections are left."""
        status = self._charge_corrections(1)
        if status is None:
            self.say([Message(role="user", content=words)])
        return status

    def _teach(self, judgement: Judgement) -> None:
        message = self.teacher.message(judgement.rules)
        if message:
            self.say(message)

    def _charge_corrections(self, count: int) -> Status | None:
        for _ in range(count):
            if not self.budget.has_corrections:
                return "corrections_spent"
            self.budget.charge_correction()
        return None

    def ended(self, status: Status, fault: EndpointError | None = None) -> Ending:
        """The end of the run."""
        accepted = self.judgements[-1].standing if status in ("accepted", "accepted_after_repair") else None
        taken, behind = accepted or self.desk.best, None
        if taken is not None and (taken.maker == "builtin" or self.desk.is_behind(taken)):
            taken, behind = None, self.desk.best
        return Ending(
            status=status,
            spent=self.budget.spent,
            judgements=tuple(self.judgements),
            standing=taken,
            fault=fault,
            documents=self.desk.documents,
            cut=self.clock.cut,
            behind=behind,
            would_need=tuple(self.desk.would_need.values()),
        )
