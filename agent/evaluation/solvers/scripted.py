"""Answers out of a file: what someone would say, case by case, without a model.

The file is `{"about": …, "replies": {case id or "*": [reply, …]}}`; a reply is a text, `{"tool": name, "arguments":
{…}}`, or `{"tools": [such calls]}`. One reply may stand without its list, and a list without a case is of every case.
It is a stranger's: bounded, and refused in one line. A case that it says nothing
for is a fault, not a silence; a script that is asked for more than it holds ends its run as a failed endpoint would.
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
# Replies for every case that has none of its own.
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
    """Which of the three forms of a reply is meant."""
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
        """`raw` with what people leave out: the list of one reply, and the case of replies for every case."""
        replies = raw.get("replies") if isinstance(raw, dict) else None
        if isinstance(replies, str | list):
            replies = {ANY_CASE: replies}
        if not isinstance(replies, dict):
            return raw
        lone = (str, dict, BaseModel)
        return {**raw, "replies": {name: [said] if isinstance(said, lone) else said for name, said in replies.items()}}


def read_script(path: Path) -> Script:
    """The script at `path`.

    Raises:
        InputError: it cannot be read, or is none; the message says where.
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
    # After the place of a reply comes the name of its form, which the file does not have.
    loc = (*first["loc"][:3], *first["loc"][4:])
    if len(loc) == 3 and first["type"] == "string_type":
        return f"{'/'.join(str(part)[:100] for part in loc)}: a reply is a text or an object"
    return refusal(first, "/".join(str(part)[:100] for part in loc) or "the script")


class Scripted(Struct, frozen=True):
    """Says for each case what the script holds for it, from the beginning in each epoch."""

    script: Script
    source: str = "script"
    options: AgentOptions = field(default=UNHURRIED)
    calibration: CustomCalibration | None = None
    is_deterministic: bool = True

    @property
    def name(self) -> str:
        """`scripted`, and by which file."""
        return f"scripted:{self.source}"

    @classmethod
    def of_file(cls, path: Path, options: AgentOptions = UNHURRIED) -> Scripted:
        """The solver of the script at `path`.

        Raises:
            InputError: as `read_script`.
        """
        return cls(read_script(path), path.name, options)

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """Someone who says the replies of this case.

        Raises:
            InputError: there are none.
        """
        replies = self.script.replies.get(found.case.id) or self.script.replies.get(ANY_CASE)
        if replies is None:
            raise InputError(
                f"{self.source}: no replies for case {found.case.id!r}: add them, or some for {ANY_CASE!r}"
            )
        left = iter(replies)

        def answer(request: ModelRequest) -> Reply:
            reply = next(left, None)
            if reply is None:
                raise EndpointError("unplayed", f"{self.source} has {len(replies)} replies, not more", 0)
            return _reply(reply)

        return Speaker(self.name, answer)


def _reply(reply: ScriptedReply) -> Reply:
    if isinstance(reply, str):
        return says(reply)
    every = (reply,) if isinstance(reply, ScriptedCall) else reply.tools
    return calls(*((one.tool, one.arguments) for one in every))
