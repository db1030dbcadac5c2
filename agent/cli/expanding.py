"""`expand`: a plan document unrolled to every operator on every GPU, as a report, a graph or a file of either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...tools.errors import InputError
from .documents import DOCUMENT, read_plan, status_of, title_of, typed
from .flags import FILE, output_format
from .streams import STANDARD, check_places, is_standard, may_style, text_width, write_files, write_stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...tools.performance.execution import ExecutionDAG
    from ...tools.plan.document import Phase, Plan

_ENDINGS = {".json": "json", ".dot": "dot", ".gv": "dot", ".svg": "svg", ".txt": None, "": None}


@click.command("expand", short_help="The operator-level execution DAG of each phase.")
@DOCUMENT
@click.option("--phase", type=click.Choice(["prefill", "decode"]), help="Only this phase; both if left out.")
@click.option("--fold/--no-fold", default=False, show_default=True, help="Write a run of like layers once.")
@click.option("--dot", "form", flag_value="dot", help="Write the graph in Graphviz's DOT instead.")
@click.option("--svg", "form", flag_value="svg", help="Write the graph as an SVG picture instead.")
@click.option("-o", "--output", type=FILE, help="Write to this file; .json, .dot and .svg say in which form.")
@output_format
def expand_command(
    document: Path, phase: Phase | None, fold: bool, form: str | None, output: Path | None, output_format: str
) -> int:
    """Unroll the plan document FILE to every operator on every GPU: one prefill pass, one decode step.

    Where the plan breaks rules it is unrolled as it stands, a line on standard error names them, and the status is 1.
    """
    check_places({"-o": output}, [document])
    if form is None:
        form = "json" if output_format == "json" else _form_of(output)
    read = read_plan(document)
    plan = typed(read, document)
    from ...tools.performance.execution import expand_plan
    from ...tools.plan.document import PHASES

    phases = PHASES if phase is None else (phase,)
    dags = [expand_plan(plan, name, fold=fold) for name in phases]
    if form is None and output is None:
        from ..report.execution import render_execution

        title = f"Execution DAG of {title_of(document)}"
        write_stdout(render_execution(dags, title=title, width=text_width(), bold=may_style()))
    else:
        text = _expanded(dags, form, plan, f"Execution DAG of {title_of(document)}")
        write_files({output or Path(STANDARD): f"{text.rstrip()}\n"}, lambda _: None)
    return status_of(read, document)


def _form_of(output: Path | None) -> str | None:
    """The form that the ending of a file names; `None` for the report.

    Raises:
        InputError: no form has that ending.
    """
    ending = "" if output is None or is_standard(output) else output.suffix.lower()
    if output is not None and ending not in _ENDINGS:
        known = ", ".join(filter(None, _ENDINGS))
        raise InputError(f"-o {output.name!r}: the form is not clear: end it in one of {known}, or name the form")
    return _ENDINGS[ending]


def _expanded(dags: Sequence[ExecutionDAG], form: str | None, plan: Plan, title: str) -> str:
    """The DAGs in a form of file; the report where none is named."""
    if form == "dot":
        from ...tools.performance.execution_dot import dot_lines

        return "\n".join(dot_lines(dags))
    if form == "svg":
        from ...tools.performance.execution_svg import execution_svg
        from ...tools.plan.describe import describe

        return execution_svg(dags, f"Execution of {plan.model.name} ({describe(plan.strategy)})")
    if form == "json":
        from ..facts import Expansion

        expansion = dags[0] if len(dags) == 1 else Expansion(prefill=dags[0], decode=dags[1])
        return expansion.model_dump_json(indent=2)
    from ..report.execution import render_execution

    return render_execution(dags, title=title, width=text_width())
