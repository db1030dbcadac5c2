"""`show`: a plan document as a picture, a page, a timeline, or text that other programs draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from ...tools.errors import InputError
from .documents import DOCUMENT, read_plan
from .flags import FILE, output_format, with_options
from .streams import STANDARD, check_places, is_standard, write_files, write_json, write_stdout

if TYPE_CHECKING:
    from ...tools.plan.document import Phase
    from ...tools.plan.reader import ReadDocument


class Form(Struct, frozen=True):
    """A form of picture: what it is, the endings of its files, and what writes it of a document and a phase."""

    help: str
    endings: tuple[str, ...]
    write: Callable[[ReadDocument, Phase | None], str | bytes]


def _svg(read: ReadDocument, phase: Phase | None) -> str:
    from ...tools.draw.svg import svg

    return svg(read.raw, phase=phase)


def _png(read: ReadDocument, phase: Phase | None) -> bytes:
    from ...tools.draw.svg import png

    return png(_svg(read, phase))


def _html(read: ReadDocument, phase: Phase | None) -> str:
    from ...tools.show.page import page

    return page(read, phase)


def _mermaid(read: ReadDocument, phase: Phase | None) -> str:
    from ...tools.draw.mermaid import mermaid

    return mermaid(read.raw, phase=phase)


def _dot(read: ReadDocument, phase: Phase | None) -> str:
    from ...tools.draw.dot import dot

    return dot(read.raw, phase=phase)


def _timeline(read: ReadDocument, phase: Phase | None) -> str:
    from ...tools.show.timeline import chrome_trace

    return chrome_trace(read.view, phase)


FORMS: Mapping[str, Form] = {
    "svg": Form("A picture.", (".svg",), _svg),
    "png": Form("A picture in dots (needs the extra plot).", (".png",), _png),
    "html": Form("A page to click through, without a network: plan, timeline, cluster.", (".html", ".htm"), _html),
    "mermaid": Form("A Mermaid flowchart, for a README.", (".mmd", ".mermaid"), _mermaid),
    "dot": Form("Graphviz's DOT.", (".dot", ".gv"), _dot),
    "timeline": Form("A Chrome trace (JSON) of both phases, for ui.perfetto.dev.", (".json",), _timeline),
}


def _with_forms(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (click.option(f"--{name}", is_flag=True, help=form.help) for name, form in FORMS.items())
    return with_options(command, options)


@click.command("show", short_help="A plan document as a picture, a page or a timeline.")
@DOCUMENT
@_with_forms
@click.option("--phase", type=click.Choice(["prefill", "decode"]), help="Only this phase; both if left out.")
@click.option("-o", "--output", type=FILE, help="Write to this file; its ending says in which form.")
@output_format
def show_command(
    document: Path, phase: Phase | None, output: Path | None, output_format: str, **forms: bool
) -> int:  # fmt: skip
    """Draw the plan document FILE, broken or not; without a form, list what is in it.

    \b
      shardwright show plan.json -o plan.html
      shardwright show plan.json --svg > plan.svg
      shardwright show plan.json --timeline -o trace.json
    """
    check_places({"-o": output}, [document])
    form = _form_of([name for name, is_asked in forms.items() if is_asked], output)
    if form is not None and output_format == "json":
        raise click.UsageError("--format json is of the list without a form: leave one of them out")
    read = read_plan(document)
    if form is not None:
        write_files({output or Path(STANDARD): form.write(read, phase)}, lambda _: None)
    elif output_format == "json":
        from ...tools.show.page import page_data

        write_json(page_data(read, phase))
    else:
        from ...tools.draw.outline import outline

        write_stdout(outline(read.raw, phase=phase))
    return 0


def _form_of(asked: list[str], output: Path | None) -> Form | None:
    """The form that is asked for, by name or by the ending of the file; `None` if the list is.

    Raises:
        UsageError: two are.
        InputError: the ending is none of a form.
    """
    if len(asked) > 1:
        raise click.UsageError(f"one form at a time: {' or '.join(f'--{name}' for name in asked)}")
    if asked or output is None or is_standard(output):
        return FORMS[asked[0]] if asked else None
    for form in FORMS.values():
        if output.suffix.lower() in form.endings:
            return form
    endings = ", ".join(form.endings[0] for form in FORMS.values())
    raise InputError(f"-o {output.name!r}: the form is not clear: end it in one of {endings}, or name the form")
