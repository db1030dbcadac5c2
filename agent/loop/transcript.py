"""A run as one JSON file: the request, every step as it was done, the end. It can be replayed without a model.

The file is rewritten after each step and complete at every moment. The client redacts text from outside; what the
caller gives is redacted here once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from ...tools.calibration.custom import CustomCalibration
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.input.files import file_place, is_special, read_bounded, shown_path, write_file
from ...tools.input.strict_json import parse
from ...tools.input.strict_values import MAX_WRAPPED_DEPTH, JsonError
from ...tools.language.said import Said
from ..intent.intent import Intent
from ..reading.source import Source
from ..results import PlanResult
from ..runs.spent import Spent
from .budget import Limits, Prices
from .feedback import Level
from .outcome import Status

FORMAT: Literal["shardwright/transcript"] = "shardwright/transcript"
VERSION: Literal["1"] = "1"
MAX_TRANSCRIPT_BYTES = 64 << 20


class Step(Frozen):
    """One step: what kind, and its data. Kinds: opening, messages, request, reply, fault, judgement; mode, where the
    run goes on in another one, and stopped, where its time is over.
    """

    kind: str
    data: dict[str, Any]


class RecordedReading(Frozen):
    """A request, or a brief, that the model read before the run: what it was asked and answered, what came of it.

    `said` is what was understood, `refusal` why it was refused, `why_not` why the model was not asked.
    """

    source: Source
    fence: str
    with_schema: bool = True
    why_not: str | None = None
    steps: tuple[Step, ...] = ()
    said: Said | None = None
    refusal: str | None = None


class Setup(Frozen):
    """All that a run needs beside its model: with it and the recorded answers the run can be done again."""

    request: str
    intent: Intent
    # The user's own, which an intent leaves out where it is shown.
    calibration: CustomCalibration | None = None
    # The built-in proposer's answer if the time limit cut its search: another run would find another.
    reference: PlanResult | None = None
    model: str
    tools: tuple[str, ...] = ()
    has_answer_schema: bool = False
    limits: Limits = Limits()
    prices: Prices | None = None
    level: Level = "patch"
    repairs: bool = True
    max_output_tokens: int = 4096
    knowledge_tokens: int = 0
    fence: str
    has_reference: bool = True
    # The model's readings of the request before the run: they share its budget.
    readings: tuple[RecordedReading, ...] = ()


class Result(Frozen):
    """How the run ended: the status, whose plan was returned, and the content hash of that plan."""

    status: Status
    origin: str
    plan_hash: str | None
    spent: Spent


class Transcript(Frozen):
    """A recorded run; `result` is absent where it was cut off."""

    format: Literal["shardwright/transcript"] = FORMAT
    version: Literal["1"] = VERSION
    shardwright: str
    setup: Setup
    steps: tuple[Step, ...] = Field(default=())
    result: Result | None = None


class StepLog:
    """The log of steps after a head; with a path, the file there is rewritten after each step.

    `head` is a recording with the earlier `steps`. A device or a named pipe is written to once, at the end. `failure`
    is the reason if a later write failed: what was paid for is not lost.

    Raises:
        InputError: the first write fails.
    """

    def __init__(self, head: BaseModel, path: Path | None = None, redact: Callable[[str], str] = str) -> None:
        self._head, self._path, self._redact = head, path, redact
        self._steps: list[Step] = []
        self._is_special = path is not None and is_special(file_place(path))
        self.failure: str | None = None
        if not self._is_special:
            self._write({})

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record one step."""
        self._steps.append(Step(kind=kind, data=dict(data)))
        if not self._is_special:
            self.renew()

    def renew(self, **ending: BaseModel | None) -> None:
        """Write, or remember why that failed; the next step tries again."""
        self.failure = None
        try:
            self._write(ending)
        except InputError as error:
            self.failure = str(error)

    def _write(self, ending: Mapping[str, BaseModel | None]) -> None:
        if self._path is None:
            return
        recording = self._head.model_copy(update={"steps": tuple(self._steps), **ending})
        text = self._redact(json.dumps(recording.model_dump(mode="json"), ensure_ascii=False, indent=1))
        try:
            write_file(self._path, (text + "\n").encode("utf-8", errors="replace"))
        except InputError as error:
            raise InputError(f"transcript {error}") from None


class Recorder(StepLog):
    """The log of one run.

    Raises:
        InputError: the first write fails.
    """

    def __init__(self, setup: Setup, path: Path | None = None, redact: Callable[[str], str] = str) -> None:
        from importlib.metadata import version

        self._run = Transcript(shardwright=version("shardwright"), setup=setup)
        super().__init__(self._run, path, redact)

    def finish(self, result: Result) -> Transcript:
        """Record the end of the run; returns the whole transcript."""
        self.renew(result=result)
        return self._run.model_copy(update={"steps": tuple(self._steps), "result": result})


R = TypeVar("R", bound=BaseModel)


def read_transcript(path: Path) -> Transcript:
    """The transcript at `path`.

    Raises:
        InputError: it cannot be read, is malformed, or of an unknown version.
    """
    return read_recording(path, Transcript)


def read_recording(path: Path, *kinds: type[R]) -> R:
    """The recording at `path`, of the one of `kinds` with its `format`.

    Raises:
        InputError: as `read_transcript`.
    """
    name = shown_path(path)
    try:
        content: Any = parse(read_bounded(path, MAX_TRANSCRIPT_BYTES, name), name, most_depth=MAX_WRAPPED_DEPTH)
    except JsonError as error:
        raise InputError(f"{error}: not a transcript that `--transcript` wrote") from None
    formats = {str(kind.model_fields["format"].default): kind for kind in kinds}
    kind = formats.get(str(content.get("format"))) if isinstance(content, dict) else None
    if kind is None:
        known = " or ".join(map(repr, formats))
        raise InputError(f"{name}: not a transcript: its `format` is not {known}")
    if content.get("version") != VERSION:
        raise InputError(
            f"{name}: version {content.get('version')!r} of transcripts is not known; this reads {VERSION!r}"
        )
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise InputError(f"{name}: not a transcript of version {VERSION}: {where}: {first['msg']}") from None
