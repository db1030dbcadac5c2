"""Feedback as its reader sees it: only the words of the last messages are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ....tools.input.strict_json import parse
from ....tools.input.strict_values import JsonError
from ...model.messages import ModelRequest

_RULE = re.compile(r"\b[A-Z]{2}\d{3}\b")


class Feedback(Struct, frozen=True):
    """Feedback on the last proposal. A field is empty if the level of feedback omits it."""

    is_rejected: bool = False
    rules: tuple[str, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    repaired_as: str | None = None
    message: str = ""
    hint: str = ""

    @property
    def families(self) -> tuple[str, ...]:
        """The families of the named rules: `TP`, `PP`, `GP`."""
        named = (*self.rules, *_RULE.findall(self.message))
        return tuple(dict.fromkeys(rule[:2] for rule in named))


def last_feedback(request: ModelRequest) -> Feedback | None:
    """The feedback since the last answer; `None` before the first one."""
    messages = request.messages
    last = next((at for at in reversed(range(len(messages))) if messages[at].role == "assistant"), None)
    if last is None:
        return None
    fields: dict[str, Any] = {}
    for message in messages[last + 1 :]:
        for content in objects_in(message.content):
            fields = {**content, **fields}
    return Feedback(
        is_rejected=fields.get("accepted") is False,
        rules=tuple(rule for rule in _list(fields, "rules") if isinstance(rule, str)),
        findings=tuple(finding for finding in _list(fields, "findings") if isinstance(finding, dict)),
        patch=tuple(operation for operation in _list(fields, "patch") if isinstance(operation, dict)),
        repaired_as=repaired if isinstance(repaired := fields.get("repaired_as"), str) else None,
        message=str(fields.get("message", "")),
        hint=str(fields.get("hint", "")),
    )


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    return value if isinstance(value, list) else []


def objects_in(content: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a message, each on a line of its own."""
    for line in content.splitlines():
        if line.startswith("{"):
            try:
                value = parse(line, "")
            except JsonError:
                continue
            if isinstance(value, dict):
                yield value
