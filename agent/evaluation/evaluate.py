"""An evaluation from dataset to summary, for the command and the library."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import model_serializer

from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.input.arguments import checks_arguments
from ..runs.awaited import awaited
from .baseline import Baseline, read_baseline
from .comparison import Comparison, compare_runs, same_cases
from .coverage import coverage_of
from .dataset import Dataset, read_dataset
from .mutation import mutation_score
from .report.summary import Summary, summed_up
from .results import CaseResult, Header, Kept
from .run import RunOptions, run_dataset
from .solver import Solver
from .solvers.named import SolverSpec, solver_named


class Evaluation(Frozen):
    """A finished evaluation: its summary, and every case of it. Dumped it is the JSON report of the command."""

    summary: Summary
    kept: tuple[Kept, ...]

    @model_serializer
    def _document(self) -> dict[str, Any]:
        return self.summary.document(self.kept)

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """What came of every case, in each epoch."""
        return tuple(record.result for record in self.kept)

    @property
    def is_unanswered(self) -> bool:
        """Whether a model was asked and could not be reached in any case."""
        asked = [result for result in self.results if result.status]
        return bool(asked) and all(result.status == "endpoint_failed" and not result.spent.turns for result in asked)

    @property
    def first_fault(self) -> str:
        """What the first case says of why its model could not be reached."""
        faults = (record.model_fault for record in self.kept if record.model_fault is not None)
        return next(faults, "no reason is known")


@checks_arguments
def evaluate(
    dataset: Dataset | Path | str | None = None,
    solver: Solver | str = "builtin",
    *,
    epochs: int = 1,
    jobs: int | None = None,
    baseline: Path | str | None = None,
) -> Evaluation:
    """How good a proposer is on cases whose right answers are known.

    Args:
        dataset: A file or a folder of cases; those that ship where it is `None`.
        solver: Who proposes: a name, as `eval --solver` takes it, or your own.
        epochs: How often each case is run.
        jobs: Worker processes; one a core where it is `None`, 1: this process.
        baseline: A JSON report to compare with.

    Raises:
        InputError: Dataset, solver or baseline cannot be read or used.

    Example:
        >>> import shardwright, tempfile, pathlib
        >>> cases = pathlib.Path(tempfile.mkdtemp(), "cases.jsonl")
        >>> _ = cases.write_text('{"request": "Llama-3.2-1B on 2 L4, 512 in / 32 out", "strategy": "TP2"}')
        >>> [one.passed("strategy") for one in shardwright.evaluate(cases, jobs=1).results]
        [True]
    """
    cases = dataset if isinstance(dataset, Dataset) else read_dataset(None if dataset is None else Path(dataset))
    chosen = solver_named(SolverSpec(solver, dataset_hash=cases.digest)) if isinstance(solver, str) else solver
    if epochs < 1 or (jobs is not None and jobs < 1):
        raise InputError(f"epochs={epochs}, jobs={jobs}: at least 1 of each is needed")
    place = None if baseline is None else Path(baseline)
    with_mutants = dataset is None
    return run_evaluation(
        cases, chosen, RunOptions(epochs=epochs, jobs=jobs), baseline=place, with_mutants=with_mutants
    )


async def aevaluate(
    dataset: Dataset | Path | str | None = None,
    solver: Solver | str = "builtin",
    *,
    epochs: int = 1,
    jobs: int | None = None,
    baseline: Path | str | None = None,
) -> Evaluation:
    """As `evaluate`, awaited; where the task is cancelled no further case is begun and worker processes are ended.

    Raises:
        InputError: as `evaluate`.
    """
    return await awaited(lambda: evaluate(dataset, solver, epochs=epochs, jobs=jobs, baseline=baseline))


def run_evaluation(
    dataset: Dataset,
    solver: Solver,
    options: RunOptions,
    *,
    baseline: Path | None = None,
    with_mutants: bool = False,
    on_done: Callable[[Kept], None] | None = None,
) -> Evaluation:
    """Run `solver` over `dataset` and summarise; compare with the report at `baseline`, if given.

    `with_mutants` damages goldens of the dataset too, to count how many the rules catch.

    Raises:
        InputError: the baseline or the journal cannot be read or written, or the baseline has none of the cases.
    """
    old = _comparable(baseline, dataset) if baseline is not None else None
    records = run_dataset(dataset, solver, options, on_done)
    results = tuple(record.result for record in records)
    comparison: Comparison | None = None
    if old is not None:
        is_exact = old.is_deterministic and solver.is_deterministic
        comparison = compare_runs(old.results, results, is_exact=is_exact, baseline=old.solver)
    summary = summed_up(
        header_of(dataset, solver, options.epochs),
        records,
        coverage_of(dataset.cases, results),
        mutation_score(dataset.cases, options.jobs) if with_mutants else None,
        comparison,
    )
    return Evaluation(summary=summary, kept=records)


def _comparable(path: Path, dataset: Dataset) -> Baseline:
    """The report at `path`; read before the run, which may take long."""
    baseline = read_baseline(path)
    if not same_cases(
        ((result.id, result.case) for result in baseline.results), ((case.id, case.digest) for case in dataset.cases)
    ):
        raise InputError(f"{path}: none of its cases is in {dataset.name} as it is: nothing could be compared")
    return baseline


def header_of(dataset: Dataset, solver: Solver, epochs: int) -> Header:
    """What is run, for the report."""
    chosen = solver.options
    return Header(
        shardwright=version("shardwright"),
        dataset=dataset.name,
        dataset_hash=dataset.digest,
        solver=solver.name,
        is_deterministic=solver.is_deterministic,
        options={
            "feedback": chosen.feedback,
            "repairs": chosen.repairs,
            "knowledge_tokens": chosen.knowledge_tokens,
            "mode": chosen.mode,
            "limits": chosen.limits.model_dump(mode="json"),
        },
        epochs=epochs,
    )
