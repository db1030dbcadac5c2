"""`--mix`: one plan for several kinds of requests, the same from the command line and from Python."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.cli.app import run
from shardwright.agent.mix import MAX_KINDS, kinds_of
from shardwright.tools.errors import InputError

KINDS: list[dict[str, Any]] = [
    {"name": "chat", "weight": 3, "input_tokens": 1024, "output_tokens": 128, "tpot_ms_max": 40},
    {"name": "documents", "weight": 1, "input_tokens": 6000, "output_tokens": 256},
]
ASKED = ["Llama-3.1-8B on 2 H100, 16 concurrent, best throughput"]


def kinds_file(folder: Path, kinds: Any = KINDS, name: str = "kinds.json") -> str:
    """A file with the kinds."""
    path = folder / name
    path.write_text(json.dumps(kinds), encoding="utf-8")
    return str(path)


def test_plan_writes_one_valid_plan_for_all_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plan.json"
    assert run(["plan", *ASKED, "--mix", kinds_file(tmp_path), "-o", str(target)]) == 0
    report = capsys.readouterr().out
    assert "2 kinds of requests" in report and "documents" in report and str(target) in report
    assert shardwright.validate(target).valid
    workload = json.loads(target.read_text(encoding="utf-8"))["workload"]
    assert workload["input_tokens"] == (3 * 1024 + 6000) / 4
    assert sorted(workload["lengths"]["pairs"]) == [[1024, 128]] * 3 + [[6000, 256]]


def test_search_and_python_give_the_same_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", *ASKED, "--mix", kinds_file(tmp_path), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == shardwright.plan_mix(*ASKED, workloads=KINDS).model_dump(mode="json")
    best = printed["candidates"][0]
    assert set(best["parts"]) == {"chat", "documents"}
    assert best["parts"]["chat"]["tpot_ms"] <= 40


def test_a_limit_that_one_kind_cannot_hold_is_a_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strict = [KINDS[0], {**KINDS[1], "ttft_ms_max": 1}]
    target = tmp_path / "plan.json"
    assert run(["plan", *ASKED, "--mix", kinds_file(tmp_path, strict), "-o", str(target)]) == 1
    assert "documents: PE010: TTFT" in " ".join(capsys.readouterr().out.split())
    assert not target.exists()


def test_lengths_are_written_as_on_the_command_line() -> None:
    kinds = kinds_of([{**KINDS[0], "input_tokens": "1k", "output_tokens": "2,048"}])
    assert (kinds.workloads[0].input_tokens, kinds.workloads[0].output_tokens) == (1024, 2048)


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ([], "workloads"),
        ([{"name": "chat", "weight": 1}], "input_tokens"),
        ([{**KINDS[0], "weight": -1}], "weight"),
        ([{**KINDS[0], "input_tokens": "a few"}], "input_tokens"),
        ([{**KINDS[0], "input_tokens": "1.5"}], "input_tokens"),
        ([{**KINDS[0], "colour": "red"}], "colour"),
    ],
)
def test_kinds_that_are_none_are_refused_in_one_line(
    kinds: Any, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *ASKED, "--mix", kinds_file(tmp_path, kinds)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err


def test_a_mix_without_stated_hardware_is_refused() -> None:
    with pytest.raises(InputError, match="stated hardware"):
        shardwright.plan_mix("Llama-3.1-8B, best throughput", workloads=KINDS)


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"request_rate": 50.0}, "request_rate"),
        ({"min_tokens_per_second": 90.0}, "min_tokens_per_second"),
        ({"prefixes": {"system_tokens": 300}}, "prefixes"),
        ({"lengths": {"input": {"percentiles": [[50, 800], [99, 3000]]}}}, "lengths"),
        ({"output_tokens_range": [100, 300]}, "output_tokens_range"),
        ({"disaggregated": True}, "disaggregated"),
    ],
)
def test_what_a_mix_cannot_have_is_refused_by_name(stated: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        shardwright.plan_mix("llama-3.2-1b on 1 L4", workloads=KINDS, **stated)


@pytest.mark.parametrize("stated", [{"ttft_ms": 1}, {"tpot_ms": 1}, {"end_to_end_ms": 1}])
def test_a_limit_stated_beside_a_mix_holds_for_each_kind_without_its_own(stated: dict[str, Any]) -> None:
    kinds = [{**KINDS[0], "ttft_ms_max": 1e6, "tpot_ms_max": 1e6, "end_to_end_ms_max": 1e6}, KINDS[1]]
    answer = shardwright.plan_mix("llama-3.2-1b on 1 L4", workloads=kinds, **stated)
    assert not answer.feasible and answer.plan is None
    parts = answer.candidates[0].parts
    assert parts["chat"].feasible and not parts["documents"].feasible


def test_stated_degrees_hold_for_a_mix() -> None:
    answer = shardwright.plan_mix("llama-3.2-1b on 2 L40S, 16 concurrent, TP1", workloads=KINDS)
    assert answer.plan is not None and answer.plan.strategy.decode.tp == 1


def test_what_a_mix_does_not_act_on_and_what_it_assumes_stand_in_its_first_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["plan", "llama-3.2-1b on 1 L4, 2k in", "--reserve-replicas", "1", "--mix", kinds_file(tmp_path)]
    assert run(call) == 0
    first = " ".join(capsys.readouterr().out.split("Each kind")[0].split())
    assert "1 request in flight (assumed) Not acted on:" in first
    assert "--reserve-replicas" in first and "'2k in': each kind of a mix has its own lengths" in first
    assert run([*call, "--strict"]) == 1


@pytest.mark.parametrize("weights", [(4, 1), (0.7, 0.3), (1, 1, 1), (1e9, 1), (math.pi, math.e), (1,) * MAX_KINDS])
def test_the_plan_of_a_mix_states_each_kind_in_its_share(weights: tuple[float, ...]) -> None:
    kinds = [
        {"name": str(place), "weight": weight, "input_tokens": 64 + place, "output_tokens": 16}
        for place, weight in enumerate(weights)
    ]
    plan = shardwright.plan_mix("llama-3.2-1b on 1 L4", workloads=kinds).plan
    assert plan is not None and plan.workload.lengths is not None and plan.workload.lengths.pairs is not None
    counts = Counter(pair[0] - 64 for pair in plan.workload.lengths.pairs)
    for place, weight in enumerate(weights):
        assert counts[place] / counts.total() == pytest.approx(weight / sum(weights), abs=0.0011)


def test_the_load_of_a_mix_shares_prefixes_as_its_prompts_do() -> None:
    kinds = [{**KINDS[0], "prefix_cache_hit_rate": 0.5}, KINDS[1]]
    plan = shardwright.plan_mix("llama-3.2-1b on 1 L4", workloads=kinds).plan
    assert plan is not None
    assert plan.workload.prefix_cache_hit_rate == pytest.approx(0.5 * 3 * 1024 / (3 * 1024 + 6000))
