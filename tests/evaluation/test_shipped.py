"""The shipped dataset is as wide as it claims, in the published format, and its goldens are valid plans."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.dataset import Dataset, read_dataset
from shardwright.agent.evaluation.posed import pose
from shardwright.tools.rules.registry import all_rules

SCHEMA = Path(__file__).parents[2] / "schema" / "dataset.schema.json"
FILES = sorted(
    entry.name for entry in files("shardwright.agent.evaluation").joinpath("cases").iterdir() if "json" in entry.name
)
# Requests that are quick to answer: dense models on one node. A benchmark checks the goldens of the others.
SAMPLED = 6


@cache
def shipped() -> Dataset:
    return read_dataset()


def document(name: str) -> dict[str, Any]:
    text = files("shardwright.agent.evaluation").joinpath("cases", name).read_text(encoding="utf-8")
    return json.loads(text)


def tagged(*tags: str) -> list[Case]:
    return [case for case in shipped().cases if set(tags) <= set(case.tags)]


def test_it_is_large_and_nothing_in_it_is_overlooked() -> None:
    assert len(shipped().cases) >= 120
    assert len(shipped().cases) == sum(len(document(name)["cases"]) for name in FILES)
    assert shipped().notes == ()


def test_each_case_has_an_id_of_its_own_and_no_two_say_the_same() -> None:
    cases = shipped().cases
    assert len({case.id for case in cases}) == len(cases)
    assert len({case.model_copy(update={"id": "", "family": ""}).digest for case in cases}) == len(cases)


@pytest.mark.parametrize("name", FILES)
def test_each_file_matches_the_published_schema(name: str) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    content = document(name)
    assert [error.message[:200] for error in validator.iter_errors(content)] == []
    # A schema that allows everything would pass, too.
    assert not validator.is_valid({**content, "cases": [{**content["cases"][0], "odd": 1}]})


def test_every_rule_is_broken_by_some_case() -> None:
    broken = {rule for case in shipped().cases if case.proposal is not None for rule in case.rules}
    assert broken == {rule.id for rule in all_rules()}


@pytest.mark.parametrize(
    ("tag", "least"),
    [("dense", 20), ("moe", 20), ("mla", 10), ("hybrid", 5), ("sliding", 5), ("latency", 20), ("throughput", 20),
     ("cost", 4), ("disaggregated", 5), ("relaxed", 10), ("infeasible", 10), ("refused", 5), ("hostile", 10),
     ("stated", 5), ("published", 10)],
)  # fmt: skip
def test_every_kind_of_case_is_there(tag: str, least: int) -> None:
    assert len(tagged(tag)) >= least


def test_every_kind_of_answer_is_asked_for() -> None:
    kinds = Counter(case.expect for case in shipped().cases)
    assert kinds["infeasible"] >= 10 and kinds["refused"] >= 10 and kinds["plan"] >= 100
    assert all(case.refusal for case in shipped().cases if case.expect == "refused")


def test_requests_are_in_english_and_in_chinese() -> None:
    requests = [case.request for case in shipped().cases if case.request]
    chinese = [request for request in requests if sum("\u4e00" <= character <= "\u9fff" for character in request) >= 3]
    assert len(chinese) >= 20
    assert len(requests) - len(chinese) >= 80


def test_hardware_goes_from_one_gpu_to_128() -> None:
    intents = [case.intent for case in shipped().cases if case.intent.get("hardware.nodes") is not None]
    counts = {intent["hardware.nodes"] * intent.get("hardware.gpus_per_node", 1) for intent in intents}
    assert {1, 2, 4, 8, 16} <= counts and max(counts) >= 128


def test_what_counts_as_right_has_its_reason() -> None:
    assert [case.id for case in shipped().cases for golden in case.goldens if not golden.source.strip()] == []


def test_most_of_it_was_not_decided_by_the_planner_that_is_judged_by_it() -> None:
    assert sum(case.by_builder for case in shipped().cases) <= len(shipped().cases) / 2


@pytest.mark.thorough
@pytest.mark.parametrize("place", range(SAMPLED))
def test_each_golden_of_a_sample_of_requests_is_a_valid_plan(place: int) -> None:
    small = [case for case in tagged("dense", "one-node") if case.request and case.goldens and case.expect == "plan"]
    case = random.Random(5).sample(small, SAMPLED)[place]
    posed = pose(case)
    assert posed.question is not None
    assert {golden.fault for golden in posed.right} == {None}
    assert len(posed.right) == len(case.goldens)


def test_the_digest_depends_on_no_order_and_no_file(tmp_path: Path) -> None:
    cases = [case for name in FILES for case in document(name)["cases"]]
    random.Random(2).shuffle(cases)
    (tmp_path / "all.json").write_text(json.dumps({"cases": cases[:100]}))
    (tmp_path / "rest.jsonl").write_text("\n".join(map(json.dumps, cases[100:])))
    assert read_dataset(tmp_path).digest == shipped().digest
