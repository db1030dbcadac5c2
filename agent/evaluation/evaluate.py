"""An evaluation from dataset to summary: what the command and the library share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .baseline import read_baseline
from .comparison import Comparison, compare_runs
from .coverage import coverage_of
from .dataset import Dataset
from .mutation import mutation_score
from .report.summary import Summary, summed_up
from .results import Header, Kept
from .run import RunOptions, run_dataset
from .solver import Solver


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation: its summary, and every case of it."""

    summary: Summary
    kept: tuple[Kept, ...]

    @property
    def is_unanswered(self) -> bool:
        """Whether a model was asked and could not be reached in any case."""
        asked = [one.result for one in self.kept if one.result.status]
        return bool(asked) and all(one.status == "endpoint_failed" and not one.spent.turns for one in asked)

    @property
    def first_fault(self) -> str:
        """What the first case says of why its model could not be reached."""
        faults = (one.model_fault for one in self.kept if one.model_fault is not None)
        return next(faults, "no reason is known")


def evaluate(
    dataset: Dataset,
    solver: Solver,
    options: RunOptions,
    *,
    baseline: Path | None = None,
    with_mutants: bool = False,
    on_done: Callable[[Kept], None] | None = None,
) -> Evaluation:
    """Run `solver` over `dataset`, and sum it up; compare with the report at `baseline`, where there is one.

    `with_mutants` damages goldens of the dataset too, to say how many the rules catch.

    Raises:
        InputError: the baseline or the journal cannot be read or written.
    """
    old = read_baseline(baseline) if baseline is not None else None
    kept = run_dataset(dataset, solver, options, on_done)
    results = tuple(one.result for one in kept)
    comparison: Comparison | None = None
    if old is not None:
        is_exact = old.is_deterministic and solver.is_deterministic
        comparison = compare_runs(old.results, results, is_exact=is_exact)
    summary = summed_up(
        header_of(dataset, solver, options.epochs),
        kept,
        coverage_of(dataset.cases, results),
        mutation_score(dataset.cases, options.jobs) if with_mutants else None,
        comparison,
    )
    return Evaluation(summary, kept)


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
