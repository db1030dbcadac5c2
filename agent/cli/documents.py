"""`validate` and `estimate`: what is done with a plan document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from ...tools.input.files import is_there
from ..report.safe import one_line
from .asking import said_of_options, takes_load, trace_of
from .flags import DASHED_INPUT, PRICE, output_format, output_format_of, own_calibration
from .load_flags import refuse_beside_trace
from .streams import STANDARD, may_style, read_stdin, text_width, write_answer, write_json, write_stdout

if TYPE_CHECKING:
    from ...tools.plan.document import Plan
    from ...tools.plan.reader import ReadDocument
    from ...tools.validate import ValidationReport

# Characters of a command line that an error shows.
_MOST_SHOWN = 100
DOCUMENT = click.argument("document", metavar="FILE", type=DASHED_INPUT)


def read_plan_text(path: Path) -> str:
    """The text of the document at `path`, `-` being standard input.

    Raises:
        InputError: it cannot be read, or is a command line.
    """
    from ...tools.plan.reader import MAX_DOCUMENT_BYTES, read_file

    if str(path) != STANDARD and not is_there(path, or_no_file=True):
        _check_no_launch(str(path), path)
    return read_stdin(MAX_DOCUMENT_BYTES) if str(path) == STANDARD else read_file(path)


def read_plan(path: Path) -> ReadDocument:
    """The document at `path` as far as it can be read.

    Raises:
        InputError: there is no JSON object in it.
    """
    return _document(read_plan_text(path), path)


def _document(text: str, path: Path) -> ReadDocument:
    from ...tools.plan.reader import read_text

    document = read_text(text)
    if document.raw is None:
        _check_no_launch(text, path)
        raise InputError(f"{title_of(path)}: {'; '.join(fault.message for fault in document.faults)}")
    return document


def _check_no_launch(text: str, path: Path) -> None:
    """Check that `text`, in place of a plan document, does not start an engine.

    Raises:
        InputError: it does.
    """
    from ...tools.importing.launch import is_launch

    if is_launch(text):
        source = '"COMMAND"' if text == str(path) else "-" if str(path) == STANDARD else "FILE"
        raise InputError(
            f"{one_line(title_of(path))[:_MOST_SHOWN]}: it starts an engine, and a plan document is expected; "
            f"shardwright import {source} -o plan.json makes one of it"
        )


def title_of(path: Path) -> str:
    """How messages and reports name the document."""
    return "standard input" if str(path) == STANDARD else click.format_filename(path)


def uri_of(path: Path) -> str | None:
    """The document as a URI: relative where its path is; `None` for standard input."""
    if str(path) == STANDARD:
        return None
    if path.is_absolute():
        return path.as_uri()
    from urllib.parse import quote

    return quote(os.fsencode(path.as_posix()))


@click.command("validate", short_help="Check plan documents against every rule.")
@click.argument("documents", metavar="FILE...", type=DASHED_INPUT, nargs=-1, required=True)
@output_format_of("text", "json", "sarif")
def validate_command(documents: tuple[Path, ...], output_format: str) -> int:
    """Check each plan document FILE against every rule; exit 1 where one breaks one, 2 where one cannot be read.

    --format sarif is what code scanners and editors read (SARIF 2.1.0). --format json is the report of the one FILE, or
    a list of all, each with its file.
    """
    from ...tools.validate import validate_read

    files: list[tuple[Path, str, ReadDocument, ValidationReport]] = []
    status = 0
    for path in dict.fromkeys(documents):
        try:
            text = read_plan_text(path)
            read = _document(text, path)
        except InputError as error:
            if len(documents) == 1:
                raise
            click.echo(f"shardwright validate: {one_line(str(error))}", err=True)
            status = error.exit_status
            continue
        report = validate_read(read)
        files.append((path, text, read, report))
        status = max(status, int(not report.valid))
    if output_format == "json":
        _write_reports([(path, report) for path, _, _, report in files], is_list=len(documents) > 1)
    elif output_format == "sarif":
        from importlib.metadata import version

        from ..report.sarif import Checked, sarif_log

        checked = [Checked(report, uri_of(path), _as_written(text, read)) for path, text, read, report in files]
        write_stdout(sarif_log(checked, version=version("shardwright")).to_json())
    else:
        from ..report.validation import render_validation

        width, bold = text_width(), may_style()
        texts = [render_validation(report, title=title_of(path), width=width, bold=bold) for path, *_, report in files]
        write_stdout("\n".join(texts))
    return status


def _write_reports(files: list[tuple[Path, ValidationReport]], *, is_list: bool) -> None:
    if not is_list:
        [(_, report)] = files
        write_json(report)
        return
    listed = [{"file": title_of(path), **json.loads(report.model_dump_json())} for path, report in files]
    write_stdout(json.dumps(listed, indent=2, ensure_ascii=False))


def _as_written(text: str, read: ReadDocument) -> str | None:
    """The text where it is the document that was read; `None` where it was prose or the compact form."""
    try:
        return text if json.loads(text) == read.raw else None
    except ValueError:
        return None


@click.command("estimate", short_help="Latency, memory and throughput of a plan document.")
@DOCUMENT
@click.option("--usd-per-gpu-hour", type=PRICE, help="Price, for the cost per million tokens.")
@own_calibration
@takes_load
@output_format
def estimate_command(
    document: Path, usd_per_gpu_hour: float | None, calibration: Path | None, output_format: str, **options: Any
) -> int:
    """Estimate latency, throughput and the memory of each GPU for the plan document FILE.

    Where the plan breaks rules the figures are of it as it stands, a line on standard error names them, and the status
    is 1.
    """
    refuse_beside_trace(options)
    read = read_plan(document)
    from ..stated.load import under_load

    plan = under_load(typed(read, document), said_of_options({**options, "trace": None}))
    from ...tools.performance.estimate import estimate

    trace = None if options["trace"] is None else trace_of(options["trace"], options)
    figures = estimate(plan, usd_per_gpu_hour, calibration, trace)
    status = status_of(read, document)
    from ..report.estimate import render_estimate

    write_answer(figures, output_format, render_estimate, title=f"Estimate of {title_of(document)}")
    return status


def status_of(read: ReadDocument, path: Path) -> int:
    """The exit status of what is told of a document as it stands: 1 where it breaks rules, named on standard error."""
    from ...tools.validate import validate_read

    violations = validate_read(read).violations
    broken = list(dict.fromkeys(finding.rule for finding in violations if finding.severity == "error"))
    if broken:
        click.echo(f"{title_of(path)} breaks {', '.join(broken)}; see shardwright validate", err=True)
    return 1 if broken else 0


def typed_plan(path: Path) -> Plan:
    """The document at `path`, which must be of the format.

    Raises:
        InputError: it is not; the first fault is named.
    """
    return typed(read_plan(path), path)


def typed_text(text: str, path: Path) -> Plan:
    """The document `text`, read from `path`, which must be of the format.

    Raises:
        InputError: it is not; the first fault is named.
    """
    return typed(_document(text, path), path)


def typed(document: ReadDocument, path: Path) -> Plan:
    """The `document`, read from `path`, which must be of the format.

    Raises:
        InputError: it is not; the first fault is named.
    """
    if document.plan is None:
        first = document.faults[0]
        more = f" and {len(document.faults) - 1} more" if len(document.faults) > 1 else ""
        raise InputError(
            f"{title_of(path)}: not a plan document: {first.path or '/'}: {first.message}{more} "
            "(shardwright validate lists them)"
        )
    return document.plan
