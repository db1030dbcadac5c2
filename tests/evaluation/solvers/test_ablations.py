"""Ablations: what varies, how variants are compared, and that fresh samples get no more tries than corrections."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from shardwright.agent.evaluation.ablations.ablate import ABLATIONS, AblationReport, ablate
from shardwright.agent.evaluation.ablations.samples import FreshSamples, tokens_of
from shardwright.agent.evaluation.dataset import Dataset
from shardwright.agent.evaluation.results import CaseResult
from shardwright.agent.evaluation.score import score_case
from shardwright.agent.evaluation.solver import UNHURRIED, Solver
from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.agent.evaluation.solvers.careless import Stubborn
from shardwright.agent.evaluation.solvers.cassette import Played
from shardwright.agent.evaluation.solvers.golden import Golden
from shardwright.agent.evaluation.solvers.scripted import Script, Scripted
from shardwright.agent.evaluation.solvers.student import Student
from shardwright.agent.evaluation.solvers.tape import RecordedOptions, RecordingHeader
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.tools.errors import InputError

from .test_scripted import TP2, TP3
from .worlds import case, scored

SMALL = Dataset("small", (case(), case("broken-text"), case("infeasible")))


def one_by_one(dataset: Dataset, solver: Solver) -> tuple[CaseResult, ...]:
    """A runner that scores one case after another."""
    return tuple(score_case(entry, solver).result for entry in dataset.cases)


def of(name: str, solver: Solver, dataset: Dataset = SMALL) -> AblationReport:
    """The report of an ablation."""
    return ablate(dataset, solver, name, one_by_one)


@pytest.mark.thorough
def test_more_feedback_is_worth_more_to_who_learns() -> None:
    hurried = replace(UNHURRIED, limits=UNHURRIED.limits.model_copy(update={"corrections": 1}))
    report = of("feedback", Student(hurried), SMALL.only("words"))
    by_level = {variant.name: variant for variant in report.variants}
    assert list(by_level) == ["none", "bit", "codes", "full", "patch"]
    assert [variant.name for variant in report.variants if variant.accepted] == ["patch"]
    assert report.variants[0].changes == ()
    assert all(variant.changes for variant in report.variants[1:])
    assert all(variant.asked == 1 and variant.tokens > 0 and variant.tokens_estimated for variant in report.variants)


def test_without_repairs_what_was_repaired_is_lost_and_the_cases_are_named() -> None:
    def third_epoch(dataset: Dataset, solver: Solver) -> tuple[CaseResult, ...]:
        return tuple(score_case(entry, solver, 3).result for entry in dataset.cases)

    # In that epoch the proposal lacks a collective, which a repair restores.
    report = ablate(Dataset("words", (case(),)), Stubborn(), "fixers", third_epoch)
    with_repairs, without = report.variants
    assert (with_repairs.name, with_repairs.accepted, with_repairs.own) == ("repairs on", 1.0, 1.0)
    assert (without.name, without.accepted, without.own) == ("repairs off", 0.0, 0.0)
    lost = {change.rung: change.lost for change in without.changes if change.stage == "after_fix"}
    assert lost["rules"] == ("words",)


def test_a_proposer_who_learns_does_better_by_correcting() -> None:
    report = of("samples", Student(), SMALL.only("words"))
    repair, fresh = report.variants
    assert (repair.asked, fresh.asked) == (1, 1)
    assert repair.accepted > fresh.accepted


@pytest.mark.thorough
def test_fresh_samples_stop_at_the_tokens_that_corrections_took() -> None:
    epoch = 2
    normal = scored(Student(), epoch=epoch)
    allowed = tokens_of(normal.spent)
    fresh = scored(FreshSamples(Student(), (("words", epoch, allowed),)), epoch=epoch)
    assert fresh.spent.corrections == 0
    most_of_one = max(tokens_of(scored(FreshSamples(Student(), ()), epoch=epoch).spent) * 1.1, 1)
    assert tokens_of(fresh.spent) < allowed + most_of_one
    assert fresh.status == "accepted" or tokens_of(fresh.spent) >= allowed


def test_the_first_sample_that_is_accepted_counts() -> None:
    chosen = scored(FreshSamples(Scripted(Script.model_validate({"replies": {"*": [TP2]}})), (("words", 1, 10**9),)))
    assert (chosen.status, chosen.proposals, chosen.spent.turns) == ("accepted", 1, 1)
    never = scored(FreshSamples(Scripted(Script.model_validate({"replies": {"*": [TP3]}})), ()))
    assert (never.status, never.proposals) == ("corrections_spent", 1)


def test_samples_for_a_case_with_a_proposal_do_not_take_it_up() -> None:
    never = Scripted(Script.model_validate({"replies": {"*": [TP3]}}))
    result = scored(FreshSamples(never, (("broken-text", 1, 10_000),)), "broken-text")
    assert result.spent.turns > 1
    assert result.proposals == 1 + result.spent.turns
    assert result.passed("rules", "at_once") is False


def test_knowledge_is_given_as_far_as_the_variant_says() -> None:
    budgets = [variant.vary(Student(), ()).options.knowledge_tokens for variant in ABLATIONS["knowledge"].variants]
    assert budgets[0] == 0 < budgets[1] < budgets[2]
    solver = Scripted(Script.model_validate({"replies": {"*": [TP2]}}))
    results = [scored(variant.vary(solver, ())) for variant in ABLATIONS["knowledge"].variants[:2]]
    assert results[0].spent.input_tokens < results[1].spent.input_tokens


def test_every_variant_keeps_what_is_not_varied() -> None:
    solver = Student(AgentOptions(max_output_tokens=777))
    for ablation in ABLATIONS.values():
        for variant in ablation.variants:
            assert variant.vary(solver, ()).options.max_output_tokens == 777


def test_what_cannot_be_varied_is_refused(tmp_path: Path) -> None:
    header = RecordingHeader(
        model="m", transport_attempts=1, max_answer_bytes=10_000, options=RecordedOptions.of(AgentOptions())
    )
    with pytest.raises(InputError, match="cannot be varied: a recording answers one way of asking"):
        of("feedback", Played(tmp_path, header))
    with pytest.raises(InputError, match="golden cannot be varied"):
        of("feedback", Golden())
    with pytest.raises(InputError, match="unknown ablation 'x'; did you mean feedback"):
        of("x", Student())


def test_a_report_is_plain_data_and_says_that_nobody_was_asked() -> None:
    report = of("fixers", BuiltIn(), SMALL.only("words"))
    assert AblationReport.model_validate_json(report.model_dump_json()) == report
    assert (report.solver, report.dataset, report.is_deterministic) == ("builtin", "small", True)
    assert [variant.asked for variant in report.variants] == [0, 0]
    assert not any(change.lost or change.gained for change in report.variants[1].changes)
