"""Commands of a chat, one row each: what `/NAME` does. A new command is a function and a row."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from msgspec import Struct

from ...tools.errors import InputError
from ...tools.export.result import TargetName
from ...tools.input.files import check_open, file_place, write_file
from ..languages.say import say
from ..runs.spent import Spent
from .outcome import Outcome
from .reading import answer
from .turns import show
from .turns.change import begin
from .turns.compare import compare_with
from .turns.earlier import first_again
from .turns.explain import explain_words
from .turns.what_if import what_if
from .turns.why import why, why_not_words
from .turns.work import Work

# So much of what was shown is shown again, since it is written down once more each time.
_MOST_LOGGED = 100_000

# Named where a path is meant, these are no file names.
_TARGETS = get_args(TargetName)


class Call(Struct, frozen=True):
    """A command as it was called: what it works with, what stands after its name, what the chat has cost so far."""

    work: Work
    rest: str
    spent: Spent
    shown: Callable[[], str]


class Command(Struct, frozen=True):
    """One command; `takes` names what may stand after it."""

    run: Callable[[Call], Outcome]
    does: str
    takes: str = ""


def _export(call: Call) -> Outcome:
    """The plan document, whole or not at all; a device or a pipe is written to."""
    if not call.rest:
        raise InputError(say("/export needs a path, such as /export plan.json"))
    if call.rest.lower() in _TARGETS:
        name = call.rest
        writes = "/export writes the plan document: for a file say ./{name}, for what starts it ask for that"
        raise InputError(say(writes, name=name))
    check_open(call.rest)
    data = (call.work.plan.model_dump_json(indent=2) + "\n").encode()
    try:
        path = Path(call.rest).expanduser()
    except RuntimeError as error:  # "~name" of nobody
        raise InputError(f"{call.rest}: {error}") from None
    target = file_place(path)
    replaced = say(" in place of the file that was there") if target.is_file() else ""
    write_file(path, data)
    done = say("The plan is in {place} ({size:,} bytes){replaced}.", place=target, size=len(data), replaced=replaced)
    return Outcome("show", f"{done}\n")


def _cost(call: Call) -> Outcome:
    spent = call.spent
    if not spent.requests and not spent.turns:
        return Outcome("show", say("No language model was asked in this session: it cost nothing.") + "\n")
    estimated = say(" (estimated where the server counts none)") if spent.tokens_estimated else ""
    cached = say(", {count:,} of them cached", count=spent.cached_input_tokens) if spent.cached_input_tokens else ""
    money = f"{spent.usd:.4f} USD" if spent.usd is not None else say("not known: no prices were given")
    lines = (
        say(
            "Answers of the model: {turns:,}, in {requests:,} HTTP requests; tool calls {calls:,}",
            turns=spent.turns,
            requests=spent.requests,
            calls=spent.tool_calls,
        ),
        say(
            "Tokens: {given:,} in{cached}, {made:,} out{estimated}",
            given=spent.input_tokens,
            cached=cached,
            made=spent.output_tokens,
            estimated=estimated,
        ),
        say("Money: {money}", money=money),
    )
    return Outcome("show", "\n".join(lines) + "\n")


def _steps(call: Call) -> int:
    if call.rest == "that":
        if call.work.state.aside is not None:
            raise InputError(say("what was looked at on the side changed nothing; /undo takes back the last change"))
        return 1
    if not call.rest:
        return 1
    if not re.fullmatch(r"[1-9][0-9]{0,5}", call.rest, re.ASCII):
        raise InputError(say("{said!r} is no number of steps: 1 or more, such as 2", said=call.rest[:40]))
    return int(call.rest)


def _why(call: Call) -> Outcome:
    if not call.rest:
        return why(call.work)
    return why_not_words(call.work, call.rest.removeprefix("not ")) or answer(call.work, f"why {call.rest}")


def _what_if(call: Call) -> Outcome:
    outcome = what_if(call.work, call.rest)
    if outcome is None:
        raise InputError(say("what if what? say a change, such as /whatif the prompts were 32k"))
    return outcome


def _help(call: Call) -> Outcome:
    width = max(len(f"/{name} {row.takes}".rstrip()) for name, row in COMMANDS.items())
    rows = [f"  {f'/{name} {row.takes}'.rstrip():<{width}}  {say(row.does)}" for name, row in COMMANDS.items()]
    intro = say(
        "Say what to plan, then change it in words: now with 16 GPUs; use fp8; TPOT under 30 ms; drop the limit on\n"
        "TTFT; 换成 H200. Ask: why? why not TP16? what if the prompts were 32k; compare TP4 PP2; explain PP003;\n"
        "is this risky? what would change your mind? which vllm flags? 有风险吗；什么情况下会改变选择."
    )
    return Outcome("show", "\n".join((intro, "", *rows)) + "\n", is_found=False)


COMMANDS: dict[str, Command] = {
    "plan": Command(lambda call: show.show_plan(call.work), "the whole report of the current plan"),
    "request": Command(lambda call: show.show_request(call.work), "what is asked for now"),
    "diff": Command(lambda call: show.show_difference(call.work), "the current plan beside the one before"),
    "undo": Command(lambda call: show.undo(call.work, _steps(call)), "back to the request before, or N back", "[N]"),
    "redo": Command(lambda call: show.redo(call.work, _steps(call)), "forward again", "[N]"),
    "first": Command(lambda call: first_again(call.work), "the first request of this chat again"),
    "take": Command(lambda call: show.take(call.work), "make the plan of the last what-if the current one"),
    "new": Command(lambda call: begin(call.work, call.rest), "a request of its own, nothing of before", "REQUEST"),
    "again": Command(lambda call: Outcome("show", "", is_repeat=True), "do the last turn again"),
    "estimate": Command(lambda call: show.show_estimate(call.work), "latency, throughput, memory, what binds"),
    "validate": Command(lambda call: show.show_validation(call.work), "check all rules on the current plan"),
    "why": Command(_why, "why this plan, or why not another", "[not TP16]"),
    "whatif": Command(_what_if, "plan a change on the side", "CHANGE"),
    "compare": Command(
        lambda call: compare_with(call.work, call.rest, may_read_files=True),
        "beside a strategy or a plan document",
        "TP4 PP2 | FILE",
    ),
    "explain": Command(lambda call: explain_words(call.work, call.rest), "a rule or a topic", "RULE | TOPIC"),
    "history": Command(lambda call: show.history(call.work), "the requests of this chat"),
    "log": Command(
        lambda call: Outcome("show", call.shown()[-_MOST_LOGGED:], is_found=False), "what was said and shown"
    ),
    "export": Command(_export, "write the plan document", "PATH"),
    "cost": Command(_cost, "tokens, money and answers of the model"),
    "help": Command(_help, "this list"),
    "quit": Command(lambda call: Outcome("quit", say("The session is kept.") + "\n"), "end the chat"),
}
ALIASES = {
    "exit": "quit",
    "q": "quit",
    "what-if": "whatif",
    "h": "help",
    "?": "help",
    "save": "export",
    "retry": "again",
}


def run_command(name: str, call: Call) -> Outcome:
    """Run the command called `name`.

    Raises:
        InputError: there is none, and the message names the nearest; or it takes no argument and was given one.
    """
    known = ALIASES.get(name.lower(), name.lower())
    if known not in COMMANDS:
        near = difflib.get_close_matches(known[:40], [*COMMANDS, *ALIASES], n=1, cutoff=0.4)
        meant = say("did you mean /{name}? ", name=ALIASES.get(near[0], near[0])) if near else ""
        raise InputError(say("there is no command /{name}; {meant}/help lists them", name=name[:40], meant=meant))
    command = COMMANDS[known]
    if call.rest and not command.takes:
        raise InputError(say("/{name} takes no argument: leave out {rest!r}", name=known, rest=call.rest[:40]))
    return command.run(call)
