"""The state of a chat: its requests with their plans, which of them is the current one, and what was looked at beside.

It is made of events and nothing else, so that a chat that is resumed stands where it stood; nothing is planned again
for it. Results are read when they are needed, and only the last few are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from pydantic import ValidationError

from ...tools.calibration.custom import CustomCalibration
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.language.said import Said
from ..intent.intent import Intent
from ..results import PlanResult
from .edits import Spoken
from .outcome import Planned
from .session import Document, Session

# Requests that one chat holds; those that were undone and replaced do not count.
MOST_VERSIONS = 1000
_MOST_RESULTS = 6


class Version(Frozen):
    """A request as it was said and completed, and the name of what it came to. `title` is for lists."""

    said: Said
    intent: Intent
    title: str
    result: str
    calibration: str | None = None


class State(Struct):
    """Versions in the order in which they were made, the place of the current one, the last that was put aside."""

    session: Session
    versions: list[Version] = field(default_factory=list[Version])
    at: int = -1
    aside: Version | None = None
    _results: OrderedDict[str, PlanResult] = field(default_factory=OrderedDict[str, PlanResult])

    @property
    def current(self) -> Version | None:
        """The version that follow-ups change."""
        return self.versions[self.at] if 0 <= self.at < len(self.versions) else None

    @property
    def spoken(self) -> list[Spoken]:
        """The requests up to the current one, oldest first."""
        return [Spoken(version.said, version.intent) for version in self.versions[: self.at + 1]]

    def planned(self, version: Version) -> Planned:
        """A version with its result.

        Raises:
            InputError: the session is damaged.
        """
        return Planned(version.said, version.intent, self._result(version))

    @property
    def now(self) -> Planned | None:
        """The current request with its result."""
        return None if self.current is None else self.planned(self.current)

    @property
    def last_planned(self) -> Planned | None:
        """The current request where it has a plan, else the nearest before it that has one."""
        for version in reversed(self.versions[: self.at + 1]):
            planned = self.planned(version)
            if planned.result.plan is not None:
                return planned
        return None

    def _result(self, version: Version) -> PlanResult:
        known = self._results.get(version.result)
        if known is None:
            try:
                known = PlanResult.model_validate_json(self.session.document(version.result))
            except ValidationError:
                raise InputError("the session holds a plan that this version cannot read; begin a new one") from None
        self.remember(version.result, known)
        return known.model_copy(update={"intent": version.intent})

    def remember(self, name: str, result: PlanResult) -> None:
        """Keep a result at hand."""
        self._results[name] = result
        self._results.move_to_end(name)
        while len(self._results) > _MOST_RESULTS:
            self._results.popitem(last=False)

    def push(self, version: Version) -> None:
        """Make `version` the current one; what was undone before it is gone."""
        del self.versions[self.at + 1 :]
        self.versions.append(version)
        self.at = len(self.versions) - 1
        self.aside = None

    def move(self, place: int) -> None:
        """Make the version at `place` the current one; -1 is none."""
        self.at = max(-1, min(place, len(self.versions) - 1))
        self.aside = None

    def replay(self, kind: str, data: Mapping[str, Any]) -> None:
        """Do what an event did.

        Raises:
            InputError: it holds what no event of this version holds.
        """
        try:
            if kind == "version":
                self.push(self._restored(data["version"]))
            elif kind == "aside":
                self.aside = self._restored(data["version"])
            elif kind == "moved":
                self.move(int(data["at"]))
        except (ValidationError, KeyError, TypeError, ValueError):
            raise InputError("the session holds an event that this version cannot read; begin a new one") from None

    def _restored(self, data: Any) -> Version:
        version = Version.model_validate(data)
        if version.calibration is None:
            return version
        custom = CustomCalibration.model_validate_json(self.session.document(version.calibration))
        return version.model_copy(update={"intent": version.intent.model_copy(update={"calibration": custom})})

    def version_of(self, planned: Planned, title: str) -> tuple[Version, list[Document]]:
        """`planned` as a version, and the documents that it needs kept.

        Raises:
            InputError: the chat holds too many requests already.
        """
        if self.at + 1 >= MOST_VERSIONS:
            raise InputError(f"this session holds {MOST_VERSIONS} requests: begin a new one")
        result_document = self.session.document_of(planned.result.model_dump_json())
        documents = [result_document]
        custom = planned.intent.calibration
        calibration = None
        if custom is not None:
            calibration = self.session.document_of(custom.model_dump_json())
            documents.append(calibration)
        self.remember(result_document.hash, planned.result)
        version = Version(
            said=planned.said,
            intent=planned.intent,
            title=title,
            result=result_document.hash,
            calibration=None if calibration is None else calibration.hash,
        )
        return version, documents
