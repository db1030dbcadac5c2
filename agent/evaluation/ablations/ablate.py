"""Runs an ablation and reports its variants side by side, each compared with the first, case by case.

If no proposal of a model stands, a user gets the built-in proposer's plan, which is a good one: by the rungs alone, a
variant that failed more often can look better. So the share of plans that are the model's own is reported too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import get_args

from ....knowledge.selection import select
from ....knowledge.situation import Situation
from ....tools.errors import InputError, UnknownNameError
from ....tools.frozen import Frozen
from ...loop.agent_options import KNOWLEDGE_TOKENS
from ...loop.feedback import Level
from ..comparison import RungChange, compare_runs
from ..dataset import Dataset
from ..gain import GainScore, gain_scores
from ..marks import is_own_plan
from ..report.summary import Rungs, rungs_of
from ..results import CaseResult
from ..solver import Fixed, Solver
from .samples import SAMPLES
from .variant import Ablation, Variant, with_options


def _core_only(solver: Solver, first: tuple[CaseResult, ...]) -> Solver:
    """A budget that holds the core of the knowledge base, which is always given, and nothing else."""
    core_tokens = select(Situation(), KNOWLEDGE_TOKENS).core_tokens
    return with_options("core only", knowledge_tokens=core_tokens).vary(solver, first)


_EVERY = (
    Ablation(
        "feedback",
        "what is it worth to be told more than that a proposal was wrong?",
        tuple(with_options(level, feedback=level) for level in get_args(Level)),
    ),
    Ablation(
        "knowledge",
        "what is the knowledge base worth to a proposer?",
        (
            with_options("none", knowledge_tokens=0),
            Variant("core only", _core_only),
            with_options("selected", knowledge_tokens=KNOWLEDGE_TOKENS),
        ),
    ),
    Ablation(
        "fixers",
        "what are repairs worth?",
        (with_options("repairs on", repairs=True), with_options("repairs off", repairs=False)),
    ),
    Ablation(
        "reference",
        "what is the built-in plan worth as a reference?",
        (with_options("with the reference", reference=True), with_options("without it", reference=False)),
    ),
    SAMPLES,
)
ABLATIONS = {ablation.name: ablation for ablation in _EVERY}
# Runs a solver over a dataset; the caller decides in how many processes.
Run = Callable[[Dataset, Solver], tuple[CaseResult, ...]]


class VariantReport(Frozen):
    """One variant. `asked` counts the runs in which someone was asked; what follows is of them alone.

    `accepted` is the share whose proposal was accepted, `own` that whose plan is the proposer's, both of `asked`;
    `corrections`, `proposals` and `tokens` are means of a run, `gains` what its plans gain over the built-in ones,
    objective by objective. `changes` are the rungs at each stage against the first
    variant, with the cases that were lost and gained; empty for the first. `faults` counts runs without a result.
    """

    name: str
    rungs: Rungs
    asked: int
    accepted: float
    own: float
    corrections: float
    proposals: float
    tokens: float
    tokens_estimated: bool
    gains: tuple[GainScore, ...] = ()
    faults: int = 0
    changes: tuple[RungChange, ...] = ()


class AblationReport(Frozen):
    """An ablation that was run."""

    name: str
    question: str
    solver: str
    dataset: str
    dataset_hash: str
    is_deterministic: bool
    variants: tuple[VariantReport, ...]


def ablation_named(name: str) -> Ablation:
    """The ablation of that name.

    Raises:
        UnknownNameError: no such ablation.
    """
    if name not in ABLATIONS:
        raise UnknownNameError("ablation", name[:100], tuple(ABLATIONS))
    return ABLATIONS[name]


def ablate(dataset: Dataset, solver: Solver, name: str, run: Run) -> AblationReport:
    """Run every variant of the ablation `name` and report them side by side.

    Raises:
        UnknownNameError: no such ablation.
        InputError: the solver cannot be varied.
    """
    ablation = ablation_named(name)
    if isinstance(solver, Fixed):
        raise InputError(f"{solver.name} cannot be varied: {solver.why_fixed}")
    first: tuple[CaseResult, ...] = ()
    reports: list[VariantReport] = []
    for variant in ablation.variants:
        results = run(dataset, variant.vary(solver, first))
        changes = compare_runs(first, results, is_exact=solver.is_deterministic).changes if reports else ()
        reports.append(_reported(variant.name, results, changes))
        first = first or results
    return AblationReport(
        name=ablation.name,
        question=ablation.question,
        solver=solver.name,
        dataset=dataset.name,
        dataset_hash=dataset.digest,
        is_deterministic=solver.is_deterministic,
        variants=tuple(reports),
    )


def _reported(name: str, results: Sequence[CaseResult], changes: tuple[RungChange, ...]) -> VariantReport:
    asked = [result for result in results if result.status]
    accepted = sum(result.status in ("accepted", "accepted_after_repair") for result in asked)
    own_plans = sum(is_own_plan(result.plan_from) for result in asked)
    tokens = [result.spent.input_tokens + result.spent.output_tokens for result in asked]
    return VariantReport(
        name=name,
        rungs=rungs_of(results),
        asked=len(asked),
        accepted=accepted / len(asked) if asked else 0.0,
        own=own_plans / len(asked) if asked else 0.0,
        corrections=fmean(result.spent.corrections for result in asked) if asked else 0.0,
        proposals=fmean(result.proposals for result in asked) if asked else 0.0,
        tokens=fmean(tokens) if asked else 0.0,
        tokens_estimated=any(result.spent.tokens_estimated for result in asked),
        gains=gain_scores(results),
        faults=sum(result.fault is not None for result in results),
        changes=changes,
    )
