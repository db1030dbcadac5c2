"""What a turn works with: the state of the chat, who proposes, how wide a text may be."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError
from ....tools.language.request import read_words
from ....tools.language.said import Said
from ....tools.performance.estimate import estimate
from ....tools.plan.document import Plan
from ....tools.plan.performance import PerformanceEstimate
from ...intent.complete import complete
from ...intent.intent import Intent
from ...languages.say import say
from ...pipeline import plan_intent
from ...reading.reader import ModelReader
from ...reading.source import Source
from ..outcome import Planned, Planner
from ..state import State


class Work(Struct, frozen=True):
    """`planner` proposes what becomes the current plan, and what is set beside a plan of its own."""

    state: State
    planner: Planner
    calibration: CustomCalibration | None = None
    width: int = 100
    # Whether a language model reads requests beside the rules, and who is asked to where it calls no tools.
    reads: bool = False
    reader: ModelReader | None = None

    def read(self, text: str) -> Said:
        """What the rules and the reader understand of a first request.

        Raises:
            RequestError: as `read_words`, or both read a field otherwise (`AmbiguousError`).
        """
        if self.reader is None:
            return read_words(text)
        return self.reader.read(Source(kind="words", texts=(("the request", text),)))

    def intent(self, said: Sequence[Said]) -> Intent:
        """The intent of what was said, with the calibration of the chat.

        Raises:
            InputError: it cannot be completed.
        """
        return complete(*said).model_copy(update={"calibration": self.calibration})

    def beside(self, said: Said, words: str) -> Planned:
        """`said` planned by whoever proposed the current plan, so that both are compared alike.

        Raises:
            InputError: it cannot be completed.
        """
        intent, report = self.intent([said]), self.now.result.report
        is_modelled = report is not None and report.proposer == "llm"
        return Planned(said, intent, self.planner(intent, words) if is_modelled else plan_intent(intent))

    def figures(self, planned: Planned | None = None) -> PerformanceEstimate:
        """The estimate of the current plan, or of another that a turn planned; made where the result has none.

        Raises:
            InputError: there is no plan, or a fact that the arithmetic needs is not known.
        """
        planned = planned or self.now
        intent, result = planned.intent, planned.result
        return result.estimate or estimate(result.plan or self.plan, intent.usd_per_gpu_hour, intent.calibration)

    @property
    def now(self) -> Planned:
        """The current request.

        Raises:
            InputError: nothing was asked for yet.
        """
        now = self.state.now
        if now is None:
            raise InputError(say('nothing was asked for yet: say what to plan, such as "Llama-3.1-70B on 8 H100"'))
        return now

    @property
    def plan(self) -> Plan:
        """The current plan.

        Raises:
            InputError: there is none.
        """
        plan = self.now.result.plan
        if plan is None:
            raise InputError(say("the current request has no plan: change it, or /undo goes back to the last"))
        return plan
