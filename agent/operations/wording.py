"""Rewords reports and refusals from the command line to operations and their fields: clients have no shell.

Only what is certain is reworded: commands of ours that are operations, options of ours that are fields. A text
that is itself part of an answer (a script, a picture) is a document, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from .all_operations import OPERATIONS


class Client(Struct, frozen=True):
    """Who asks: what an operation is called there, and what stands for `--format json gives`."""

    operation: str
    whole_gives: str


HTTP = Client("operation", "the answer gives")

# Sentences on what an operation has in another form.
_SENTENCES = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"--online\s+fetches", "a server that may use the network (--online) fetches"),
        (r"--model\s+path/to/config\.json", "the object of its config.json as model"),
        (r"--model\s+NAME|(?<=brief or )--model", "model"),
        (r"the\s+path\s+of\s+a\s+config\.json\s+works", "the object of a config.json works"),
        (r"`shardwright\s+schema`", "the schema of plan documents"),
        (r"say\s+'[^']+',\s+in\s+Python\s+(\w+)=True", r"\1: true"),
        (r"say\s+'[^']+',\s+in\s+Python\s+(\w+)=False", r"\1: false"),
        (r"run\s+with(out)?\s+(?=--(?:safe-only|keep-strategy|rule))", r"call fix with\1 "),
    )
)
_WHOLE = re.compile(r"--format\s+json\s+(?:gives|has|lists)")
# Options that are arguments of another name, and those that are shown with their value.
_ARGUMENTS = {"rule": "rules", "relax": "relaxations", "constraint": "constraints", "time-limit": "time_limit_s"}
_WITH_VALUE = frozenset({"engine", "rules", "relax"})


@cache
def _names() -> re.Pattern[str]:
    operations = "|".join(operation.name for operation in OPERATIONS)
    fields = {name.replace("_", "-") for operation in OPERATIONS for name in operation.asked.model_fields}
    # Engines have an option of this name, too.
    options = "|".join(sorted({*fields, *_ARGUMENTS} - {"model"}, key=len, reverse=True))
    return re.compile(
        rf"(?P<tick>`?)shardwright\s+(?P<name>{operations})(?![\w:-])"
        rf"|(?<![\w-])--(?P<option>{options})(?![\w-])(?P<gap>\s+(?=\w))?"
    )


def told_to_client(text: str, client: Client) -> str:
    """`text` with operations and fields in the place of commands and options."""
    text = _WHOLE.sub(client.whole_gives, text)
    for pattern, words in _SENTENCES:
        text = pattern.sub(words, text)
    return _names().sub(lambda match: _reworded(match, client), text)


def report_to_client(text: str, answer: Mapping[str, Any], client: Client) -> str:
    """The report of an answer; one that is itself a part of it (a script, a picture) is a document, and stays."""
    return text if text in answer.values() else told_to_client(text, client)


def _reworded(match: re.Match[str], client: Client) -> str:
    if match["name"] is not None:
        return f"{match['tick']}the {client.operation} {match['name']}"
    option, gap = match["option"], match["gap"] or ""
    return f"{_ARGUMENTS.get(option, option.replace('-', '_'))}{':' if gap and option in _WITH_VALUE else ''}{gap}"


def answer_to_client(value: Any, client: Client) -> Any:
    """A structured answer with its sentences reworded for `client`; texts of several lines are documents."""
    if isinstance(value, str):
        return value if "\n" in value else told_to_client(value, client)
    if isinstance(value, list):
        return [answer_to_client(inner, client) for inner in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, dict):
        return {name: answer_to_client(inner, client) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType] - JSON
    return value
