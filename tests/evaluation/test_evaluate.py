"""In a whole evaluation right answers have full marks, worse ones are named, and runs are reproducible."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.evaluation.case import Broken
from shardwright.agent.evaluation.comparison import compare_runs
from shardwright.agent.evaluation.dataset import Dataset, read_dataset
from shardwright.agent.evaluation.report.text import render_summary
from shardwright.agent.evaluation.results import FINAL
from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.agent.evaluation.solvers.scripted import Script, Scripted
from shardwright.tools.errors import InputError
from shardwright.tools.rules.base import Edit

from .running import Failing, broken_plans, own_calibration

pytestmark = pytest.mark.thorough

# In two of them links decide between few wide replicas and many narrow ones, in two they do not.
LINKS_DECIDE = ("llama-70b-fp8-h100-256-users",)
THEY_DO_NOT = ("llama-8b-l40s-batch", "llama-8b-two-a10-one-user", "qwen2.5-72b-two-h100-any-format")


@cache
def requests() -> Dataset:
    """Four requests of the shipped dataset."""
    chosen = {case.id: case for case in read_dataset().cases}
    return Dataset("links", tuple(chosen[name] for name in (*LINKS_DECIDE, *THEY_DO_NOT)))


@cache
def evaluated(solver: str) -> shardwright.Evaluation:
    """The four requests answered by a solver; another than the built-in one is compared with it."""
    if solver == "builtin":
        return shardwright.evaluate(requests(), solver, jobs=1)
    with tempfile.TemporaryDirectory() as folder:
        baseline = Path(folder) / "old.json"
        baseline.write_text(evaluated("builtin").model_dump_json())
        return shardwright.evaluate(requests(), solver, jobs=1, baseline=baseline)


def untimed(evaluation: shardwright.Evaluation) -> dict[str, Any]:
    document = evaluation.model_dump(mode="json")
    assert document.pop("timing")
    return document


def test_a_solver_that_returns_the_golden_has_full_marks_on_every_rung_that_applies() -> None:
    mixed = Dataset("mixed", (*requests().cases, *broken_plans(3).cases))
    evaluation = shardwright.evaluate(mixed, "golden", jobs=1)
    assert evaluation.summary.solved == evaluation.summary.cases == 7
    assert {rung: stages[FINAL].rate for rung, stages in evaluation.summary.rungs.items()} == dict.fromkeys(
        ("parses", "schema", "rules", "equivalent", "strategy", "regret", "outcome", "own", "intent", "explanation"),
        1.0,
    )
    assert evaluation.summary.regret is not None and evaluation.summary.regret.worst_pct == 0.0
    assert evaluation.summary.faults == {}


def test_a_proposer_that_believes_links_are_free_is_found_worse_by_name() -> None:
    evaluation = evaluated("unconnected")
    comparison = evaluation.summary.comparison
    assert comparison is not None and comparison.is_exact and comparison.baseline == "builtin"
    assert set(comparison.lost) == set(LINKS_DECIDE)
    regret = next(loss for loss in comparison.regressions if (loss.rung, loss.stage) == ("regret", FINAL))
    assert (regret.before, regret.after, set(regret.lost)) == (1.0, 0.75, set(LINKS_DECIDE))
    text = render_summary(evaluation.summary, evaluation.kept, width=140)
    assert "Worse than the baseline, a run of builtin, in the 4 cases that both have." in text
    assert all(name in text for name in LINKS_DECIDE)


def test_the_builtin_proposer_is_no_worse_than_the_one_that_errs() -> None:
    worse, right = (evaluated(name).results for name in ("unconnected", "builtin"))
    comparison = compare_runs(worse, right, is_exact=True)
    assert not comparison.regressions
    assert {case for change in comparison.changes for case in change.gained} == set(LINKS_DECIDE)


def test_two_runs_are_identical_but_for_the_seconds() -> None:
    again = shardwright.evaluate(requests(), "builtin", jobs=1)
    assert again.summary.digest == evaluated("builtin").summary.digest
    assert json.dumps(untimed(again)) == json.dumps(untimed(evaluated("builtin")))


def test_the_library_says_what_the_command_prints() -> None:
    document = evaluated("builtin").model_dump(mode="json")
    assert (document["format"], document["cases"], document["solved"]) == ("shardwright/eval", 4, 4)
    assert document["dataset_hash"] == requests().digest
    assert [result["id"] for result in document["results"]] == [case.id for case in requests().cases]
    assert json.loads(evaluated("builtin").model_dump_json()) == document


def test_a_calibration_is_the_proposer_s_own_and_leaves_the_judge_as_it_is() -> None:
    single = Dataset("one", requests().cases[:1])
    # With matmuls near zero speed it proposes what saves most of them, and is judged by the shipped calibration.
    evaluation = shardwright.evaluate(single, BuiltIn(calibration=own_calibration(0.001)), jobs=1)
    assert evaluation.summary.header.solver == "builtin by mine"
    plain = evaluated("builtin").results[0]
    assert evaluation.results[0].strategy != plain.strategy
    assert plain.passed("regret") is True and evaluation.results[0].passed("regret") is False


def test_a_path_a_solver_of_one_s_own_and_repeats_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"cases": [case.model_dump(mode="json") for case in broken_plans(2).cases]}))
    evaluation = shardwright.evaluate(str(path), Failing(raises=("case-1",)), epochs=2, jobs=1)
    assert [(result.id, result.epoch) for result in evaluation.results] == [
        ("case-0", 1),
        ("case-0", 2),
        ("case-1", 1),
        ("case-1", 2),
    ]
    assert (evaluation.summary.solved, evaluation.summary.cases) == (1, 2)
    assert list(evaluation.summary.faults) == ["case-1"]
    assert [(repeat.k, repeat.at_least_one, repeat.all_of_them) for repeat in evaluation.summary.repeats] == [
        (1, 0.5, 0.5),
        (2, 0.5, 0.5),
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"dataset": "no-such-file.jsonl"}, "no-such-file.jsonl: cannot be read"),
        ({"solver": "bultin"}, "did you mean builtin"),
        ({"epochs": 0}, "at least 1"),
        ({"jobs": 0}, "at least 1"),
        ({"baseline": "no-such-report.json"}, "no-such-report.json: cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_run(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        shardwright.evaluate(**{"dataset": requests(), **given})


def test_a_golden_that_is_no_plan_is_told_and_its_case_not_called_solved() -> None:
    wrong = shardwright.Case(
        id="wrong",
        family="wrong",
        request="Llama-3.1-8B on 2 H100, lowest latency",
        goldens=({"strategy": "TP7"},),  # pyright: ignore[reportArgumentType] - as a file has it
    )
    evaluation = shardwright.evaluate(Dataset("a", (wrong,)), jobs=1)
    assert evaluation.summary.solved == 0
    text = render_summary(evaluation.summary, evaluation.kept, width=140)
    assert "wrong: regret: no golden is a valid plan: GP004: the strategy needs 7 GPUs" in " ".join(text.split())


def test_a_base_plan_that_there_is_not_is_a_fault_of_its_case_alone() -> None:
    edits = (Edit("set_top", field="strategy/gpu_count", value=9),)
    gone = shardwright.Case(id="gone", family="gone", proposal=Broken(base="no-such-plan", edits=edits))
    bare = shardwright.Case(id="bare", family="bare", goldens=({"base": "no-such-plan"},))  # pyright: ignore[reportArgumentType] - as a file has it
    evaluation = shardwright.evaluate(Dataset("a", (gone, bare, *broken_plans(1).cases)), jobs=1)
    assert sorted(evaluation.summary.faults) == ["bare", "gone"]
    assert evaluation.summary.solved == 1


def test_a_model_that_proposes_nothing_has_no_part_in_the_plan_that_stands_in() -> None:
    evaluation = shardwright.evaluate(requests(), Scripted(Script(replies={"*": ["I have no idea."]})), jobs=1)
    assert evaluation.summary.solved == evaluation.summary.own == 0
    assert (
        evaluation.summary.rungs["rules"]["at_once"].rate == evaluation.summary.rungs["rules"]["after_fix"].rate == 0.0
    )
    assert evaluation.summary.rungs["rules"][FINAL].rate == 1.0
    comparison = compare_runs(evaluated("golden").results, evaluation.results, is_exact=True)
    assert {"own", "rules"} <= {regression.rung for regression in comparison.regressions}


def test_a_plan_for_another_question_is_not_right_at_once() -> None:
    case = requests().cases[0]
    golden_result = evaluated("golden").results[0]
    plan = shardwright.plan(case.request).plan
    assert plan is not None
    other = plan.model_dump(mode="json")
    other["workload"]["input_tokens"] += 1
    wrong_result = shardwright.evaluate(
        Dataset("one", (case,)), Scripted(Script(replies={"*": [json.dumps(other)]})), jobs=1
    ).results[0]
    assert golden_result.passed("rules", "at_once") is True
    assert wrong_result.passed("rules", "at_once") is False
    assert wrong_result.passed("rules", "after_fix") is True


def test_a_loss_inside_what_still_counts_as_no_worse_is_seen() -> None:
    right = evaluated("golden").results
    mark = right[0].stages[FINAL]["regret"].model_copy(update={"value": 1.5})
    stages = {**right[0].stages, FINAL: {**right[0].stages[FINAL], "regret": mark}}
    worse = (right[0].model_copy(update={"stages": stages}), *right[1:])
    comparison = compare_runs(right, worse, is_exact=True)
    assert [(loss.rung, loss.lost) for loss in comparison.regressions] == [("regret figure", (right[0].id,))]
