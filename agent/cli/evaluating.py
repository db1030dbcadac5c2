"""`eval`: how good a proposer is, on cases whose right answers are known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError, ServiceError
from .endpoint_flags import endpoint_flags, endpoint_options
from .flags import COUNT, DASHED_INPUT, FILE, INPUT, TEXT, calibration_option, output_format
from .online_flag import online_option
from .streams import STANDARD, check_places, may_style, read_stdin, text_width, write_files, write_stdout

if TYPE_CHECKING:
    from ..evaluation.dataset import Dataset
    from ..evaluation.evaluate import Evaluation
    from ..evaluation.run import RunOptions
    from ..evaluation.solver import Solver
    from ..loop.agent_options import AgentOptions

_BAR = "RUNG=PERCENT"
_OUTPUTS = ("output", "html", "junit")


@click.command("eval", short_help="Score a proposer on cases whose right answers are known.")
@click.argument("dataset", metavar="[DATASET]", required=False, type=DASHED_INPUT)
@click.option(
    "--solver",
    "solver_name",
    type=TEXT,
    default="builtin",
    show_default=True,
    help="Who proposes: builtin, live (an endpoint), cassette:FOLDER, scripted:FILE, golden, careless, stubborn, "
    "student, obedient, opener, supposer, unconnected.",
)
@click.option("--epochs", type=COUNT, default=1, show_default=True, help="How often each case is run.")
@click.option("--only", type=TEXT, help="Only cases with this in their id, family or tags.")
@click.option("--jobs", type=COUNT, help="Processes.  [default: one for each core]")
@click.option("-o", "--output", type=FILE, help="Write the JSON report to this file.")
@click.option("--html", type=FILE, help="Write the report as a page, with every case.")
@click.option("--junit", type=FILE, help="Write the report as JUnit XML.")
@click.option("--journal", type=FILE, help="Keep finished cases in this file; the same call goes on from there.")
@click.option("--baseline", type=INPUT, help="Compare with this JSON report; exit 1 where this run is worse.")
@click.option(
    "--fail-under", metavar=_BAR, multiple=True, help="Exit 1 where a rung (or `solved`) is below; repeatable."
)
@click.option("--record", type=FILE, help="With --solver live: keep the exchanges in this folder, as cassettes.")
@click.option(
    "--ablate", type=TEXT, help="Run variants and compare them: feedback, knowledge, fixers, reference, samples."
)
@click.option(
    "--mutants", is_flag=True, help="Damage goldens, to test rules and harness.  [always with the shipped cases]"
)
@click.option("--feedback", type=click.Choice(["none", "bit", "codes", "full", "patch"]), help="What a model is told.")
@click.option("--no-fixes", is_flag=True, help="Repair nothing.")
@click.option("--corrections", type=click.IntRange(0, 100), help="Proposals that a model may make after its first.")
@click.option("--knowledge-tokens", type=click.IntRange(0), help="Knowledge that a model is given.")
@calibration_option(
    "The proposer searches by these constants; it is judged by those that ship.", from_environment=False
)
@endpoint_options
@online_option
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
    _check_ablation(options, places, bars)
    check_places(
        {"-o": places["output"], "--html": places["html"], "--junit": places["junit"], "--journal": options["journal"]},
        [dataset, options["calibration"]],
    )
    cases = _cases(dataset)
    if options["only"]:
        cases = cases.only(options["only"])
    for note in cases.notes:
        click.echo(f"{cases.name}: {note}", err=True)
    solver = _solver(options, cases.digest)
    from ..evaluation.run import RunOptions
    from .progress import progress

    run = RunOptions(
        epochs=options["epochs"],
        jobs=options["jobs"],
        journal=options["journal"],
        with_detail=places["html"] is not None,
    )
    if options["ablate"] is not None:
        return _ablate(cases, solver, options["ablate"], run, places["output"], output_format)
    from ..evaluation.evaluate import run_evaluation

    with _goes_on(run.journal), progress(cases, run.epochs) as on_done:
        evaluation = run_evaluation(
            cases,
            solver,
            run,
            baseline=options["baseline"],
            with_mutants=options["mutants"] or (dataset is None and not options["only"]),
            on_done=on_done,
        )
    missed = [line for line in (_missed(evaluation, *bar) for bar in bars) if line]
    if evaluation.is_unanswered:
        raise ServiceError(f"the model answered in no case: {evaluation.first_fault}")
    _write(evaluation, places, output_format)
    for line in missed:
        click.echo(line, err=True)
    comparison = evaluation.summary.comparison
    is_worse = comparison is not None and bool(comparison.regressions)
    return 1 if missed or is_worse or evaluation.summary.faults else 0


@contextmanager
def _goes_on(journal: Path | None) -> Iterator[None]:
    """Says where finished cases are kept when a person ends the run."""
    try:
        yield
    except KeyboardInterrupt:
        if journal is None:
            raise
        raise KeyboardInterrupt(f"finished cases are kept in {journal}: the same call goes on from there") from None


def _cases(place: Path | None) -> Dataset:
    """The cases at `place`, of standard input, or those that ship.

    Raises:
        InputError: they cannot be read, or are none.
    """
    from ..evaluation.dataset import MAX_FILE_BYTES, dataset_of_text, read_dataset

    if place is None or str(place) != STANDARD:
        return read_dataset(place)
    return dataset_of_text(read_stdin(MAX_FILE_BYTES), "standard input")


def _check_ablation(options: dict[str, Any], places: dict[str, Path | None], bars: list[tuple[str, float]]) -> None:
    """Refuse what an ablation would not do: it compares its own variants, and has a report of its own.

    Raises:
        InputError: the call asks for it.
    """
    asked = {"html": places["html"], "junit": places["junit"], "baseline": options["baseline"], "fail-under": bars}
    unfit = [f"--{name}" for name, value in asked.items() if value]
    if options["ablate"] is not None and unfit:
        raise InputError(f"--ablate sets variants side by side and knows no {' or '.join(unfit)}; leave that out")


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


def _missed(evaluation: Evaluation, name: str, share: float) -> str | None:
    """A line that says so if a rung is below its bar at the end."""
    summary = evaluation.summary
    if name == "solved":
        reached = summary.solved / summary.cases
    else:
        rate = summary.rungs.get(name, {}).get("final")
        if rate is None:
            return f"--fail-under {name}: no case of the dataset has this rung"
        reached = rate.rate
    return None if reached >= share else f"{name}: {reached:.1%} is below {share:.1%}"


def _solver(options: dict[str, Any], dataset_hash: str) -> Solver:
    """The solver that the call names.

    Raises:
        InputError: there is no such solver, or it takes no such option.
    """
    from ..evaluation.solvers.named import SolverSpec, solver_named

    calibration = options["calibration"]
    if calibration is not None:
        from ...tools.calibration.custom import read_calibration

        calibration = read_calibration(calibration)
    return solver_named(
        SolverSpec(
            name=options["solver_name"],
            options=_agent_options(options),
            flags=endpoint_flags(options),
            record=options["record"],
            dataset_hash=dataset_hash,
            calibration=calibration,
        )
    )


def _agent_options(options: dict[str, Any]) -> AgentOptions | None:
    """The options of the agent that the call states; `None` where it states none."""
    from msgspec.structs import replace

    stated = {name: options[name] for name in ("feedback", "knowledge_tokens") if options[name] is not None}
    if options["no_fixes"]:
        stated["repairs"] = False
    if not stated and options["corrections"] is None:
        return None
    from ..loop.agent_options import AgentOptions

    chosen = replace(AgentOptions(), **stated)
    if options["corrections"] is None:
        return chosen
    return replace(chosen, limits=chosen.limits.model_copy(update={"corrections": options["corrections"]}))


def _ablate(cases: Dataset, solver: Solver, name: str, run: RunOptions, output: Path | None, output_format: str) -> int:
    """Run the variants of an ablation and report them side by side."""
    from ..evaluation.ablations.ablate import ablate
    from ..evaluation.report.ablation import render_ablation
    from ..evaluation.results import CaseResult
    from ..evaluation.run import run_dataset
    from .progress import progress

    def run_variant(dataset: Dataset, variant: Solver) -> tuple[CaseResult, ...]:
        with _goes_on(run.journal), progress(dataset, run.epochs) as on_done:
            return tuple(finished.result for finished in run_dataset(dataset, variant, run, on_done))

    ablation = ablate(cases, solver, name, run_variant)
    report = ablation.model_dump_json(indent=1)
    text = report if output_format == "json" else render_ablation(ablation, width=text_width(), bold=may_style())
    write_files({} if output is None else {output: report + "\n"}, lambda _: write_stdout(text))
    return 1 if any(variant.faults for variant in ablation.variants) else 0


def _write(evaluation: Evaluation, places: dict[str, Path | None], output_format: str) -> None:
    import json

    report = json.dumps(evaluation.model_dump(mode="json"), ensure_ascii=False, indent=1)
    contents: dict[Path, str] = {}
    if places["output"] is not None:
        contents[places["output"]] = report + "\n"
    if places["html"] is not None:
        from ..evaluation.report.page import render_page

        contents[places["html"]] = render_page(evaluation.summary, evaluation.kept)
    if places["junit"] is not None:
        from ..evaluation.report.junit import render_junit

        contents[places["junit"]] = render_junit(evaluation.summary.header, evaluation.kept)
    write_files(contents, lambda _: _print(evaluation, report, output_format))


def _print(evaluation: Evaluation, report: str, output_format: str) -> None:
    if output_format == "json":
        write_stdout(report)
    else:
        from ..evaluation.report.text import render_summary

        write_stdout(render_summary(evaluation.summary, evaluation.kept, width=text_width(), bold=may_style()))
