"""The file of a sweep: its cases, their order, and the files that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.sweep.document import MAX_CASES, MAX_FILE_BYTES, read_sweep, read_sweep_file
from shardwright.tools.errors import InputError

from ..examples import examples
from .samples import CASES, SMALL, TINY, sweep_of

REFUSED = json.loads((Path(__file__).parents[1] / "cases" / "sweeps_refused.json").read_text(encoding="utf-8"))
WORKLOAD = {"name": "a", "input_tokens": 1, "output_tokens": 1}


def test_a_sweep_is_the_product_in_the_order_of_the_file() -> None:
    cases = sweep_of(SMALL).cases
    assert len(cases) == CASES
    assert [case.model for case in cases] == ["tiny-dense"] * 6 + ["meta-llama/Llama-3.1-8B"] * 6
    assert [case.hardware for case in cases[:6:2]] == ["1x2:h100-sxm", "2x1:rtx-4090", "one T4"]
    assert [case.workload for case in cases[:2]] == ["chat", "fast"]


def test_yaml_and_json_say_the_same() -> None:
    written = (
        "models: [llama-3.1-8b]\n"
        "hardware: ['2x8:h100', {accelerator: h200, nodes: 1, gpus_per_node: 8, intra_node_bw_gb_s: 400}]\n"
        "workloads:\n  - {name: a, input_tokens: 1024, output_tokens: 16, input_tokens_range: [512, 2048]}\n"
        "precision: [bf16, {weights: fp8, kv_cache: fp8}]\nrelaxations: [attention_dp]\nengine: vllm\n"
    )
    as_json = {
        "models": ["llama-3.1-8b"],
        "hardware": [
            "2x8:h100",
            {"accelerator": "h200", "nodes": 1, "gpus_per_node": 8, "intra_node_bw_gb_s": 400},
        ],
        "workloads": [
            {"name": "a", "input_tokens": 1024, "output_tokens": 16, "input_tokens_range": [512, 2048]},
        ],
        "precision": ["bf16", {"weights": "fp8", "kv_cache": "fp8"}],
        "relaxations": ["attention_dp"],
        "engine": "vllm",
    }
    sweep = read_sweep(written, "a.yaml")
    assert sweep == sweep_of(as_json)
    said = sweep.cases[1].said
    assert (said.weights, said.kv_cache, said.engine, said.relaxations) == ("fp8", "fp8", "vllm", ("attention_dp",))
    assert said.input_tokens_range == (512, 2048)
    assert said.concurrency is None  # left to the objective, as in a plan


def test_lengths_are_written_as_on_the_command_line() -> None:
    workload = {"name": "a", "input_tokens": "2k", "output_tokens": "1,000"}
    said = sweep_of({**TINY, "workloads": [workload]}).cases[0].said
    assert (said.input_tokens, said.output_tokens) == (2048, 1000)


def test_the_hash_changes_with_what_is_asked_and_with_nothing_else() -> None:
    digest = sweep_of(TINY).digest
    assert sweep_of(json.loads(json.dumps(TINY))).digest == digest
    longer = {**TINY, "workloads": [{**TINY["workloads"][0], "output_tokens": 65}]}
    assert sweep_of(longer).digest != digest
    assert sweep_of({**TINY, "models": [*TINY["models"], "llama-3.1-8b"]}).keys[:4] == sweep_of(TINY).keys


def test_the_config_behind_a_path_is_part_of_the_hash(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY["models"][0]))
    asked = {**TINY, "models": [str(path)]}
    before = sweep_of(asked)
    assert before.cases[0].model == str(path)
    path.write_text(json.dumps({**TINY["models"][0], "num_hidden_layers": 2}))
    assert sweep_of(asked).digest != before.digest


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["because"])
def test_a_file_that_is_no_sweep_is_one_line(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        read_sweep(case["text"], "sweep.yaml")
    assert case["because"] in str(refusal.value)
    assert str(refusal.value).startswith("sweep.yaml")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ['{"models": ' + "[" * 500 + "]" * 500 + "}", "models: " + "[" * 500 + "]" * 500])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        read_sweep(text, "deep")


def test_too_large_a_file_and_too_many_cases_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(InputError, match="larger than"):
        read_sweep_file(path)
    too_many = {
        "models": ["llama-3.1-8b", "llama-3.1-70b"],
        "hardware": [f"{nodes}x1:h100-sxm" for nodes in range(1, 501)],
        "workloads": [{**WORKLOAD, "name": f"w{number}"} for number in range(500)],
    }
    assert MAX_CASES < 2 * 500 * 500
    with pytest.raises(InputError, match="at most 200,000"):
        sweep_of(too_many)


@examples(60)
@given(
    st.dictionaries(
        st.sampled_from(["models", "hardware", "workloads", "precision", "engine", "disaggregated", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
            max_leaves=8,
        ),
    )
)
def test_any_object_is_a_sweep_or_one_line(content: dict[str, Any]) -> None:
    try:
        sweep_of(content)
    except InputError as error:
        assert "\n" not in str(error)
