"""What a search calls feasible is a plan: its document, with the whole graph, breaks no rule."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from shardwright.tools.engines.names import JUDGED
from shardwright.tools.plan.builder import build_plan
from shardwright.tools.plan.document import HardwareBlock, PolicyBlock, ServingBlock, WorkloadBlock
from shardwright.tools.search.candidate import Candidate, SearchResult
from shardwright.tools.search.search import search
from shardwright.tools.validate import validate

from .questions import Question, drawn_questions, question

pytestmark = pytest.mark.thorough

PARTS = 4
QUESTIONS = list(islice(drawn_questions(seed=71, most_gpus=8), 36))
OF_EACH = 8


def feasible_ones(result: SearchResult, draw: random.Random, count: int) -> list[Candidate]:
    """The best, the ends of the front, and others at random."""
    feasible = [candidate for candidate in result.candidates if candidate.feasible]
    ends = [result.candidates[place] for place in (*result.pareto[:1], *result.pareto[-1:])]
    leading = [*feasible[:1], *ends]
    return [*leading, *draw.sample(feasible, min(len(feasible), max(0, count - len(leading))))]


def broken_rules(asked: Question, candidate: Candidate) -> list[str]:
    """The errors of the candidate's document."""
    report = validate(build_plan(asked.plan(candidate.strategy, candidate.concurrency)))
    return [f"{fault.rule}: {fault.message}" for fault in report.violations if fault.severity == "error"]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_feasible_candidate_is_a_plan_without_errors(part: int) -> None:
    count = 0
    for number, asked in enumerate(QUESTIONS[part::PARTS]):
        for candidate in feasible_ones(search(asked.search), random.Random(number), OF_EACH):
            count += 1
            assert not broken_rules(asked, candidate), (asked.name, candidate)
    assert count >= 12


def narrow(model: str, engine: str, relaxations: tuple[str, ...]) -> Question:
    """A search for a named engine under relaxations of which the engine supports only a part."""
    return question(
        model,
        HardwareBlock(accelerator="h200-sxm", nodes=1, gpus_per_node=8),
        WorkloadBlock(input_tokens=1000, output_tokens=64, concurrency=16, objective="throughput"),
        policy=PolicyBlock.model_validate({"relaxations": relaxations}),
        weights="fp8",
        serving=ServingBlock(engine=engine),
    )


@pytest.mark.parametrize("engine", [*JUDGED])
@pytest.mark.parametrize(
    ("model", "relaxations"),
    [
        ("Qwen2.5-1.5B", ("kv_sequence_decode",)),
        ("Qwen3-30B-A3B", ("tp_in_expert", "attention_dp")),
        ("GLM-4.5-Air", ("tp_in_expert", "attention_dp", "kv_sequence_decode")),
    ],
)
def test_a_named_engine_has_settings_for_all_that_is_found_for_it(
    model: str, relaxations: tuple[str, ...], engine: str
) -> None:
    asked = narrow(model, engine, relaxations)
    feasible = [
        candidate for candidate in search(asked.search).candidates if candidate.feasible and candidate.strategy.dp == 1
    ]
    assert feasible
    chosen = random.Random(1).sample(feasible, min(len(feasible), 40))
    assert {
        (broken, str(candidate.strategy)) for candidate in chosen for broken in broken_rules(asked, candidate)
    } == set()


def test_what_does_not_fit_is_no_plan() -> None:
    """Without this the test above could pass with a validator that finds nothing."""
    rules: list[str] = []
    for asked in QUESTIONS[:12]:
        large = [candidate for candidate in search(asked.search).candidates if candidate.shortfall_bytes is not None]
        for candidate in large[:1]:
            rules.extend(message[:5] for message in broken_rules(asked, candidate))
    assert rules and set(rules) == {"ME001"}
