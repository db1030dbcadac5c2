"""What a tool is: a typed function on the desk of a run, offered to a model with a schema made of its arguments.

A tool never raises to the loop: what went wrong is an answer of one of four kinds. `try_again`: the call was wrong and
may be mended. `infeasible`: the call was right and the answer is no, for good. `bug`: the tool failed; not the model's
fault, and not to be tried again. `stopped`: the time of the run was over before it had an answer.
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

# The longest text that a tool says in one piece: a passage of the knowledge base.
MOST_CHARACTERS = 6_000


class Arguments(Frozen):
    """Base of the arguments of a tool: closed; a field that does not apply is null.

    The schema asks for every field, as strict servers want it; what is left out all the same is taken for null.
    """


# Bounds are held by the tools, in an answer that names them; in a schema they are paid for with every request.
_LEFT_OUT = ("default", "minimum", "maximum", "minItems", "maxItems", "maxLength")
_SCALARS = ("string", "integer", "number", "boolean")

A = TypeVar("A", bound=Arguments)


class Bench(Struct, frozen=True):
    """Where a tool works: the desk of the run, and how much a model is told of a judgement."""

    desk: Desk
    level: Level = "patch"
    repairs: bool = True


class Answer(Struct, frozen=True):
    """What a tool says: JSON values for the model; `judgement` where it judged a proposal that is to be the answer."""

    content: Mapping[str, Any]
    trouble: Trouble | None = None
    judgement: Judgement | None = None

    @property
    def handle(self) -> str | None:
        """The handle of the document that the call made or judged, if there is one."""
        return self.content.get("handle") if self.judgement is None else self.judgement.handle

    @property
    def text(self) -> str:
        """The answer as the model reads it: JSON, whatever was put in."""
        head: dict[str, Any] = {} if self.trouble is None else {"error": self.trouble}
        told = bounded({**head, **self.content}, MOST_CHARACTERS)
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class Tool(Struct, Generic[A], frozen=True, dict=True):
    """One tool. `run` may raise `InputError`, which becomes `try_again`."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Bench, A], Answer]
    # Whether its schema is strict: no open object in it.
    is_strict: bool = True

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as it is offered."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=argument_schema(self.arguments),
            is_strict=self.is_strict,
        )


def argument_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of `arguments` as strict servers want it: closed objects, every property required, no title."""
    return _strict(arguments.model_json_schema())


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(one) for one in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {
        key: _strict(value)
        for key, value in schema.items()  # pyright: ignore[reportUnknownVariableType]
        if not (key == "title" and isinstance(value, str)) and key not in _LEFT_OUT
    }
    match kept.pop("anyOf", None):
        # A value or null, said in one schema: half as long, and read by more servers.
        case [{"type": str(kind), **rest}, {"type": "null"}] if kind in _SCALARS and "enum" not in rest:
            kept = {"type": [kind, "null"], **rest, **kept}
        case None:
            pass
        case choices:
            kept["anyOf"] = choices
    if "properties" in kept:
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    return kept
