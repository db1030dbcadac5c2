"""A turn of a conversation as the page asks for it: words, fields that are set, or a plan document; and its answer."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.errors import InputError
from ...tools.language.merge import merge_said
from ...tools.language.said import Said
from ...tools.plan.document import ModelBlock, Plan, PolicyBlock, PrecisionBlock, ServingBlock, Strategy, WorkloadBlock
from ...tools.plan.reader import read_document
from ..chat.outcome import ChatAnswer, Planned
from ..chat.turn_input import Given, fields_of, stated_strategy
from ..intent.intent import HardwareChoice
from ..operations.asking import Request
from ..operations.operation import Document, Question, plan_text
from ..results import PlanResult
from ..stated.arguments import said_of_arguments
from ..stated.request import statements_of

# Letters of a turn that are read at all; the chat says which are too many.
_MOST_LETTERS = 1_000_000


class Fields(Request):
    """Fields of the current request that are set; one that is null is left open again. Words or a brief begin anew."""

    strategy: Strategy | None = Field(None, description="A strategy to keep, as a plan document has it.")


class TurnQuestion(Question):
    """What a person says in a conversation: a request, a change of it, a question, or a command that begins with /.

    With `fields` or `plan` these are what the turn does, and `text` is what they are called.
    """

    text: str = Field(max_length=_MOST_LETTERS, description="The words of the turn; /help lists commands.")
    fields: Fields | None = Field(None, description=Fields.__doc__)
    plan: Document | None = Field(None, description="A plan document that becomes the current plan as it stands.")

    def given(self) -> Given | None:
        """The input of the turn beside its words.

        Raises:
            InputError: a field is wrong, or the document is not one that can be gone on with.
        """
        if self.plan is not None:
            if self.fields is not None:
                raise InputError("plan, fields: a turn takes one of them")
            return Given(plan=_readable(self.plan))
        if self.fields is None:
            return None
        fields = self.fields
        is_open = {name: getattr(fields, name) is None for name in fields.model_fields_set}
        dropped = (field for name, is_null in is_open.items() for field in fields_of(name, is_open=is_null))
        begins = fields.request is not None or bool(fields.brief)
        return Given(said=_said(fields), dropped=tuple(dict.fromkeys(dropped)), begins=begins)


class AskedFor(Question):
    """What is asked for, in the blocks of a plan document: where there is a plan its own, else as it was completed."""

    model: ModelBlock
    hardware: HardwareChoice | None
    workload: WorkloadBlock
    concurrency_open: bool
    precision: PrecisionBlock
    policy: PolicyBlock
    serving: ServingBlock | None
    disaggregated: bool | None
    usd_per_gpu_hour: float | None

    @classmethod
    def of(cls, planned: Planned) -> AskedFor:
        """What `planned` answers."""
        intent, plan = planned.intent, planned.result.plan
        model = intent.model.block
        others = {name: getattr(intent, name) for name in ("concurrency_open", "disaggregated", "usd_per_gpu_hour")}
        names = ("workload", "precision", "policy", "serving")
        blocks: dict[str, Any] = {name: getattr(intent, name) for name in names}
        if plan is not None:
            model, blocks = plan.model, {name: getattr(plan, name) for name in blocks}
        hardware = intent.hardware if plan is None else HardwareChoice(**dict(plan.hardware))
        return cls(model=model, hardware=hardware, **blocks, **others)


class Current(Question):
    """The current plan, and what it answers; `version` is another each time that another becomes the current one."""

    version: int = 0
    current: PlanResult | None = None
    asked: AskedFor | None = None

    @classmethod
    def after(cls, planned: Planned | None, version: int) -> Current:
        """The current request with what it came to; of nothing where nothing was asked for."""
        if planned is None:
            return cls(version=version)
        return cls(version=version, current=planned.result, asked=AskedFor.of(planned))


class TurnAnswer(ChatAnswer, Current):
    """The answer to a turn, and the plan that is current from now on."""


def _said(fields: Fields) -> Said:
    """The statements of the fields that are set, together with words and a brief."""
    arguments = said_of_arguments(fields.model, fields.hardware, fields.workload, fields.arguments())
    stated = statements_of(fields.request, brief=fields.brief, flags=arguments or Said())
    said = merge_said(stated)
    if fields.strategy is None:
        return said
    return said.model_copy(update={"strategy": stated_strategy(fields.strategy)})


def _readable(document: dict[str, Any] | str) -> Plan:
    """The plan of `document`.

    Raises:
        InputError: it is none as it stands.
    """
    read = read_document(plan_text(document))
    if read.plan is not None:
        return read.plan
    first = next((fault.message for fault in read.faults), "it holds no object")
    raise InputError(f"this is no plan document as it stands ({first}); fix makes one of it")
