"""A model that answers from a script: for tests, demonstrations and evaluation without an endpoint.

Its steps are used in order; a request after the last one is a fault, and `assert_complete` fails if steps are unused.
It keeps every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .client import EndpointError, OnText
from .deadline import Deadline
from .messages import ModelRequest, Reply, ToolCall, Usage

# A step: a reply, a fault to raise, or a function of the request that returns one of them.
Step = Reply | EndpointError | Callable[[ModelRequest], "Reply | EndpointError"]

_NO_USAGE = Usage(input_tokens=0, output_tokens=0, is_estimated=True)


def calls(*named: tuple[str, Mapping[str, Any] | str], text: str = "") -> Reply:
    """A reply that calls tools: each a name and its arguments, an object or a text as the model would write it."""
    tool_calls = tuple(
        ToolCall(
            id=f"call_{at}", name=name, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments)
        )
        for at, (name, arguments) in enumerate(named)
    )
    return Reply(text=text, tool_calls=tool_calls, finish="tool_calls", usage=_NO_USAGE)


def says(text: str) -> Reply:
    """A reply in words."""
    return Reply(text=text, finish="stop", usage=_NO_USAGE)


class ScriptedModel:
    """A `ModelClient` that answers from a script."""

    def __init__(self, steps: Iterable[Step], name: str = "scripted") -> None:
        self._steps = list(steps)
        self._name = name
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        """The given name."""
        return self._name

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        """The next step's answer.

        Raises:
            EndpointError: the step is one, or the script has no more.
        """
        at = len(self.requests)
        self.requests.append(request)
        if at >= len(self._steps):
            raise EndpointError("unplayed", f"the script of {self._name} has {len(self._steps)} steps, not more", 0)
        step = self._steps[at]
        answer = step(request) if callable(step) else step
        if isinstance(answer, EndpointError):
            raise answer
        if on_text is not None and answer.text:
            on_text(answer.text)
        return answer

    def assert_complete(self) -> None:
        """Fail if steps are unused.

        Raises:
            AssertionError: steps are unused.
        """
        unused = len(self._steps) - len(self.requests)
        if unused > 0:
            raise AssertionError(f"{unused} of {len(self._steps)} scripted steps were never asked for")
