"""`fix` and `verify`: a proposal made valid, and the certificate of that checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from .documents import DOCUMENT, read_plan_text, title_of
from .flags import FILE, TEXT, output_format, time_limit_option
from .online_flag import online_option
from .streams import STANDARD, check_places, write_answer, write_files, write_stdout

if TYPE_CHECKING:
    from ...tools.autofix.result import FixResult


@click.command("fix", short_help="Repair a proposal until it keeps every rule.")
@DOCUMENT
@click.option("-o", "--output", type=FILE, help="Write the valid plan to this file.")
@click.option("--request", type=TEXT, help="What was asked, for what FILE leaves out: model, hardware, load.")
@click.option("--safe-only", is_flag=True, help="Make only fixes that keep the meaning.")
@click.option(
    "--keep-strategy", is_flag=True, help="Where strategy block and graph differ, rebuild the graph, not the block."
)
@click.option("--rule", "rules", multiple=True, metavar="ID", help="Mend only what this rule finds; may be repeated.")
@click.option("--diff", is_flag=True, help="Print the change as a unified diff instead.")
@click.option("--certificate", type=FILE, help="Write what `verify` replays to this file.")
@time_limit_option()
@online_option
@output_format
def fix_command(
    document: Path,
    output: Path | None,
    request: str | None,
    output_format: str,
    **options: Any,
) -> int:
    """Repair FILE: a plan document, or any text with a proposal in it; exit 1 where it cannot be made valid.

    Each fix is listed with its rule and its JSON Patch. Nothing is written unless the result is valid.

    \b
      shardwright fix draft.json -o plan.json
      shardwright fix answer.txt --request "Llama-3.1-70B on 8 H100, 2k in / 256 out" --diff
    """
    certificate: Path | None = options["certificate"]
    if options["diff"] and output_format == "json":
        raise click.UsageError("--diff prints text: leave out --format json")
    # A document may be repaired in its place, and not be replaced by the certificate.
    check_places({"-o": output, "--certificate": certificate})
    check_places({"--certificate": certificate}, [document])
    text = read_plan_text(document)
    if not text.strip():
        raise InputError(f"{title_of(document)}: empty; give a plan document, or a text with a proposal in it")
    from ...tools.autofix.autofix import Chosen, read_text_anyhow
    from ..fix_api import fixed

    chosen = Chosen.of(options["rules"] or None, safe_only=options["safe_only"], keep_strategy=options["keep_strategy"])
    result = fixed(read_text_anyhow(text), request, chosen, options["time_limit"])
    contents: dict[Path, str | None] = {}
    if certificate is not None and result.document is None:
        click.echo("shardwright fix: no certificate is written: nothing was read that could be repaired", err=True)
    elif certificate is not None:
        from ...tools.autofix.result import certificate as certificate_of

        contents[certificate] = json.dumps(certificate_of(text, result), indent=1) + "\n"
    if output is not None:
        contents[output] = json.dumps(result.document, indent=2, ensure_ascii=False) + "\n" if result.valid else None
    write_files(contents, lambda _: _print(result, title_of(document), output_format, diff=options["diff"]))
    return 0 if result.valid else 1


def _print(result: FixResult, title: str, output_format: str, *, diff: bool) -> None:
    from ..report.fix import diff_text, render_fix

    if diff:
        change = diff_text(result.read, result.document, old=f"{title} as read", new=f"{title} fixed")
        if change:
            write_stdout(change)
    else:
        write_answer(result, output_format, render_fix, title=title)


@click.command("verify", short_help="Check the certificate of a repair.")
@click.argument("certificate", metavar="FILE", type=FILE)
@click.argument("plan", metavar="[PLAN]", type=FILE, required=False)
@output_format
def verify_command(certificate: Path, plan: Path | None, output_format: str) -> int:
    """Replay the certificate FILE that `fix --certificate` wrote; exit 1 where it does not hold.

    It checks every hash, applies every patch to what was read, and validates the plan in which they end. PLAN is
    the file that `fix -o` wrote: it has to hold that plan.
    """
    if STANDARD in (str(certificate), str(plan)):
        raise InputError("verify reads files: name them")
    from ...tools.verify import verify_file
    from ..report.fix import render_verification

    replay = verify_file(certificate, plan)
    write_answer(replay, output_format, render_verification, title=click.format_filename(certificate))
    return replay.exit_status
