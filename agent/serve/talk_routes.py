"""The endpoint that clients of OpenAI ask: a conversation comes whole each time, and continues if it is known.

What was said before stands in the request. A conversation whose messages are those of one that is in memory goes on in
it; of any other what the user said is said again, in a new one.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from ...tools.checkpoint import doing
from ..model.answer import BYTES_PER_TOKEN
from .answering import NO_STORE, EventResponse, Tell, in_one, packed
from .parts import Parts
from .refusals import RefusalError
from .sessions import Held, Sessions
from .talk_messages import (
    COMPLETIONS,
    MODEL,
    MODELS,
    Answer,
    Choice,
    Completion,
    CompletionQuestion,
    Message,
    ModelLine,
    ModelsAnswer,
    Usage,
    chunk,
)
from .valid import valid


def add_talk(app: FastAPI, parts: Parts) -> None:
    """The routes of clients of OpenAI."""
    known = _Known(parts.talks, parts.settings.limits.replayed_turns)

    async def models(request: Request) -> Response:
        del request
        body = ModelsAnswer(data=[ModelLine(id=MODEL)]).model_dump_json()
        return Response(body, headers=NO_STORE, media_type="application/json")

    async def complete(request: Request) -> Response:
        asked = valid(CompletionQuestion, await request.body())
        if asked.model != MODEL:
            message = f"there is no model {asked.model[:100]!r}; {MODEL} is the one that there is"
            raise RefusalError(404, "not_found", message, code="model_not_found")
        talk = _Talk(asked, known)
        if asked.stream:
            return EventResponse(parts.gates.long, talk.streamed, _framed)
        return await in_one(request, parts.gates.long, talk.whole)

    app.add_api_route(MODELS, models, methods=["GET"], operation_id="models_of_openai", summary="The one model.")
    app.add_api_route(
        COMPLETIONS, complete, methods=["POST"], operation_id="chat_completions",
        summary="Talk with the planner as with a model of OpenAI.", description=CompletionQuestion.__doc__ or "",
    )  # fmt: skip


class _Known:
    """Conversations by their messages."""

    def __init__(self, talks: Sessions, most_replayed: int) -> None:
        self._talks, self._most_replayed = talks, most_replayed
        self._ids: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def taken(self, messages: list[Message]) -> Held:
        """A conversation that holds `messages`, taken for one more turn: the one that is known, else a new one.

        Raises:
            RefusalError: too much would have to be said again, or there is no room for a new one.
        """
        with self._lock:
            name = self._ids.pop(_digest(messages), None)
        if name is not None:
            with suppress(RefusalError):  # it gave way to others, or is full
                return self._talks.taken(name)
        again = [message.text for message in messages if message.role == "user"]
        if len(again) > self._most_replayed:
            raise RefusalError(
                400, "input", f"this conversation of {len(again)} turns is not in memory any more; at most "
                f"{self._most_replayed} are said again: begin a new one",
            )  # fmt: skip
        talk = self._talks.open(is_taken=True)
        try:
            for place, text in enumerate(again, 1):
                doing(f"saying turn {place} of {len(again)} again")
                talk.say(text)
        except BaseException:  # a job that is stopped, too, gives it back
            talk.leave()
            raise
        return talk

    def keep(self, messages: Iterable[Message], talk: Held) -> None:
        """Remember that `talk` holds `messages`, so that a turn that follows finds it."""
        with self._lock:
            self._ids[_digest(messages)] = talk.id
            while len(self._ids) > 2 * len(self._talks) + 1:
                self._ids.popitem(last=False)


class _Talk:
    """One request: the turn of a conversation, told whole or piece by piece."""

    def __init__(self, asked: CompletionQuestion, known: _Known) -> None:
        self._asked, self._known = asked, known
        # Instructions to a model do not instruct a planner.
        self._said = [message for message in asked.messages if message.role in ("user", "assistant")]
        if not self._said or self._said[-1].role != "user" or not self._said[-1].text.strip():
            raise RefusalError(400, "input", "messages: the last one has to be the user's, and not empty")
        self._id, self._created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())

    def whole(self, tell: Tell) -> bytes:
        """The completion as one object."""
        del tell
        pieces: list[str] = []
        finish_reason = self._turn(pieces.append)
        message = Answer(content="".join(pieces))
        return Completion(
            id=self._id,
            created=self._created,
            choices=[Choice(message=message, finish_reason=finish_reason)],
            usage=self._usage(message.content),
        ).model_dump_json().encode()  # fmt: skip

    def streamed(self, tell: Tell) -> bytes:
        """The completion in pieces; what is returned ends the stream."""
        begun = {"id": self._id, "created": self._created, "model": MODEL}
        pieces: list[str] = []

        def put(piece: str) -> None:
            pieces.append(piece)
            tell("chunk", chunk(begun, {"content": piece}))

        tell("chunk", chunk(begun, {"role": "assistant", "content": ""}))
        last = [chunk(begun, {}, self._turn(put))]
        options = self._asked.stream_options
        if options is not None and options.include_usage:
            usage = self._usage("".join(pieces)).model_dump()
            last.append({**begun, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        return b"".join(_data(packed(event)) for event in last) + _data(b"[DONE]")

    def _turn(self, put: Callable[[str], None]) -> Literal["stop", "length"]:
        """Take the turn, and return why it ends; `put` is given as much of the answer as is wanted."""
        before, last = self._said[:-1], self._said[-1]
        talk = self._known.taken(before)
        cut = _Cut(self._asked.most_tokens, put)
        try:
            talk.say(last.text, cut.put)
        finally:
            talk.leave()
        reply = Message(role="assistant", content=cut.told)
        self._known.keep([*self._said, reply], talk)
        return "length" if cut.is_over else "stop"

    def _usage(self, text: str) -> Usage:
        prompt = sum(_tokens(message.text) for message in self._asked.messages)
        completion = _tokens(text)
        return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


class _Cut:
    """Passes on an answer up to so many tokens."""

    def __init__(self, most_tokens: int | None, put: Callable[[str], None]) -> None:
        self._left = None if most_tokens is None else most_tokens * BYTES_PER_TOKEN
        self._put, self.told, self.is_over = put, "", False

    def put(self, piece: str) -> None:
        """A piece of the answer."""
        if self._left is not None:
            data = piece.encode()
            self.is_over = self.is_over or len(data) > self._left
            piece = data[: self._left].decode(errors="ignore")
            self._left -= len(piece.encode())
        if piece:
            self.told += piece
            self._put(piece)


def _tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def _digest(messages: Iterable[Message]) -> str:
    """A hash of the messages; clients may trim what they send back."""
    lines = [(message.role, message.text.strip()) for message in messages]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def _data(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _framed(name: str, data: bytes) -> bytes:
    if name == "progress":  # nothing that these clients know
        return b""
    if name == "answer":
        return data
    if name == "error":
        error: dict[str, Any] = json.loads(data)
        data = packed(
            {"error": {"message": error["message"], "type": "server_error", "param": None, "code": error["kind"]}}
        )
    return _data(data)
