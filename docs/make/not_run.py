"""Blocks that are not run are read all the same: a command and options that exist, Python that compiles.

What is not run says why, in a line `<!-- not run: WHY -->` above the block; README's two first commands alone do
without, for those are what continuous integration does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from ...agent.cli.app import cli
from .pages import Block, blocks

# README's first bash blocks, which install and plan, and install and test.
_RUN_BY_CI = 2
_CONTINUED = re.compile(r"\\\n\s*")
# Words that end one command of a line and begin another.
_BETWEEN = {"|", "||", "&&", ";", "&", ">", "<"}


def faults(page: Path) -> list[str]:
    """What is wrong with the blocks of a page that are not run, a line each."""
    read = [block for block in blocks(page) if block.file is None]
    if page.name == "README.md":
        first_two = [block for block in read if block.language == "bash"][:_RUN_BY_CI]
        read = [block for block in read if block not in first_two]
    return [f"{page.name}, line {block.line}: {fault}" for block in read for fault in _faults(block)]


def _faults(block: Block) -> Iterator[str]:
    if block.language == "python" and block.why_not_run is not None:
        try:
            compile(block.body, "page", "exec")
        except SyntaxError as error:
            yield f"Python that does not compile: {error.msg}"
    if block.language != "bash":
        return
    if block.why_not_run is None:
        yield "a bash block needs a line '<!-- not run: WHY -->' above it, or is a console block"
    for command in commands(block.body):
        fault = wrong_call(command)
        if fault is not None:
            yield f"{shlex.join(['shardwright', *command])}: {fault}"


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each call of `shardwright` in a shell text."""
    for line in _CONTINUED.sub(" ", text).split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in (*lexer, ";"):
            if word not in _BETWEEN:
                words.append(word)
                continue
            names = [index for index, one in enumerate(words) if one.rsplit("/", maxsplit=1)[-1] == "shardwright"]
            # `VARIABLE=value shardwright …`; elsewhere the name is an argument of another command.
            if names and all("=" in one for one in words[: names[0]]):
                yield words[names[0] + 1 :]
            words = []


def wrong_call(arguments: list[str]) -> str | None:
    """Why the command line would refuse these arguments: no such command, no such option; none where it takes them."""
    if not arguments or arguments[0].startswith("-"):
        return None
    command = cli.get_command(click.Context(cli), arguments[0])
    if command is None:
        return f"no such command: {arguments[0]}"
    try:
        command.make_parser(click.Context(command)).parse_args(arguments[1:])
    except click.UsageError as error:
        return error.format_message()
    return None
