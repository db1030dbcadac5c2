"""What an operation is: a name, a typed question, the answer of the library, and its report for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...tools.errors import InputError
from ...tools.input.files import without_files
from ...tools.plan.reader import MAX_DOCUMENT_BYTES, is_json_text

if TYPE_CHECKING:
    from ..agent import Agent

# Columns of texts for people.
WIDTH = 100
# Faults of a question that a refusal names.
MOST_FAULTS = 5

# The expected kind of value, by pydantic's names of the fault.
_EXPECTED = {
    ("dict_type", "model_type", "model_attributes_type"): "an object",
    ("string_type",): "a text",
    ("int_type", "int", "int_from_float"): "a whole number",
    ("float_type", "float"): "a number",
    ("bool_type", "bool"): "true or false",
    ("list_type", "tuple_type"): "a list",
}
_WORDS = {"extra_forbidden": "there is no such field", "missing": "it is missing"}
# In the place of a fault: not a field, but which of several types the value was read as.
_TYPE = re.compile(r"[A-Z]\w*|.*\[.*|constrained-\w+|str|int|float|bool")


class Question(BaseModel):
    """What is asked of an operation; a field that there is not is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Asked = TypeVar("Asked", bound=Question)
Answered = TypeVar("Answered", bound=BaseModel)


class TakesPlan:
    """In the type of a field: what is given there may be a plan document."""


Document = Annotated[
    dict[str, Any] | Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)],
    TakesPlan(),
    Field(description="The plan document: the object itself, or its JSON text. Never a path."),
]


class Operation(Struct, Generic[Asked, Answered], frozen=True):
    """One thing that can be asked. `run` raises what the library raises; `text` is the report that the command prints.

    `answers` are the kinds of answers that there are. `is_long`: it may take seconds, says what it does
    (`tools/checkpoint.doing`) and stops at checkpoints. `ask`: `run` where a language model is configured, which it may
    ask.
    """

    name: str
    summary: str
    description: str
    asked: type[Asked]
    answers: tuple[type[BaseModel], ...]
    run: Callable[[Asked], Answered]
    text: Callable[[Answered], str]
    is_long: bool = False
    ask: Callable[[Asked, Agent], Answered] | None = None

    @property
    def plan_fields(self) -> tuple[str, ...]:
        """The fields of the question in which a plan document may be given."""
        fields = self.asked.model_fields.items()
        return tuple(name for name, field in fields if any(isinstance(mark, TakesPlan) for mark in field.metadata))

    def answer(self, question: Asked, agent: Agent | None = None) -> Answered:
        """The answer to `question`; no file is opened for it.

        Raises:
            ShardwrightError: as the library's function of that name.
        """
        with without_files():
            return self.run(question) if agent is None or self.ask is None else self.ask(question, agent)

    def question(self, fields: object) -> Asked:
        """`fields` as the question of this operation.

        Raises:
            InputError: they are none; the message names the first fields that are wrong.
        """
        try:
            return self.asked.model_validate(fields)
        except ValidationError as error:
            raise InputError(f"{self.name}: {'; '.join(faults_of(error))}") from None


def faults_of(error: ValidationError) -> Iterator[str]:
    """Faults in words, unknown fields first: a missing field may stand under such a name."""
    errors = error.errors(include_url=False, include_input=False)
    faults: dict[str, list[str]] = {}
    for entry in sorted(errors, key=lambda fault: fault["type"] != "extra_forbidden"):
        place = ".".join(str(part) for part in entry["loc"] if not _TYPE.fullmatch(str(part)))[:200]
        kind = next(
            (words for types, words in _EXPECTED.items() if entry["type"].removesuffix("_parsing") in types), None
        )
        faults.setdefault(place, []).append(kind or _WORDS.get(entry["type"]) or entry["msg"][:500])
    for place, messages in list(faults.items())[:MOST_FAULTS]:
        kinds = list(dict.fromkeys(words for words in messages if words in _EXPECTED.values()))
        others = dict.fromkeys(words for words in messages if words not in kinds)
        what = "; ".join((*others, *([f"{' or '.join(kinds)} is expected"] if kinds else [])))
        yield f"{place}: {what}" if place else what


def plan_text(document: dict[str, Any] | str) -> dict[str, Any] | str:
    """A document as the library takes it: an object, or a text that cannot be taken for a path.

    Raises:
        InputError: the text is no JSON.
    """
    if isinstance(document, str) and not is_json_text(document):
        raise InputError("plan: the object of a plan document or its JSON text is expected")
    return document
