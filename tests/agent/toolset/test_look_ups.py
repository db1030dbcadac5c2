"""Models look up catalogue facts, passages of the knowledge base and rules, with the nearest names on a miss."""

from __future__ import annotations

import pytest

from shardwright.tools.rules.base import Rule
from shardwright.tools.rules.registry import all_rules

from .benches import body, refused, still_bench, use


def test_a_model_is_looked_up_by_any_of_its_names() -> None:
    facts = body(use(still_bench(), "look_up", kind="model", name="llama 3.1 70b"))
    assert (facts["layers"], facts["attention"][0]["kv_heads"]) == (80, 8)
    assert "config" not in facts


def test_an_unknown_model_is_refused_with_the_nearest_names() -> None:
    refused(use(still_bench(), "look_up", kind="model", name="Lama 3.1-70B-Ultra-X"), "did you mean", "Llama")
    refused(use(still_bench(), "look_up", kind="model", name="/etc/passwd"))
    refused(use(still_bench(), "look_up", kind="model", name=""))


def test_an_accelerator_is_looked_up_with_what_a_split_depends_on() -> None:
    facts = body(use(still_bench(), "look_up", kind="accelerator", name="H100"))
    assert facts["id"] == "h100-sxm"
    assert {"memory_bandwidth_gb_s", "dense_peak_tflops", "scale_up_domain_accelerators"} <= facts.keys()
    assert "source" not in facts


def test_an_unknown_accelerator_is_refused_with_the_nearest_ids() -> None:
    refused(use(still_bench(), "look_up", kind="accelerator", name="H900"), "did you mean")


def test_the_knowledge_base_answers_with_passages_and_where_they_stand() -> None:
    base = pytest.importorskip("shardwright.knowledge.index")
    looked_up = body(use(still_bench(), "look_up", kind="question", name="may a TP group span nodes?"))
    first = looked_up["passages"][0]
    section = base.knowledge().section(first["section"])
    assert first["citation"] == section.citation
    assert first["text"] == section.text
    again = body(use(still_bench(), "look_up", kind="section", name=first["section"]))
    assert again["passages"] == [first]


def test_what_the_knowledge_base_does_not_know_is_said_not_made_up() -> None:
    pytest.importorskip("shardwright.knowledge.index")
    refused(use(still_bench(), "look_up", kind="section", name="tp.domian"), "unknown section")
    refused(use(still_bench(), "look_up", kind="rule", name="XX999"), "unknown rule")
    assert use(still_bench(), "look_up", kind="question", name="zzqq xkcd").trouble == "infeasible"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_rule_is_explained_with_an_example_that_breaks_it(rule: Rule) -> None:
    answer = use(still_bench(), "look_up", kind="rule", name=rule.id.lower())
    explained = body(answer)
    assert explained["rule"] == rule.id
    assert explained["requirement"] and explained["why"] and explained["remedy"]
    assert explained["bad_example"]["found"]["rule"] == rule.id
    assert len(answer.text) < 4_000


def test_an_unknown_rule_is_refused_with_the_nearest() -> None:
    refused(use(still_bench(), "look_up", kind="rule", name="TP0005"), "did you mean")
