"""Recorded HTTP exchanges as files: a cassette for each case and epoch, and a header for their folder.

A request is matched by its whole body: every field must be equal, but for the order of keys, the random letters of
fences, and secrets, which are not recorded. URLs and request headers are not kept. Files are untrusted: bounded, and
refused in one line.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from ....tools.errors import InputError, ShardwrightError
from ....tools.frozen import Frozen
from ....tools.input.files import read_bounded, shown_path, write_file
from ....tools.input.strict_json import parse
from ....tools.input.strict_values import MAX_WRAPPED_DEPTH, JsonError
from ...loop.agent_options import AgentOptions
from ...loop.budget import Limits, Prices
from ...loop.feedback import Level
from ...loop.fence import FENCE
from ...model.redaction import REDACTED
from ...model.settings import Mode
from ..posed import PosedCase

MAX_FILE_BYTES = 256 << 20
HEADER_NAME = "recording.json"
# Headers of an answer that change how it is read.
KEPT_HEADERS = ("content-type", "retry-after")
# Characters shown around the place where two texts differ.
_SHOWN = 40
_LONGEST_NAME_BYTES = 150


class CassetteError(ShardwrightError):
    """A recording does not fit the run that plays it. The run has no result."""

    exit_status = 1


class RecordedExchange(Frozen):
    """One request and what came of it: an answer, whole or as far as it came, or a failure.

    `body` is the text of the answer's bytes in `encoding`. `gave_up`: no further try was made though it had failed.
    """

    request: Any = None
    status: int | None = Field(default=None, ge=100, le=999)
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    encoding: Literal["utf-8", "latin-1"] = "utf-8"
    body: str = ""
    failure: Literal["timeout", "broken"] | None = None
    gave_up: bool = False


class Cassette(Frozen):
    """All exchanges of one case in one epoch. `is_cut_off`: the time ended the run, which nobody can repeat."""

    format: Literal["shardwright/cassette"] = "shardwright/cassette"
    version: Literal["1"] = "1"
    dataset_hash: str = ""
    case: str
    case_digest: str
    epoch: int = Field(ge=1)
    is_cut_off: bool = False
    exchanges: tuple[RecordedExchange, ...] = ()


class RecordedOptions(Frozen):
    """How the agent worked."""

    limits: Limits
    prices: Prices | None = None
    feedback: Level
    repairs: bool
    mode: Mode
    knowledge_tokens: int = Field(ge=0)
    max_output_tokens: int = Field(ge=1)

    @classmethod
    def of(cls, options: AgentOptions) -> RecordedOptions:
        """The options that a replay needs."""
        return cls.model_validate({name: getattr(options, name) for name in cls.model_fields})

    def agent_options(self) -> AgentOptions:
        """The options for a replay, without a time limit."""
        limits = self.limits.model_copy(update={"seconds": 86_400.0})
        return AgentOptions(
            **{**{name: getattr(self, name) for name in RecordedOptions.model_fields}, "limits": limits}
        )


class RecordingHeader(Frozen):
    """What all cassettes of a folder have in common."""

    format: Literal["shardwright/recording"] = "shardwright/recording"
    version: Literal["1"] = "1"
    dataset_hash: str = ""
    model: str = Field(min_length=1, max_length=300)
    stream: bool = False
    transport_attempts: int = Field(ge=1, le=20)
    max_answer_bytes: int = Field(ge=1)
    options: RecordedOptions


def cassette_path(folder: Path, case_id: str, epoch: int) -> Path:
    """The file of a case in an epoch; a long name is shortened to its hash."""
    data = case_id.encode()
    name = case_id if len(data) <= _LONGEST_NAME_BYTES else hashlib.sha256(data).hexdigest()
    return folder / f"{name}.{epoch}.json"


_K = TypeVar("_K", bound=Frozen)


def read_kept(kind: type[_K], path: Path) -> _K:
    """The file at `path`.

    Raises:
        InputError: it cannot be read, or is none of its kind.
    """
    name = shown_path(path)
    try:
        return kind.model_validate(parse(read_bounded(path, MAX_FILE_BYTES, name), name, most_depth=MAX_WRAPPED_DEPTH))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise InputError(f"{name}: {'/'.join(map(str, first['loc']))[:200]}: {first['msg']}; record it again") from None
    except JsonError as error:
        raise InputError(f"{error}; record it again") from None


def write_kept(path: Path, record: BaseModel) -> None:
    """Write a file of a recording, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_file(path, (record.model_dump_json(indent=1) + "\n").encode())


def place_of(posed: PosedCase, epoch: int) -> str:
    """A case and an epoch, as messages name them."""
    return f"case {posed.case.id} (epoch {epoch})"


def normalised(value: Any) -> Any:
    """A request's body without the random letters of its fences."""
    if isinstance(value, str):
        return FENCE.sub("data-fence", value)
    if isinstance(value, list):
        return [normalised(member) for member in value]
    if isinstance(value, dict):
        return {str(name): normalised(member) for name, member in value.items()}
    return value


def first_difference(recorded: Any, current: Any, pointer: str = "") -> str | None:
    """The first difference of two normalised bodies, as a JSON pointer with both values; `None` if equal."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        for name in sorted({*recorded, *current}):
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in current or name not in recorded:
                return f"{place}: {'recorded, not asked now' if name in recorded else 'asked now, not recorded'}"
            if (difference := first_difference(recorded[name], current[name], place)) is not None:
                return difference
        return None
    if isinstance(recorded, list) and isinstance(current, list):
        for at, (old, new) in enumerate(zip(recorded, current, strict=False)):
            if (difference := first_difference(old, new, f"{pointer}/{at}")) is not None:
                return difference
        same_length = len(recorded) == len(current)
        return None if same_length else f"{pointer}: recorded {len(recorded)} items, now {len(current)}"
    if isinstance(recorded, str) and isinstance(current, str):
        return None if _same_text(recorded, current) else f"{pointer or '/'}: {_apart(recorded, current)}"
    if type(recorded) is type(current) and recorded == current:
        return None
    return f"{pointer or '/'}: recorded {str(recorded)[:_SHOWN]!r}, now {str(current)[:_SHOWN]!r}"


def _same_text(recorded: str, current: str) -> bool:
    """Whether `current` is the recorded text; a redacted secret matches any text."""
    if REDACTED not in recorded:
        return recorded == current
    first, *middle, last = recorded.split(REDACTED)
    if len(current) < len(first) + len(last) or not (current.startswith(first) and current.endswith(last)):
        return False
    at, end = len(first), len(current) - len(last)
    for part in middle:
        start = current.find(part, at, end)
        if start < 0:
            return False
        at = start + len(part)
    return True


def _apart(recorded: str, current: str) -> str:
    """Both texts around their first difference."""
    at = next((at for at, (old, new) in enumerate(zip(recorded, current, strict=False)) if old != new), None)
    at = min(len(recorded), len(current)) if at is None else at
    start = max(0, at - _SHOWN // 2)
    shown = (text[start : start + _SHOWN] for text in (recorded, current))
    return "recorded {!r}, now {!r} (from character {})".format(*shown, start)
