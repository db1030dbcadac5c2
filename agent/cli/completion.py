"""`completion SHELL`: the script that makes the shell complete commands and options."""

from __future__ import annotations

import click

from .streams import write_stdout

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "shardwright"
COMPLETE_VARIABLE = f"_{PROGRAM.upper()}_COMPLETE"


@click.command("completion", short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> int:
    """Print the completion script of SHELL.

    \b
      bash:  source <(shardwright completion bash)
      zsh:   source <(shardwright completion zsh)
      fish:  shardwright completion fish > ~/.config/fish/completions/shardwright.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # SHELLS are click's own
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    write_stdout(kind(root, {}, PROGRAM, COMPLETE_VARIABLE).source())
    return 0
