"""A streamed answer: server-sent events → the same object as an answer in one piece.

The format (https://html.spec.whatwg.org/multipage/server-sent-events.html) is read as far as servers use it: lines of
`data:`. A stream without a finish reason was cut off and is no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tools.input.strict_json import parse_answer
from ...tools.input.strict_values import JsonError
from .answer import content_text
from .faults import from_error_object, unreadable
from .redaction import RedactedStream, Redactor

_DONE = "[DONE]"
# A call's index in the list; a larger one is the server's fault, not a list of a million.
MAX_INDEX = 10_000


class StreamedAnswer:
    """Joins the pieces of one answer; `on_text` gets its text as it comes, without secrets."""

    def __init__(self, redactor: Redactor, on_text: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._on_text = on_text
        self._shown = RedactedStream(redactor)
        self._rest = b""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self._model: Any = None
        self._fingerprint: Any = None
        self.is_done = False

    def feed(self, data: bytes) -> None:
        """Read a chunk.

        Raises:
            FaultError: it holds a malformed event, or an error.
        """
        *lines, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            self._line(line)

    def end(self) -> dict[str, Any]:
        """The complete answer; without a finish reason if the stream was cut off.

        Raises:
            FaultError: the last event is malformed.
        """
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._on_text(self._shown.end())
        return self.so_far()

    def so_far(self) -> dict[str, Any]:
        """The answer as far as it has come."""
        message = {
            "content": "".join(self._text),
            "refusal": "".join(self._refusal) or None,
            "tool_calls": [
                {"id": call["id"], "function": {"name": call["name"], "arguments": "".join(call["arguments"])}}
                for _, call in sorted(self._calls.items())
            ],
        }
        choice = {"message": message, "finish_reason": self._finish}
        return {
            "choices": [choice],
            "usage": self._usage,
            "model": self._model,
            "system_fingerprint": self._fingerprint,
        }

    def _line(self, line: bytes) -> None:
        if self.is_done or not line.startswith(b"data:"):
            return
        text = line[5:].decode("utf-8", errors="replace").strip()
        if text == _DONE:
            self.is_done = True
            return
        if not text:
            return
        try:
            event = parse_answer(text)
        except JsonError as error:
            raise unreadable(f"an event of the stream: {self._redactor.text(str(error))}") from None
        if not isinstance(event, dict):
            raise unreadable("an event of the stream is not a JSON object")
        if event.get("error"):
            raise from_error_object(event["error"], self._redactor)
        self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        self._usage = event.get("usage") or self._usage
        self._model = event.get("model") or self._model
        self._fingerprint = event.get("system_fingerprint") or self._fingerprint
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        if text := content_text(delta.get("content")):
            self._text.append(text)
            self._on_text(self._shown.feed(text))
        if refusal := content_text(delta.get("refusal")):
            self._refusal.append(refusal)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._call(call)

    def _call(self, piece: dict[str, Any]) -> None:
        index, own_id = piece.get("index"), piece.get("id")
        last = max(self._calls, default=-1)
        if type(index) is not int or not 0 <= index <= MAX_INDEX:
            # Without an index, a new id or a first piece begins a call; other pieces continue the last one.
            goes_on = last >= 0 and (not own_id or own_id == self._calls[last]["id"])
            index = last if goes_on else last + 1
        elif own_id and self._calls.get(index, {}).get("id") not in (None, "", own_id):
            # Some servers give every call the index 0.
            index = next((at for at, call in self._calls.items() if call["id"] == own_id), last + 1)
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": []})
        function = piece.get("function")
        if isinstance(own_id, str) and own_id:
            call["id"] = own_id
        if not isinstance(function, dict):
            return
        call["name"] = call["name"] or content_text(function.get("name"))
        arguments = function.get("arguments")
        if arguments is not None:
            call["arguments"].append(content_text(arguments))
