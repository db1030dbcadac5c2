"""The form of a tool: a typed function on the desk of a run, with a schema made from its arguments.

A tool never raises to the loop: a failure is an answer of one of four kinds. `try_again`: the call was wrong and may be
corrected. `infeasible`: the call was right and the answer is no. `bug`: the tool failed, through no fault of the
model, and should not be called again. `stopped`: the run's time ended before the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from ...tools.frozen import Frozen
from ..loop.desk import Desk
from ..loop.feedback import Level
from ..loop.judge import Judgement
from ..loop.shorten import bounded
from ..model.messages import ToolSpec

Trouble = Literal["try_again", "infeasible", "bug", "stopped"]

# The longest text in one piece of an answer: a passage of the knowledge base.
MOST_CHARACTERS = 6_000


class Arguments(Frozen):
    """Base of the arguments of a tool: closed; a field that does not apply is null.

    The schema asks for every field, as strict servers want it; what is left out all the same is taken for null.
    """


# Keywords left out of schemas: tools check bounds and name them in answers; schemas cost tokens in every request.
_LEFT_OUT = ("default", "minimum", "maximum", "minItems", "maxItems", "maxLength")
_SCALARS = ("string", "integer", "number", "boolean")

A = TypeVar("A", bound=Arguments)


class Bench(Struct, frozen=True):
    """A tool's workplace: the desk of the run, and the level of feedback."""

    desk: Desk
    level: Level = "patch"
    repairs: bool = True


class Answer(Struct, frozen=True):
    """A tool's answer: JSON values for the model; `judgement` if it judged a proposal that is the run's answer."""

    content: Mapping[str, Any]
    trouble: Trouble | None = None
    judgement: Judgement | None = None

    @property
    def handle(self) -> str | None:
        """The handle of the document that the call made or judged; `None` if there is none."""
        return self.content.get("handle") if self.judgement is None else self.judgement.handle

    @property
    def text(self) -> str:
        """The answer as the model reads it: valid JSON, whatever the content."""
        head: dict[str, Any] = {} if self.trouble is None else {"error": self.trouble}
        answer = bounded({**head, **self.content}, MOST_CHARACTERS)
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class Tool(Struct, Generic[A], frozen=True, dict=True):
    """One tool. `run` may raise `InputError`, which becomes `try_again`."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Bench, A], Answer]
    # Whether its schema is strict: without open objects.
    is_strict: bool = True

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as offered to a model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=argument_schema(self.arguments),
            is_strict=self.is_strict,
        )


def argument_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of `arguments` for strict servers: closed objects, every property required, no title."""
    return _strict(arguments.model_json_schema())


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(member) for member in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    strict: dict[str, Any] = {
        key: _strict(value)
        for key, value in schema.items()  # pyright: ignore[reportUnknownVariableType]
        if not (key == "title" and isinstance(value, str)) and key not in _LEFT_OUT
    }
    match strict.pop("anyOf", None):
        # A value or null in one schema: half as long, and more servers read it.
        case [{"type": str(kind), **rest}, {"type": "null"}] if kind in _SCALARS and "enum" not in rest:
            strict = {"type": [kind, "null"], **rest, **strict}
        case None:
            pass
        case choices:
            strict["anyOf"] = choices
    if "properties" in strict:
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict
