"""The report of a run: whose plan it is, how it ended and why, how it compares, what was repaired."""

from __future__ import annotations

import pytest

from shardwright.agent.loop.budget import Limits
from shardwright.agent.loop.loop import Options
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.messages import Reply, Usage
from shardwright.agent.model.scripted import Step, calls, says
from shardwright.agent.results import PlanReport
from shardwright.agent.toolset.all_tools import ALL_TOOLS

from .questions import OPEN, SMALL, question, reference_document
from .scripts import AMBIGUOUS, played, strategy

NO_USE = Usage(input_tokens=1, output_tokens=1)


def report_of(steps: list[Step], request: str = SMALL, limits: Limits | None = None) -> PlanReport:
    _, result = played(steps, Options(limits=limits or Limits(), tools=ALL_TOOLS), request)
    assert result.report is not None
    return result.report


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([Reply(finish="refusal", refusal="no", usage=NO_USE)], "the model refused to answer"),
        ([EndpointError("server_error", "503 Service Unavailable", 4)], "503 Service Unavailable"),
        ([calls(("look_up", {"kind": "rule", "name": "ME001"}))] * 5, "the model repeated itself"),
        ([Reply(finish="length", usage=NO_USE)], "corrections allowed"),
    ],
)
def test_without_a_plan_of_the_model_the_report_says_why(steps: list[Step], words: str) -> None:
    report = report_of(steps, limits=Limits(corrections=0))
    assert report.proposer == "builtin"
    assert report.explanation.startswith("The built-in proposer's plan: ") and words in report.explanation


def test_a_plan_like_the_built_in_proposers_is_said_to_be() -> None:
    right = question(SMALL).reference_plan.strategy
    report = report_of([strategy(right.dp, tp=right.decode.tp)])
    assert report.proposer == "llm"
    assert "The built-in proposer chose the same plan." in report.explanation


def test_a_worse_plan_is_not_returned_and_stands_beside_the_built_in_one() -> None:
    report = report_of([strategy(1, tp=1), calls(("submit_dag", {"handle": "reference"}))], request=OPEN)
    assert report.proposer == "builtin" and report.model_use is not None
    assert (report.model_use.status, report.model_use.plan_from) == ("accepted", "builtin")
    assert report.alternatives[0].strategy.gpu_count == 1
    assert report.alternatives[0].reason.startswith("proposed by scripted: -")
    assert "The best valid plan of scripted, one device: -" in report.explanation


def test_a_plan_as_good_is_the_models_and_the_built_in_one_an_alternative() -> None:
    right = question(OPEN).reference_plan.strategy
    report = report_of([strategy(right.dp, tp=right.decode.tp)], request=OPEN)
    assert report.proposer == "llm"
    assert report.alternatives[0].reason == "the built-in proposer's choice"


def test_limits_of_a_models_plan_are_told_with_its_own_figures() -> None:
    right = question(f"{SMALL}, TPOT under 60 ms").reference_plan.strategy
    report = report_of([strategy(right.dp, tp=right.decode.tp)], request=f"{SMALL}, TPOT under 60 ms")
    assert report.proposer == "llm" and report.limits and "TPOT" in report.limits[0]


def test_what_the_model_says_for_its_plan_is_told_as_its_own_reason() -> None:
    step = calls(("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 2}}, "rationale": "Two cards, two ranks."}))
    assert "The model's reason: Two cards, two ranks." in report_of([step]).explanation


def test_what_was_repaired_is_listed_and_what_was_broken_counted() -> None:
    document = reference_document()
    document["edges"] = document["edges"][1:]
    report = report_of([calls(("submit_dag", {"document": document}))])
    assert report.fixes and all(fix.patch for fix in report.fixes)
    assert sum(report.violations_seen.values()) >= 1
    assert "made valid by auto-fix" in report.explanation
    assert report.model_use is not None
    assert (report.model_use.status, report.model_use.plan_from) == ("accepted_after_repair", "model_repaired")


def test_the_best_plan_that_stood_is_returned_where_the_run_ends_without_one() -> None:
    report = report_of([AMBIGUOUS], limits=Limits(corrections=0))
    assert report.proposer == "llm"
    assert "the run ended because no proposal was accepted within the corrections allowed" in report.explanation


def test_the_repairs_are_those_of_the_plan_that_is_returned() -> None:
    document = reference_document()
    document["edges"] = document["edges"][1:]
    steps: list[Step] = [strategy(1, tp=3), calls(("submit_dag", {"document": document}))]
    ending, result = played(steps, Options(tools=ALL_TOOLS))
    assert ending.judgements[0].fixes and ending.standing is not None and result.report is not None
    assert [fix.rule for fix in result.report.fixes] == [fix.rule for fix in ending.judgements[1].fixes] != []


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "nonsense",
    [says("TP13 cheese"), strategy(1, tp=13), strategy(7, tp=3, pp=5), strategy(2, sp=64)],
    ids=["a word", "a degree", "a product", "a sequence"],
)
def test_what_auto_fix_makes_of_nonsense_is_not_told_as_the_models(nonsense: Step) -> None:
    report = report_of([nonsense] * 3)
    assert report.proposer == "builtin" and report.model_use is not None
    assert (report.model_use.status, report.model_use.plan_from) == ("no_progress", "builtin")
    assert "None of 3 proposals of scripted was valid, as it stood or repaired with its decisions kept." in (
        report.explanation
    )


def test_rounds_are_proposals_and_what_it_took_is_in_the_report() -> None:
    report = report_of([strategy(1, tp=3), strategy(1, tp=2)])
    assert report.rounds == 2 and report.model_use is not None
    assert (report.model_use.proposals, report.model_use.turns, report.model_use.corrections) == (2, 2, 1)
