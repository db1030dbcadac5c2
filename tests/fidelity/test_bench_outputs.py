"""Outputs of vLLM's and SGLang's benchmark clients become situations, or are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.bench_outputs import Run, Served, read_runs

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "bench_outputs.json").read_text(encoding="utf-8")
)
READ, REFUSED = CASES["read"], CASES["refused"]


def output_of(case: dict[str, Any]) -> dict[str, Any]:
    """A plain output with the changes of a case."""
    changed = CASES["plain"][case["of"]] | case.get("change", {})
    return {name: value for name, value in changed.items() if name not in case.get("drop", ())}


def served_of(case: dict[str, Any]) -> Served:
    """One H100, with the changes of a case."""
    return Served(**({"accelerator": "h100-sxm"} | case.get("served", {})))


def run_of(case: dict[str, Any]) -> Run:
    """The one run of a case."""
    (run,) = read_runs(json.dumps(output_of(case)), "bench.json", served_of(case))
    return run


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_an_output_says_how_requests_came_and_what_users_saw(case: dict[str, Any]) -> None:
    run = run_of(case)
    situation = run.situation
    if "arrivals" in case:
        name, *values = case["arrivals"]
        assert type(situation.arrivals).__name__ == name
        assert list(astuple(situation.arrivals))[: len(values)] == values
    if "lengths" in case:
        sent, received, spread = case["lengths"]
        assert situation.lengths.spread == pytest.approx(spread, abs=0.01)
        # The mean of the lengths is that of the run, whatever their spread.
        whole = 1.0 - situation.lengths.spread / 2.0
        assert situation.lengths.input_tokens * whole == pytest.approx(sent * (1.0 - spread / 2.0), abs=2.0)
        assert situation.lengths.output_tokens * whole == pytest.approx(received * (1.0 - spread / 2.0), abs=2.0)
    if "measured" in case:
        assert run.measured == case["measured"]
    if "engine" in case:
        assert situation.deployment.engine.name == case["engine"]
    if "tp" in case:
        assert situation.deployment.strategy.decode.tp == case["tp"]
    assert case.get("assumes", "") in "; ".join(run.assumptions)


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_what_cannot_be_modelled_is_refused_by_name(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        run_of(case)
    message = str(refused.value)
    assert message.startswith("bench.json: run 1: ")
    assert case["says"] in message
    assert "\n" not in message


def test_several_runs_in_one_file_are_read_one_after_another() -> None:
    text = "\n".join(json.dumps(CASES["plain"]["vllm"] | {"max_concurrency": users}) for users in (1, 2, 4))
    runs = read_runs(text, "bench.jsonl", served_of({}))
    assert [run.name for run in runs] == ["1: 1 user", "2: 2 users", "3: 4 users"]
    assert [getattr(run.situation.arrivals, "users", None) for run in runs] == [1, 2, 4]


def test_the_deployment_has_the_nodes_and_degrees_that_were_stated() -> None:
    case = {"of": "vllm", "served": {"nodes": 2, "gpus_per_node": 8, "tp": 8, "pp": 2, "weights": "fp8"}}
    deployment = run_of(case).situation.deployment
    assert (deployment.nodes, deployment.gpus_per_node) == (2, 8)
    assert (deployment.strategy.decode.tp, deployment.strategy.decode.pp) == (8, 2)
    assert deployment.precision.weights == "fp8"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "line 1: not JSON"),
        ("[2]", "holds JSON that is no object"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"num_prompts": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_broken_json_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_runs(text, "bench.json", served_of({}))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from(("tp_size", "version")), SCALARS)


@given(
    st.sampled_from(("vllm", "sglang")),
    st.dictionaries(
        st.sampled_from(sorted({**CASES["plain"]["vllm"], **CASES["plain"]["sglang"]})), VALUES, max_size=5
    ),
)
def test_no_value_does_anything_but_be_read_or_refused(of: str, change: dict[str, Any]) -> None:
    try:
        run_of({"of": of, "change": change})
    except InputError as error:
        assert "\n" not in str(error)
