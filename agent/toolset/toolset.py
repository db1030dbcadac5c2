"""The tools of a run, and the answers to all calls of one model answer, in order.

Every call id gets exactly one result, so that the next request is well formed for any list of calls.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from ...tools.errors import ShardwrightError
from ...tools.input.strict_json import parse
from ...tools.input.strict_values import JsonError
from ..loop.judge import Judgement
from ..loop.shorten import short_text
from ..model.messages import Message, ToolCall, ToolSpec
from .tool import A, Answer, Bench, Tool

# No call needs longer arguments: the largest plans are far smaller in compact form.
MAX_ARGUMENT_CHARACTERS = 2_000_000
# The middle of a longer answer is cut out.
MAX_ANSWER_CHARACTERS = 24_000
_MOST_FAULTS = 8
_LOG = logging.getLogger(__name__)
# A tool's traceback goes only to configured log handlers, not to the terminal.
_LOG.addHandler(logging.NullHandler())


class Answered(Struct, frozen=True):
    """The results of the calls of one answer, as messages, and the judgements of submissions, in order.

    `handles` are of the documents that the calls made or named, one per call.
    """

    messages: tuple[Message, ...]
    judgements: tuple[Judgement, ...]
    handles: tuple[str | None, ...]


class Toolset:
    """Tools by name, working on one bench."""

    def __init__(self, bench: Bench, tools: Sequence[Tool[Any]]) -> None:
        self.bench = bench
        self._tools = {tool.name: tool for tool in tools}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as they are offered, in a fixed order."""
        return tuple(tool.spec for tool in self._tools.values())

    def answer_all(
        self,
        calls: Sequence[ToolCall],
        why_stop: Callable[[int], str | None] = lambda done: None,
        most_rejected: int | None = None,
        working: Callable[[int], AbstractContextManager[None]] = lambda done: nullcontext(),
    ) -> Answered:
        """Answer every call; calls after an accepted proposal are not made, and their answers say so.

        `why_stop` gets the number of finished calls and returns why no more are made, if so: one answer may hold many
        long ones. None are made either after `most_rejected` rejected proposals of the answer. Each call runs inside
        the context that `working` returns for the number of calls before it, which may stop it.
        """
        messages: list[Message] = []
        judgements: list[Judgement] = []
        handles: list[str | None] = []
        for done, call in enumerate(calls):
            if judgements and judgements[-1].is_acceptable:
                answer = Answer({"message": "not done: a plan was accepted before this call"})
            elif most_rejected is not None and len(judgements) >= most_rejected:
                answer = Answer({"message": "not done: the corrections allowed are spent"})
            elif reason := why_stop(done):
                answer = Answer({"message": f"not done: {reason}"})
            else:
                answer = _stopped(call)
                with working(done):
                    answer = self.answer(call)
            if answer.judgement is not None:
                judgements.append(answer.judgement)
            handles.append(answer.handle)
            messages.append(Message(role="tool", content=_cut(answer.text), tool_call_id=call.id))
        return Answered(tuple(messages), tuple(judgements), tuple(handles))

    def answer(self, call: ToolCall) -> Answer:
        """The answer to one call, whatever it holds."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Answer(
                {"message": f"there is no tool {short_text(call.name, 60)!r}", "tools": list(self._tools)}, "try_again"
            )
        try:
            arguments = _read(tool.arguments, call.arguments)
        except ValueError as error:
            return Answer({"message": str(error), "fields": list(tool.arguments.model_fields)}, "try_again")
        try:
            return tool.run(self.bench, arguments)
        except ShardwrightError as error:
            return Answer({"message": str(error)}, "try_again")
        except Exception:  # noqa: BLE001 - one faulty tool must not end a run, nor tell a model of our insides
            _LOG.exception("the tool %s failed", tool.name)
            return Answer({"message": f"{tool.name} failed; this is no fault of the call: do without it"}, "bug")


def _stopped(call: ToolCall) -> Answer:
    """The answer to a stopped call."""
    return Answer({"message": f"{short_text(call.name, 60)} was stopped: the time allowed was over"}, "stopped")


def _read(kind: type[A], text: str) -> A:
    """Arguments from a call's text.

    Raises:
        ValueError: they are no JSON object, or not of the tool's form; the message says what and where.
    """
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        raise ValueError(f"the arguments have {len(text):,} characters; at most {MAX_ARGUMENT_CHARACTERS:,} are read")
    try:
        content: Any = parse(text or "{}", "the arguments")
    except JsonError as error:
        raise ValueError(str(error)) from None
    if not isinstance(content, dict):
        raise ValueError("the arguments are not a JSON object")
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        faults = [
            f"{short_text('.'.join(map(str, detail['loc'])), 100) or 'arguments'}: {short_text(detail['msg'], 200)}"
            for detail in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        more = f"; and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
        raise ValueError("; ".join(faults[:_MOST_FAULTS]) + more) from None


def _cut(text: str) -> str:
    if len(text) <= MAX_ANSWER_CHARACTERS:
        return text
    # The cut text is quoted inside JSON again, where a sign may take two.
    half = MAX_ANSWER_CHARACTERS // 4
    left_out = f" … {len(text) - 2 * half:,} characters left out … "
    return json.dumps({"cut": text[:half] + left_out + text[-half:]}, ensure_ascii=False)
