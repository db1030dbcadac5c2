"""`eval`: how good a proposer is, on cases whose right answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from .endpoint_flags import endpoint_flags, endpoint_options
from .flags import COUNT, TEXT, calibration_option, output_format
from .streams import check_place, may_style, text_width, write_file, write_stdout

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..evaluation.solver import Solver

_BAR = "RUNG=PERCENT"
_OUTPUTS = ("output", "html", "junit")
PATH = click.Path(path_type=Path)


@click.command("eval", short_help="Score a proposer on cases whose right answers are known.")
@click.argument("dataset", metavar="[DATASET]", required=False, type=PATH)
@click.option(
    "--solver",
    "solver_name",
    type=TEXT,
    default="builtin",
    show_default=True,
    help="Who proposes: builtin, live (an endpoint), cassette:FOLDER, scripted:FILE, golden, careless, stubborn, student.",
)
@click.option("--epochs", type=COUNT, default=1, show_default=True, help="How often each case is run.")
@click.option("--only", type=TEXT, help="Only cases with this in their id, family or tags.")
@click.option("--jobs", type=COUNT, help="Processes.  [default: one for each core]")
@click.option("-o", "--output", type=PATH, help="Write the JSON report to this file.")
@click.option("--html", type=PATH, help="Write the report as a page, with every case.")
@click.option("--junit", type=PATH, help="Write the report as JUnit XML.")
@click.option("--journal", type=PATH, help="Keep finished cases in this file; the same call goes on from there.")
@click.option("--baseline", type=PATH, help="Compare with this JSON report; exit 1 where this run is worse.")
@click.option(
    "--fail-under", metavar=_BAR, multiple=True, help="Exit 1 where a rung (or `solved`) is below; repeatable."
)
@click.option("--record", type=PATH, help="With --solver live: keep the exchanges in this folder, as cassettes.")
@click.option("--ablate", type=TEXT, help="Run variants and compare them: feedback, knowledge, fixers, samples.")
@click.option("--feedback", type=click.Choice(["none", "bit", "codes", "full", "patch"]), help="What a model is told.")
@click.option("--no-fixes", is_flag=True, help="Repair nothing.")
@click.option("--corrections", type=click.IntRange(0, 100), help="Proposals that a model may make after its first.")
@click.option("--knowledge-tokens", type=click.IntRange(0), help="Knowledge that a model is given.")
@calibration_option(
    "The proposer searches by these constants; it is judged by those that ship.", from_environment=False
)
@endpoint_options
@output_format
def eval_command(dataset: Path | None, output_format: str, **options: Any) -> int:
    """Score a proposer on DATASET: a file or folder of cases; without one, on the cases that ship.

    \b
      {"request": "Serve Llama-3.1-70B on 8 H100, 2k in, 256 out, lowest latency", "strategy": "TP8"}
      {"request": "Serve Qwen3-30B-A3B on 4 A100, best throughput", "strategy": {"dp": 2, "tp": 2}}

    is a dataset: one JSON object a line. Exit 1 where the baseline was better, or a rung is below its bar.
    """
    bars = [_bar(text) for text in options.pop("fail_under")]
    places = {name: options.pop(name) for name in _OUTPUTS}
    for place in places.values():
        if place is not None:
            check_place(place)
    from ..evaluation.dataset import read_dataset

    cases = read_dataset(dataset)
    if options["only"]:
        cases = cases.only(options["only"])
    for note in cases.notes:
        click.echo(f"{cases.name}: {note}", err=True)
    solver = _solver(options)
    if options["ablate"]:
        return _ablate(cases, solver, options, places["output"], output_format)
    from ..evaluation.evaluate import evaluate
    from ..evaluation.run import RunOptions
    from .progress import progress

    run = RunOptions(
        epochs=options["epochs"],
        jobs=options["jobs"],
        journal=options["journal"],
        with_detail=places["html"] is not None,
    )
    with progress(len(cases.cases) * run.epochs) as advance:
        found = evaluate(cases, solver, run, baseline=options["baseline"], on_done=lambda _: advance())
    missed = [line for line in (_missed(found, *bar) for bar in bars) if line]
    _write(found, places, output_format)
    for line in missed:
        click.echo(line, err=True)
    comparison = found.summary.comparison
    is_worse = comparison is not None and bool(comparison.regressions)
    return 1 if missed or is_worse or found.summary.faults else 0


def _bar(text: str) -> tuple[str, float]:
    """`rules=95` as a rung and a share.

    Raises:
        InputError: it is not of that form, or there is no such rung.
    """
    from ..evaluation.rungs.ladder import RUNG_NAMES

    name, sign, figure = text.partition("=")
    known = ("solved", *RUNG_NAMES)
    if name not in known:
        raise InputError(f"--fail-under {text[:60]!r}: no rung of that name; there are {', '.join(known)}")
    try:
        share = float(figure.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not sign or not 0 <= share <= 1:
        raise InputError(f"--fail-under {text[:60]!r}: write {_BAR}, with 0 to 100 percent")
    return name, share


def _missed(found: Evaluation, name: str, share: float) -> str | None:
    """What to say where a rung is below its bar at the end."""
    summary = found.summary
    if name == "solved":
        reached = summary.solved / summary.cases
    else:
        rate = summary.rungs.get(name, {}).get("final")
        if rate is None:
            return f"--fail-under {name}: no case of the dataset has this rung"
        reached = rate.rate
    return None if reached >= share else f"{name}: {reached:.1%} is below {share:.1%}"


def _solver(options: dict[str, Any]) -> Solver:
    from ..evaluation.solvers.named import SolverSpec, solver_named

    return solver_named(
        SolverSpec(
            name=options.pop("solver_name"),
            endpoint=endpoint_flags(options),
            record=options.pop("record"),
            calibration=options.pop("calibration"),
            feedback=options.pop("feedback"),
            repairs=not options.pop("no_fixes"),
            corrections=options.pop("corrections"),
            knowledge_tokens=options.pop("knowledge_tokens"),
        )
    )


def _write(found: Evaluation, places: dict[str, Path | None], output_format: str) -> None:
    import json

    report = json.dumps(found.summary.document(found.kept), ensure_ascii=False, indent=1)
    if places["output"] is not None:
        write_file(places["output"], report + "\n")
    if places["html"] is not None:
        from ..evaluation.report.page import page

        write_file(places["html"], page(found.summary, found.kept))
    if places["junit"] is not None:
        from ..evaluation.report.junit import junit

        write_file(places["junit"], junit(found.summary, found.kept))
    if output_format == "json":
        write_stdout(report)
    else:
        from ..evaluation.report.text import render_summary

        write_stdout(render_summary(found.summary, found.kept, width=text_width(), bold=may_style()))
