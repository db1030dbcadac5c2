"""The prompts that a client offers to a person; their words are in `prompts/`."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.types import GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, TextContent
from msgspec import Struct

from ...prompts.render import render
from ...tools.errors import InputError
from ...tools.language.request import MAX_REQUEST_CHARACTERS
from ...tools.plan.reader import MAX_DOCUMENT_BYTES
from .brief_answer import is_plan
from .shelf import HANDLE_FORM, Shelf

# The files in `prompts/` of a prompt, and of what every client reads about the server.
_FILE = "mcp_{}"
INSTRUCTIONS = "mcp_server"


class Offered(Struct, frozen=True):
    """A prompt: what it is for, and its arguments with what each is."""

    description: str
    arguments: Mapping[str, str]


OFFERED = {
    "plan_deployment": Offered(
        "Plan a deployment and say what to run.",
        {"request": "What is wanted, in words: model, GPUs, prompt and output lengths, limits."},
    ),
    "check_launch_command": Offered(
        "Judge a launch command that runs today, and say what would be better.",
        {
            "command": "The command, script or manifest.",
            "hardware": "NODESxGPUS:ACCELERATOR (1x8:h100-sxm).",
        },
    ),
    "review_plan": Offered(
        "Review a plan document as a serving engineer would.",
        {"plan": f"The plan document as JSON text, or its handle {HANDLE_FORM}."},
    ),
}


def prompt_list() -> ListPromptsResult:
    """The prompts that there are."""
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=name,
                description=offered.description,
                arguments=[
                    PromptArgument(name=argument, description=words, required=True)
                    for argument, words in offered.arguments.items()
                ],
            )
            for name, offered in OFFERED.items()
        ]
    )


def prompt(name: str, arguments: Mapping[str, str], shelf: Shelf) -> GetPromptResult:
    """A prompt with its arguments filled in; a plan document goes onto the shelf, and its handle into the words.

    Raises:
        InputError: there is no such prompt, an argument is missing or unknown, or it is longer than can be used.
    """
    offered = OFFERED.get(name)
    if offered is None:
        raise InputError(f"there is no prompt {name[:100]!r}; there are {', '.join(OFFERED)}")
    if set(arguments) != set(offered.arguments):
        raise InputError(f"prompt {name}: give {', '.join(offered.arguments)}, and nothing else")
    values = {argument: _shown(argument, value, shelf) for argument, value in arguments.items()}
    message = PromptMessage(role="user", content=TextContent(text=render(_FILE.format(name), **values)))
    return GetPromptResult(description=offered.description, messages=[message])


def _shown(argument: str, value: str, shelf: Shelf) -> str:
    if len(value) <= MAX_DOCUMENT_BYTES and is_plan(value):
        return shelf.keep("plan", value) or value
    if len(value) > MAX_REQUEST_CHARACTERS:
        raise InputError(f"{argument}: longer than {MAX_REQUEST_CHARACTERS:,} characters")
    return value.strip()
