"""A chat with a model as one JSON file: how it was set up, each turn with the model's answers, what was shown of it.

It is written as that of a planning run is (`loop/transcript.py`), and holds the answers of the runs that its turns
began. `replay` plays it again without the model (`chat/replay.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from ...tools.calibration.custom import CustomCalibration
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.plan.canonical import content_hash
from ..loop.agent_options import AgentOptions, Reads
from ..loop.budget import Limits, Prices
from ..loop.feedback import Level
from ..loop.planner import ModelPlanner
from ..loop.transcript import VERSION, Step, StepLog
from ..model.messages import ModelRequest
from .outcome import ChatAnswer

_FENCE = re.compile(r"data-[0-9a-f]{16}")
FORMAT: Literal["shardwright/chat"] = "shardwright/chat"


class ChatSetup(Frozen):
    """All that a chat needs beside its model and its turns."""

    model: str
    mode: str
    limits: Limits
    prices: Prices | None
    feedback: Level
    repairs: bool
    knowledge_tokens: int
    max_output_tokens: int
    time_limit_s: float
    reader: Reads
    reference: bool
    width: int
    calibration: CustomCalibration | None

    def options(self) -> AgentOptions:
        """How the model worked; its clock never ends a turn that is played again."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return AgentOptions(**{**options, "limits": self.limits.model_copy(update={"seconds": 86_400.0})})


_OPTIONS = set(AgentOptions.__struct_fields__) & ChatSetup.model_fields.keys()


class ChatTranscript(Frozen):
    """A recorded chat. Kinds of steps: turn, request, reply, fault, and answer, or interrupted."""

    format: Literal["shardwright/chat"] = FORMAT
    version: Literal["1"] = VERSION
    shardwright: str
    setup: ChatSetup
    steps: tuple[Step, ...] = Field(default=())


def chat_log(
    agent: ModelPlanner | None,
    width: int,
    calibration: CustomCalibration | None,
    redact: Callable[[str], str],
    turns: int,
) -> StepLog | None:
    """The log of a chat that begins; `None` where no transcript is wanted.

    Raises:
        InputError: it cannot be written, or the chat has turns already.
    """
    if agent is None or agent.options.transcript is None:
        return None
    if turns:
        raise InputError("a transcript holds a chat from its first turn: begin a new one, or leave out the transcript")
    from importlib.metadata import version

    options = {name: getattr(agent.options, name) for name in _OPTIONS}
    setup = ChatSetup(model=agent.client.name, width=width, calibration=calibration, **options)
    head = ChatTranscript(shardwright=version("shardwright"), setup=setup)
    return StepLog(head, agent.options.transcript, redact)


def answer_data(answer: ChatAnswer) -> dict[str, Any]:
    """The outcome of a turn, as a replay compares it."""
    plan = None if answer.result is None or answer.result.plan is None else content_hash(answer.result.plan)
    return {"kind": answer.kind, "plan": plan, "text": answer.text, "error": answer.error}


def without_fence(request: ModelRequest) -> ModelRequest:
    """A request without the boundaries that are drawn anew each time."""
    messages = (
        message.model_copy(update={"content": _FENCE.sub("data", message.content)}) for message in request.messages
    )
    return request.model_copy(update={"messages": tuple(messages)})
