"""A plan cites the sections behind it: reasons for its strategy, and rules that ruled out others."""

from __future__ import annotations

import pytest

from shardwright.agent.citations import LIMITS_SECTION, MAX_CITATIONS, OBJECTIVE_SECTIONS, STRATEGY_SECTIONS, citations
from shardwright.agent.facts import rule_facts
from shardwright.agent.pipeline import plan
from shardwright.knowledge.citation_table import FILE, generated_table
from shardwright.knowledge.index import knowledge
from shardwright.knowledge.search import search_index
from shardwright.tools.plan.document import PhaseStrategy, Strategy, WorkloadBlock
from shardwright.tools.rules.registry import find_rule

CITATIONS = {section.citation for section in knowledge().sections}


def cited(section_id: str) -> str:
    """The citation of a section."""
    return knowledge().section(section_id).citation


@pytest.mark.parametrize("section_id", [LIMITS_SECTION, *OBJECTIVE_SECTIONS.values(), *STRATEGY_SECTIONS.values()])
def test_a_section_that_plans_cite_exists(section_id: str) -> None:
    assert knowledge().has(section_id)


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        ({"tp": 8, "tp_ffn": 8}, {"tp"}),
        ({"pp": 2, "tp": 8}, {"pp", "tp"}),
        ({"ep": 8, "tp": 8}, {"ep", "tp"}),
        ({"attention_dp": 8, "ep": 8}, {"attention_dp", "ep"}),
        ({"replicas": 2, "tp": 2}, {"disaggregated", "tp"}),
        ({}, set[str]()),
    ],
)
def test_each_part_of_a_strategy_cites_what_it_is_chosen_by(degrees: dict[str, int], expected: set[str]) -> None:
    phase = PhaseStrategy.model_validate(degrees)
    strategy = Strategy(dp=1, gpu_count=8, prefill=phase, decode=phase)
    sections_cited = citations(WorkloadBlock(input_tokens=8, output_tokens=8), strategy, [])
    wanted = {cited(OBJECTIVE_SECTIONS["latency"]), *(cited(STRATEGY_SECTIONS[part]) for part in expected)}
    assert set(sections_cited) == wanted


def test_replicas_and_limits_are_cited_and_words_that_are_no_rule_are_not() -> None:
    strategy = Strategy(dp=2, gpu_count=2, prefill=PhaseStrategy(), decode=PhaseStrategy())
    workload = WorkloadBlock(input_tokens=8, output_tokens=8, tpot_ms_max=5.0, objective="cost")
    sections_cited = citations(workload, strategy, ["ME001", "in words", "ME001"])
    assert sections_cited == (
        cited(OBJECTIVE_SECTIONS["cost"]),
        cited(LIMITS_SECTION),
        cited(STRATEGY_SECTIONS["dp"]),
        search_index().teaching("ME001")[0].citation,
    )


def test_a_plan_and_a_refusal_cite_sections_that_are_there() -> None:
    planned = plan("Serve Llama-3.1-8B on 2 H100, 2k in / 256 out, TPOT below 20 ms")
    refused = plan("Serve Qwen3-14B in bf16 on 1 RTX 4090, 2k in / 256 out")
    assert planned.report is not None
    assert refused.report is not None
    assert 0 < len(planned.report.citations) <= MAX_CITATIONS
    assert refused.report.citations == (search_index().teaching("ME001")[0].citation,)
    assert {*planned.report.citations, *refused.report.citations} <= CITATIONS


def test_a_rule_names_the_section_that_teaches_it_where_one_is_asked_for() -> None:
    assert rule_facts(find_rule("EP003"), with_examples=True).taught_in in CITATIONS
    assert rule_facts(find_rule("EP003")).taught_in is None


def test_the_table_of_citations_is_what_the_base_says_today() -> None:
    assert FILE.read_text(encoding="utf-8") == generated_table()
