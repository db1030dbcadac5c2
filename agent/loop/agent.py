"""`Agent`: any OpenAI-compatible endpoint, or any other client, as a proposer whose plans the tools guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...tools.errors import InputError
from ...tools.plan.canonical import content_hash
from ..intent.intent import Intent, Said
from ..model.client import ModelClient, checked_client
from ..model.deadline import Deadline
from ..pipeline import intent_of
from ..results import ModelUse, PlanReport, PlanResult
from ..spent import Spent
from ..time_limit import TIME_LIMIT_S, within
from ..toolset.all_tools import ALL_TOOLS
from ..toolset.strategy_answer import STRATEGY_ANSWER
from .budget import Limits, Prices
from .context import Passages, random_fence
from .feedback import Level
from .loop import Ending, Mode, Options, run
from .passages import passages_for
from .question import Question, ask
from .redacted import redacted, redacted_report
from .report import result_of
from .transcript import Recorder, Result, Setup

if TYPE_CHECKING:
    from openai import OpenAI

    from ..chat.chat import Chat
    from ..reading.reader import ModelReader
    from ..search_results import SearchAnswer

# Tokens of knowledge that a model is given at most.
KNOWLEDGE_TOKENS = 16_000
# Who reads a request: the model beside the rules, or the rules alone.
Reads = Literal["model", "rules"]


@dataclass(frozen=True)
class AgentOptions:
    """How an agent works: what a run may spend, how much a model is told, whether proposals are repaired.

    The time of `limits` runs from the call, the search for the built-in proposer's plan included. That search ends
    with the best that it has after `time_limit_s`, or with the time of `limits`, and each search of a tool likewise; no
    step begins after the time, and a step of a tool ends with it.
    `mode`: `tools`, `schema` (strict answers, no tools), `text`; `auto` begins with tools and goes on with what the
    server does not refuse. `transcript` is the file that each run is written to. `reader`: whether the model reads the
    request too, beside the rules, or the `rules` alone.
    """

    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    feedback: Level = "patch"
    repairs: bool = True
    mode: str = "auto"
    knowledge_tokens: int = KNOWLEDGE_TOKENS
    max_output_tokens: int = 4096
    transcript: Path | None = None
    time_limit_s: float = TIME_LIMIT_S
    reader: Reads = "model"

    def __post_init__(self) -> None:
        """Refuse a mode that is none.

        Raises:
            InputError: `mode` or `reader` is not one of those above.
        """
        if self.reader not in get_args(Reads):
            raise InputError(f"AgentOptions: reader {self.reader!r} is none of {', '.join(get_args(Reads))}")
        if self.mode not in ("auto", *_MODES):
            raise InputError(f"AgentOptions: mode {self.mode!r} is none of auto, {', '.join(_MODES)}")


@dataclass(frozen=True)
class Finished:
    """A run that is over: its result, and how it came to it."""

    result: PlanResult
    ending: Ending


class Agent:
    """A planner that asks a language model and returns only what the tools call valid.

    `client` is an `openai.OpenAI`, or anything with the `complete` of `ModelClient`; without one the endpoint of the
    environment (OPENAI_BASE_URL, OPENAI_API_KEY) is used. `model` is the name that the endpoint knows.

    Raises:
        InputError: no endpoint or no model is named, or the client is none that can be used.
    """

    def __init__(
        self,
        client: OpenAI | ModelClient | None = None,
        model: str | None = None,
        options: AgentOptions | None = None,
    ) -> None:
        self.options = options or AgentOptions()
        self.client = _client_of(client, model)
        self._redact: Callable[[str], str] = getattr(self.client, "redact", str)

    def run(self, request: str, *, brief: Sequence[str | Path] = (), flags: Said | None = None) -> PlanResult:
        """Plan for a request in words, a brief, flags, or all of them together.

        Raises:
            InputError: as `shardwright.plan`, or the client returned what is no `Reply`.
        """
        reader = self.reader()
        return self.run_intent(intent_of(request, brief=brief, flags=flags, reader=reader), request, reader)

    def search(
        self, request: str, *, brief: Sequence[str | Path] = (), flags: Said | None = None, top: int | None = None
    ) -> SearchAnswer:
        """Rank every legal strategy for what the model and the rules read, as `shardwright.search`.

        Raises:
            InputError: as `shardwright.search`.
        """
        from ..search_api import search_intent

        intent = intent_of(request, brief=brief, flags=flags, reader=self.reader())
        with within(self.options.time_limit_s):
            return search_intent(intent, top=top)

    def reader(self) -> ModelReader | None:
        """Who reads requests beside the rules, with the budget of a run from now on; `None`: nobody."""
        if self.options.reader == "rules":
            return None
        from ..reading.reader import ModelReader

        return ModelReader.by(self.client, self.options, Deadline.after(self.options.limits.seconds))

    def run_intent(self, intent: Intent, request: str, reader: ModelReader | None = None) -> PlanResult:
        """Plan for a complete intent; `request` is what the person wrote, `reader` who read it: the run has his budget.

        Where the time allowed is over when the built-in proposer has planned, its plan is returned and no model asked.

        Raises:
            InputError: the config or the hardware cannot be read, the transcript cannot be written, or the client
                returned what is no `Reply`. What a client of one's own raises beside `EndpointError` passes as it is.
        """
        deadline = Deadline.after(self.options.limits.seconds) if reader is None else reader.deadline
        with within(min(self.options.time_limit_s, deadline.left_s())):
            question = ask(redacted(intent, self._redact))
        if isinstance(question, PlanResult):
            return self._infeasible(question, intent, request, reader)
        return self.run_question(question, self._redact(request), deadline, reader).result

    def run_question(
        self,
        question: Question,
        request: str,
        deadline: Deadline | None = None,
        reader: ModelReader | None = None,
    ) -> Finished:
        """Plan for a question that was made concrete before; the time runs to `deadline`, else from now.

        Raises:
            InputError: the transcript cannot be written.
        """
        end = deadline or Deadline.after(self.options.limits.seconds)
        ending, recorder = self._run(question, request, end, reader)
        path = self.options.transcript
        result = result_of(question, ending, self.client.name, None if path is None else str(path))
        if result.report is not None:
            result = result.model_copy(
                update={"report": redacted_report(result.report, self._redact, question.own_words)}
            )
        recorder.finish(
            Result(
                status=ending.status,
                origin=ending.origin,
                plan_hash=None if result.plan is None else content_hash(result.plan),
                spent=ending.spent,
            )
        )
        return Finished(result if recorder.failure is None else _without_transcript(result, recorder.failure), ending)

    def chat(self, session: str | Path | None = None) -> Chat:
        """A conversation in which the model answers free text and proposes plans; kept at `session`, if it is given.

        Raises:
            InputError: the session cannot be used.
        """
        from ..chat.chat import Chat

        return Chat(session, agent=self, time_limit_s=self.options.time_limit_s)

    def _infeasible(self, refused: PlanResult, intent: Intent, request: str, reader: ModelReader | None) -> PlanResult:
        """A request without a plan: the tools say so, and no model is asked for one. What it read is recorded.

        Raises:
            InputError: the transcript cannot be written.
        """
        report = refused.report or PlanReport(proposer="builtin", explanation="")
        spent = Spent() if reader is None else reader.budget.spent
        use = ModelUse(
            model=self.client.name, status="infeasible", plan_from="builtin", proposals=0, **spent.model_dump()
        )
        if reader is not None and reader.records and self.options.transcript is not None:
            options = self._loop_options(reader.deadline, reader)
            setup = self._setup(redacted(intent, self._redact), None, self._redact(request), options, reader)
            recorder = Recorder(setup, self.options.transcript, self._redact)
            recorder.finish(Result(status="infeasible", origin="builtin", plan_hash=None, spent=spent))
            use = use.model_copy(
                update={"transcript": str(self.options.transcript), "transcript_failure": recorder.failure}
            )
        return refused.model_copy(update={"report": report.model_copy(update={"model_use": use})})

    def _run(
        self, question: Question, request: str, deadline: Deadline, reader: ModelReader | None
    ) -> tuple[Ending, Recorder]:
        """The run, and its record, in whichever modes the server takes."""
        # Knowledge for a model that will not be asked would only take more of the time that is over.
        enough = deadline.is_over()
        passages = Passages() if enough else passages_for(question.intent, self.options.knowledge_tokens)
        options, reference = self._loop_options(deadline, reader), question.reference
        cut = reference if reference.report is not None and reference.report.left_out else None
        setup = self._setup(question.intent, cut, request, options, reader)
        recorder = Recorder(setup, self.options.transcript, self._redact)
        return run(question, request, passages, self.client, options, recorder), recorder

    def _loop_options(self, deadline: Deadline, reader: ModelReader | None) -> Options:
        own = self.options
        fence = random_fence()
        first, *further = [_MODES[name] for name in (_MODES if own.mode == "auto" else (own.mode,))]
        return Options(
            limits=own.limits,
            prices=own.prices,
            level=own.feedback,
            repairs=own.repairs,
            tools=first.tools,
            answer=first.answer,
            max_output_tokens=own.max_output_tokens,
            fence=lambda: fence,
            further=tuple(further),
            deadline=deadline,
            time_limit_s=own.time_limit_s,
            spent=None if reader is None else reader.budget.spent,
        )

    def _setup(
        self, intent: Intent, cut: PlanResult | None, request: str, options: Options, reader: ModelReader | None
    ) -> Setup:
        """What a run is recorded with; `cut`: the built-in proposer's answer where the time cut its search."""
        return Setup(
            request=request,
            intent=intent,
            calibration=intent.calibration,
            reference=cut,
            model=self.client.name,
            tools=tuple(tool.name for tool in options.tools),
            has_answer_schema=options.answer is not None,
            limits=options.limits,
            prices=options.prices,
            level=options.level,
            repairs=options.repairs,
            max_output_tokens=options.max_output_tokens,
            knowledge_tokens=self.options.knowledge_tokens,
            fence=options.fence(),
            readings=() if reader is None else tuple(reader.records),
        )


# What a server may refuse comes first.
_MODES = {"tools": Mode(tools=ALL_TOOLS), "schema": Mode(answer=STRATEGY_ANSWER), "text": Mode()}


def _without_transcript(result: PlanResult, failure: str) -> PlanResult:
    """`result`, which says why its transcript is not whole."""
    report = result.report
    assert report is not None
    assert report.model_use is not None
    use = report.model_use.model_copy(update={"transcript_failure": failure})
    return result.model_copy(update={"report": report.model_copy(update={"model_use": use})})


def _client_of(client: Any, model: str | None) -> ModelClient:
    """`client` as the loop asks it.

    Raises:
        InputError: no endpoint or no model is named, or it is no client that can be used.
    """
    if client is not None and hasattr(client, "complete"):
        return checked_client(client)
    from ..model.endpoint import EndpointClient

    if client is None:
        from ..model.settings import EndpointFlags, read_settings

        return EndpointClient(read_settings(EndpointFlags(model=model)))
    if model is None:
        raise InputError("name the model as the endpoint knows it: Agent(client=…, model=…)")
    return EndpointClient.wrapping(client, model)
