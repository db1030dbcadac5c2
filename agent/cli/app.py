"""The command group, and the one place where errors become a line on stderr and an exit status.

Exit statuses: 0 done and valid; 1 the answer is no; 2 the call or the input is wrong; 3 a service that was asked for
failed; 130 interrupted. Any other error is a bug and keeps its traceback.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise

import click

from ...tools.errors import InputError, ShardwrightError
from ..hub.online import online
from ..report.safe import short_line
from .calibration import calibrate_command, measure_command
from .catalogues import hardware_command, models_command, rules_command, schema_command
from .chat import chat_command
from .compare import compare_command
from .completion import COMPLETE_VARIABLE, PROGRAM, completion_command
from .doctor import doctor_command
from .documents import estimate_command, validate_command
from .evaluating import eval_command
from .expanding import expand_command
from .explain import explain_command
from .exporting import export_command
from .fidelity import fidelity_command
from .fixing import fix_command, verify_command
from .importing import import_command
from .mcp import mcp_command
from .planning import plan_command
from .process import EXIT_INTERRUPTED, interrupts, unwritten
from .progress import shown_work
from .replay import replay_command
from .search import search_command
from .serving import serve_command
from .showing import show_command
from .sweep import sweep_command

# The line that a terminal shows while a slow command runs; commands that show it themselves are not here.
_DOES = {
    "plan": "planning", "search": "searching", "validate": "checking every rule", "fix": "repairing",
    "verify": "replaying the certificate", "estimate": "estimating", "expand": "unrolling", "show": "drawing",
    "compare": "comparing", "export": "exporting", "import": "importing", "fidelity": "predicting rows",
    "measure": "timing kernels", "calibrate": "fitting", "replay": "replaying", "doctor": "asking the endpoint",
}  # fmt: skip
# Words that begin with a dash: an item of a list, or a rule above the front matter of a page.
_DASHED_WORDS = re.compile(r"-(?:-*\s|[^\s-][^=]*\s)")


class OrderedGroup(click.Group):
    """A group that lists its commands in the order of work, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names as they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` name; one that states an option of one value twice is refused.

        Raises:
            click.UsageError: there is no such command, or it is called wrongly.
        """
        name, command, remaining = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # words to complete are no call yet
            _refuse_repeated(command, command.context_class(command, ctx, name, **command.context_settings), remaining)
        return name, command, remaining


@click.group(
    cls=OrderedGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> int:
    """Plan how to split a large language model over GPUs for serving, and prove that the plan is legal.

    \b
      shardwright plan "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency" -o plan.json
      shardwright validate plan.json
      shardwright fix answer.txt -o plan.json
      shardwright estimate plan.json

    Every command takes --format json for programs. "-" is standard input, as -o FILE standard output.
    Exit status: 0 done and valid, 1 the answer is no, 2 the call or the input is wrong, 3 a service failed.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return 0


for _command in (
    plan_command,
    chat_command,
    search_command,
    validate_command,
    fix_command,
    verify_command,
    estimate_command,
    expand_command,
    show_command,
    compare_command,
    export_command,
    import_command,
    serve_command,
    sweep_command,
    eval_command,
    fidelity_command,
    measure_command,
    calibrate_command,
    models_command,
    hardware_command,
    rules_command,
    explain_command,
    schema_command,
    mcp_command,
    replay_command,
    doctor_command,
    completion_command,
):
    cli.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command (`arguments` or the process's own) and return its exit status; errors are one line on stderr."""
    try:
        status = _run(sys.argv[1:] if arguments is None else [*arguments])
        failure = unwritten()
        return status if failure is None else _refuse(PROGRAM, failure, 2)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else PROGRAM
        return _refuse(where, f"{error.format_message()} (see: {where} --help)", 2)
    except click.ClickException as error:
        return _refuse(PROGRAM, error.format_message(), 2)
    except KeyboardInterrupt as interrupt:
        # What was interrupted may say what is kept of it.
        return _interrupted("; ".join(("interrupted", *map(str, interrupt.args))))
    except Exception as error:  # an interrupt that a library turned into an error of its own
        if interrupts.is_pending:
            return _interrupted("interrupted")
        if isinstance(error, ShardwrightError):
            return _refuse(PROGRAM, str(error), error.exit_status)
        raise


def _interrupted(message: str) -> int:
    _refuse(PROGRAM, message, EXIT_INTERRUPTED)
    interrupts.taken()
    return EXIT_INTERRUPTED


def _run(arguments: list[str]) -> int:
    # Not click's own `main`, which has another line for an interrupt and another status for a closed pipe.
    instruction = os.environ.get(COMPLETE_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete

        try:
            return shell_complete(cli, {}, PROGRAM, COMPLETE_VARIABLE, instruction)
        except (KeyError, ValueError):  # of the words to complete
            raise InputError(f"{COMPLETE_VARIABLE} is set, and what else a shell says with it is not") from None
    try:
        words = _DOES.get(arguments[0]) if arguments else None
        line = nullcontext() if words is None else shown_work(words)
        with online(), cli.make_context(PROGRAM, _with_words_apart(arguments)) as context, line:
            return cli.invoke(context)
    except click.exceptions.Exit as shown:  # help, or the version
        return shown.exit_code


def _with_words_apart(arguments: list[str]) -> list[str]:
    """The arguments with a blank before words that begin with a dash, which no option has: "- Qwen3-32B on 4 H100"."""
    command = cli.commands.get(arguments[0]) if arguments else None
    if command is None:
        return arguments
    options = [option for option in command.params if isinstance(option, click.Option)]
    names = {name for option in options for name in (*option.opts, "-h")}
    valued = {name for option in options if not option.is_flag for name in option.opts}
    return [
        f" {word}" if _DASHED_WORDS.match(word) and word[:2] not in names and before not in valued else word
        for before, word in pairwise(["", *arguments])
    ]


def _refuse_repeated(command: click.Command, context: click.Context, arguments: list[str]) -> None:
    """Refuse an option of one value that is stated more than once: click would take the last and drop the others."""
    _, _, stated = command.make_parser(context).parse_args([*arguments])
    for option, times in Counter(stated).items():
        has_one = isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
        if has_one and times > 1:
            message = f"{option.opts[0]} is stated {times} times and has one value; state it once"
            raise click.UsageError(message, context)


def _refuse(where: str, message: str, status: int) -> int:
    click.echo(f"{where}: {short_line(message)}", err=True)
    return status
