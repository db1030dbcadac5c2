"""Programs state constraints and limits as arguments, without English."""

from __future__ import annotations

import re

import pytest

import shardwright
from shardwright.agent.stated.constraints import stated_constraints
from shardwright.tools.errors import InputError

LINES = [
    ("tp <= 4", {"kind": "degree", "value": {"name": "tp", "relation": "<=", "degree": 4}}),
    ("decode ep = 8", {"kind": "degree", "phase": "decode", "value": {"name": "ep", "relation": "=", "degree": 8}}),
    ("no pp", {"kind": "degree", "value": {"name": "pp", "relation": "forbidden"}}),
    ("replicas = 3", {"kind": "replicas", "value": 3}),
    ("reserved_nodes = 1", {"kind": "reserved_nodes", "value": 1}),
    ("reserved_gpus=2", {"kind": "reserved_gpus", "value": 2}),
    ("free_gb_per_gpu = 10", {"kind": "free_bytes_per_gpu", "value": 10_000_000_000}),
    ("TP within node", {"kind": "within_node", "value": "tp"}),
    ("pp across nodes", {"kind": "across_nodes", "value": "pp"}),
    ("usd_per_hour <= 40.5", {"kind": "usd_per_hour", "value": 40.5}),
    ("accelerators = H100, L40S", {"kind": "accelerators", "value": ("h100-sxm", "l40s")}),
]


@pytest.mark.parametrize(("line", "fields"), LINES, ids=[line for line, _ in LINES])
def test_a_line_is_one_constraint_and_keeps_its_words(line: str, fields: dict[str, object]) -> None:
    (read,) = stated_constraints(line) or ()
    assert read.model_dump(exclude_none=True) == {**fields, "words": line}


@pytest.mark.parametrize("line", ["", "tp at most 4", "tp <= 0", "no tensor", "replicas = -1", "accelerators = Z9"])
def test_what_is_no_constraint_is_refused_in_one_line(line: str) -> None:
    with pytest.raises(InputError) as caught:
        stated_constraints([line])
    assert "\n" not in str(caught.value)


def test_a_plan_asked_for_by_arguments_keeps_them() -> None:
    result = shardwright.plan(
        model="Llama-3.1-8B", hardware="1x4:h100-sxm", input_tokens=512, output_tokens=64, concurrency=8,
        ttft_ms=2000, constraints=["tp <= 2"],
    )  # fmt: skip
    assert result.plan is not None and result.plan.workload.ttft_ms_max == 2000
    assert max(result.plan.strategy.prefill.tp, result.plan.strategy.decode.tp) <= 2


def test_an_argument_that_there_is_not_is_refused_by_its_name() -> None:
    with pytest.raises(TypeError, match="ttft"):
        shardwright.plan(model="Llama-3.1-8B", hardware="1x4:h100-sxm", ttft=3)  # type: ignore[call-arg]


def test_a_pipeline_that_must_cross_nodes_does() -> None:
    result = shardwright.plan(
        model="Llama-3.1-8B", hardware="2x2:h100-sxm", input_tokens=512, output_tokens=64, concurrency=4,
        constraints=["pp across nodes"],
    )  # fmt: skip
    assert result.plan is not None and result.plan.strategy.decode.pp > 1
    inside = result.plan.model_dump(mode="json", exclude_none=True)
    inside["policy"]["constraints"] = [{"kind": "within_node", "value": "pp", "words": "PP inside the node"}]
    assert "CO008" in {violation.rule for violation in shardwright.validate(inside).violations}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("constraint", "words", "told"),
    [
        ("tp = 5", "", r"“tp = 5” refused \d+.*TP005 \(uneven split\) refused"),
        ("reserved_gpus = 8", "", "no GPU is left"),
        ("usd_per_hour <= 1", "", "costs"),
        ("decode pp = 2", "with SGLang 0.4.8", r"EN012 \(pipelined side\) refused"),
    ],
)
def test_what_refuses_every_strategy_is_named_and_never_memory(constraint: str, words: str, told: str) -> None:
    result = shardwright.plan(
        words, model="Llama-3.1-8B", hardware="1x8:h100-sxm", constraints=[constraint], disaggregated=bool(words)
    )
    refused = result.infeasible
    assert refused is not None and refused.rule == "CO008" and refused.shortfall_bytes is None
    assert re.search(told, refused.reason) and "weights" not in refused.reason
