"""Answers from a file, case by case, without a model.

The file is `{"about": …, "replies": {case id or "*": [reply, …]}}`; a reply is a text, `{"tool": name, "arguments":
{…}}`, or `{"tools": [such calls]}`. One reply may stand without its list, and a list without a case is of every case.
The file is untrusted: bounded, and refused in one line. A case without replies is a fault; a script that is asked for
more replies than it has ends its run like a failed endpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, field
from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError, model_validator

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError
from ....tools.frozen import Frozen
from ....tools.input.files import read_bounded, shown_path
from ....tools.input.strict_json import parse
from ....tools.input.strict_values import JsonError
from ...loop.agent_options import AgentOptions
from ...model.client import EndpointError, ModelClient
from ...model.messages import ModelRequest, Reply
from ...model.scripted import calls, says
from ..posed import PosedCase
from ..refusals import refusal
from ..solver import UNHURRIED
from .speaker import Speaker

MAX_FILE_BYTES = 16 << 20
MOST_REPLIES, MOST_CASES, MOST_CALLS = 500, 10_000, 100
# Replies for every case without its own.
ANY_CASE = "*"
_FORM = 'a script is {"replies": {"CASE-ID or *": ["a reply", {"tool": "submit_dag", "arguments": {…}}]}}'
_ToolName = Annotated[str, Field(min_length=1, max_length=200)]


class ScriptedCall(Frozen):
    """One call of a tool."""

    tool: _ToolName
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class ScriptedCalls(Frozen):
    """Several calls in one answer."""

    tools: tuple[ScriptedCall, ...] = Field(min_length=1, max_length=MOST_CALLS)


ScriptedReply = str | ScriptedCall | ScriptedCalls


def _form_of(reply: Any) -> str:
    """The form of a reply, one of three."""
    if isinstance(reply, dict | BaseModel):
        return "calls" if "tools" in (reply if isinstance(reply, dict) else type(reply).model_fields) else "call"
    return "text"


_Reply = Annotated[
    Annotated[str, Tag("text")] | Annotated[ScriptedCall, Tag("call")] | Annotated[ScriptedCalls, Tag("calls")],
    Discriminator(_form_of),
]


class Script(Frozen):
    """A file of replies."""

    about: str = Field(default="", max_length=10_000)
    replies: dict[str, Annotated[tuple[_Reply, ...], Field(min_length=1, max_length=MOST_REPLIES)]] = Field(
        min_length=1, max_length=MOST_CASES
    )

    @model_validator(mode="before")
    @classmethod
    def _lists_by_case(cls, raw: Any) -> Any:
        """`raw` in its full form: a single reply as a list, and replies without a case as those of every case."""
        replies = raw.get("replies") if isinstance(raw, dict) else None
        if isinstance(replies, str | list):
            replies = {ANY_CASE: replies}
        if not isinstance(replies, dict):
            return raw
        lone = (str, dict, BaseModel)
        return {**raw, "replies": {case: [said] if isinstance(said, lone) else said for case, said in replies.items()}}


def read_script(path: Path) -> Script:
    """The script at `path`.

    Raises:
        InputError: it cannot be read, or is malformed; the message says where.
    """
    name = shown_path(path)
    try:
        return Script.model_validate(parse(read_bounded(path, MAX_FILE_BYTES, name), name))
    except ValidationError as error:
        raise InputError(f"{name}: {_refusal(error)}; {_FORM}") from None
    except JsonError as error:
        raise InputError(f"{error}; {_FORM}") from None


def _refusal(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    # The validator puts the form's name after a reply's place, which the file lacks.
    loc = (*first["loc"][:3], *first["loc"][4:])
    if len(loc) == 3 and first["type"] == "string_type":
        return f"{'/'.join(str(part)[:100] for part in loc)}: a reply is a text or an object"
    return refusal(first, "/".join(str(part)[:100] for part in loc) or "the script")


class Scripted(Struct, frozen=True):
    """Gives each case the script's replies for it, from the beginning in each epoch."""

    script: Script
    source: str = "script"
    options: AgentOptions = field(default=UNHURRIED)
    calibration: CustomCalibration | None = None
    is_deterministic: bool = True

    @property
    def name(self) -> str:
        """`scripted`, and its file."""
        return f"scripted:{self.source}"

    @classmethod
    def of_file(cls, path: Path, options: AgentOptions = UNHURRIED) -> Scripted:
        """The solver of the script at `path`.

        Raises:
            InputError: as `read_script`.
        """
        return cls(read_script(path), path.name, options)

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client with the replies of this case.

        Raises:
            InputError: there are none.
        """
        replies = self.script.replies.get(found.case.id) or self.script.replies.get(ANY_CASE)
        if replies is None:
            raise InputError(
                f"{self.source}: no replies for case {found.case.id!r}: add them, or some for {ANY_CASE!r}"
            )
        remaining = iter(replies)

        def answer(request: ModelRequest) -> Reply:
            reply = next(remaining, None)
            if reply is None:
                raise EndpointError("unplayed", f"{self.source} has {len(replies)} replies, not more", 0)
            return _reply(reply)

        return Speaker(self.name, answer)


def _reply(reply: ScriptedReply) -> Reply:
    if isinstance(reply, str):
        return says(reply)
    all_calls = (reply,) if isinstance(reply, ScriptedCall) else reply.tools
    return calls(*((call.tool, call.arguments) for call in all_calls))
