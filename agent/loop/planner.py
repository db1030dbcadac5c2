"""`ModelPlanner`: a language model behind a client as a proposer, with the tools as guards of its plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from ...tools.plan.canonical import content_hash
from ..intent.intent import Intent
from ..model.client import ModelClient
from ..model.deadline import Deadline
from ..planning.over_day import with_day
from ..planning.reserve import with_reserve_told
from ..results import ModelUse, PlanReport, PlanResult
from ..runs.spent import Spent
from ..runs.time_limit import within
from ..toolset.all_tools import ALL_TOOLS
from ..toolset.strategy_answer import STRATEGY_ANSWER
from .agent_options import MODES, AgentOptions
from .context import Passages
from .fence import random_fence
from .loop import Ending, Mode, Options, run
from .passages import passages_for
from .question import Question, ask
from .redacted import redacted, redacted_report
from .report import result_of
from .transcript import Recorder, Result, Setup

if TYPE_CHECKING:
    from ..reading.reader import ModelReader


class Finished(Struct, frozen=True):
    """A finished run: its result, and how it got there."""

    result: PlanResult
    ending: Ending


class ModelPlanner:
    """A planner that asks the model behind `client` and returns only valid plans."""

    def __init__(self, client: ModelClient, options: AgentOptions) -> None:
        self.client, self.options = client, options
        self._redact: Callable[[str], str] = getattr(client, "redact", str)

    def reader(self) -> ModelReader | None:
        """The model as a reader of requests beside the rules, with a run's budget from now on; `None`: rules alone."""
        if self.options.reader == "rules":
            return None
        from ..reading.reader import ModelReader

        return ModelReader.by(self.client, self.options, Deadline.after(self.options.limits.seconds))

    def run_intent(self, intent: Intent, request: str, reader: ModelReader | None = None) -> PlanResult:
        """Plan for a complete intent; `request` is the person's words, `reader` read it: the run shares its budget.

        If the time is over once the built-in proposer has planned, its plan is returned and no model asked.

        Raises:
            InputError: the config or the hardware cannot be read, the transcript cannot be written, or the client
            returned     something else than a `Reply`. Other exceptions of a client than `EndpointError` pass through.
        """
        deadline = Deadline.after(self.options.limits.seconds) if reader is None else reader.deadline
        with within(min(self.options.time_limit_s, deadline.left_s())):
            question = ask(redacted(intent, self._redact))
        if isinstance(question, PlanResult):
            return self._infeasible(question, intent, request, reader)
        result = self.run_question(question, self._redact(request), deadline, reader).result
        with within(self.options.time_limit_s):
            return with_reserve_told(with_day(result))

    def run_question(
        self,
        question: Question,
        request: str,
        deadline: Deadline | None = None,
        reader: ModelReader | None = None,
    ) -> Finished:
        """Plan for a question made before; the time runs to `deadline`, else from now.

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

    def _infeasible(self, refused: PlanResult, intent: Intent, request: str, reader: ModelReader | None) -> PlanResult:
        """The result of a request without a plan: no model is asked for one. Its reading is recorded.

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
        """The run and its record, in the modes that the server accepts."""
        # If no model will be asked, gathering knowledge would only take more time.
        enough = deadline.is_over()
        passages = Passages() if enough else passages_for(question.intent, self.options.knowledge_tokens)
        options, reference = self._loop_options(deadline, reader), question.reference
        cut = reference if reference.report is not None and reference.report.left_out else None
        setup = self._setup(question.intent, cut, request, options, reader)
        recorder = Recorder(setup, self.options.transcript, self._redact)
        return run(question, request, passages, self.client, options, recorder), recorder

    def _loop_options(self, deadline: Deadline, reader: ModelReader | None) -> Options:
        fence, mode = random_fence(), self.options.mode
        first, *further = [_MODES[name] for name in (_MODES if mode == "auto" else (mode,))]
        return Options(
            **asdict(self.options),
            tools=first.tools,
            answer=first.answer,
            fence=lambda: fence,
            further=tuple(further),
            deadline=deadline,
            spent=None if reader is None else reader.budget.spent,
        )

    def _setup(
        self, intent: Intent, cut: PlanResult | None, request: str, options: Options, reader: ModelReader | None
    ) -> Setup:
        """What a run is recorded with; `cut`: the built-in proposer's answer, if the time cut its search."""
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
            level=options.feedback,
            repairs=options.repairs,
            max_output_tokens=options.max_output_tokens,
            knowledge_tokens=options.knowledge_tokens,
            fence=options.fence(),
            has_reference=options.reference,
            readings=() if reader is None else tuple(reader.records),
        )


# The most demanding of the server first.
_MODES: dict[str, Mode] = dict(zip(MODES, (Mode(tools=ALL_TOOLS), Mode(answer=STRATEGY_ANSWER), Mode()), strict=True))


def _without_transcript(result: PlanResult, failure: str) -> PlanResult:
    """`result` with the reason why its transcript is incomplete."""
    report = result.report
    assert report is not None
    assert report.model_use is not None
    use = report.model_use.model_copy(update={"transcript_failure": failure})
    return result.model_copy(update={"report": report.model_copy(update={"model_use": use})})
