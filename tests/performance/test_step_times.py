"""The columns of the serving simulation: loads timed together take what each takes alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from shardwright.tools.calibration.engine_profile import engine_profile
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.performance.operation import Operation, TokenLoad, longest_path, seconds_on_path
from shardwright.tools.performance.schedule import PhaseTimer, pass_seconds
from shardwright.tools.performance.serving.costs import beside_or
from shardwright.tools.performance.serving.step_table import StepTable
from shardwright.tools.performance.step_times import Range, StepTimes, step_table

from ..examples import examples
from .physics_space import Deployment, deployments

COUNTS = (1, 2, 6, 32, 200, 1000, 9000)


@given(deployments())
@examples(25)
def test_columns_that_are_timed_at_once_are_those_of_each_load(deployment: Deployment) -> None:
    layout = deployment.layout()
    for phase in ("prefill", "decode"):
        times = StepTimes(layout.setting, PhaseTimer(layout.setting, layout.phase(phase)))
        for read in (times.linear, times.linear_alone, times.met):
            one_by_one = [read([count])[0] for count in COUNTS]
            assert read(COUNTS) == pytest.approx(one_by_one, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("model", ["Llama-3.1-8B", "DeepSeek-V3", "Qwen3-Next-80B-A3B-Instruct"])
@pytest.mark.parametrize("sp", [1, 2])
def test_a_prompt_takes_as_long_in_the_columns_as_in_its_pass(layout_of: Any, model: str, sp: int) -> None:
    ep = {} if model.startswith("Llama") else {"ep": 2 * sp}
    tokens = 8192
    layout = layout_of(model, {"tp": 2, "tp_ffn": 2, "sp": sp, **ep}, nodes=4)
    timer = PhaseTimer(layout.setting, layout.phase("prefill"))
    times = StepTimes(layout.setting, timer)
    columns = times.linear([tokens])[0] + times.chunk(tokens, 0, windowed=False) + times.head(1)
    assert columns == pytest.approx(sum(pass_seconds(timer, TokenLoad(1, tokens, 0))), rel=0.03)


def test_like_stages_count_as_often_as_there_are(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2, "pp": 4}, concurrency=8)
    timer = PhaseTimer(layout.setting, layout.phase("decode"))
    alone = [PhaseTimer(layout.setting, timer.phase, (stage,)) for stage in timer.stages]
    sends = sum(
        stage.send(TokenLoad(1, 1, 0), following).seconds
        for stage, following in zip(timer.stages, timer.stages[1:], strict=False)
    )
    parts = sum(StepTimes(layout.setting, stage_timer).linear([1])[0] for stage_timer in alone)
    assert StepTimes(layout.setting, timer).linear([1])[0] == pytest.approx(parts + sends)


def _operation(name: str, seconds: float, *inputs: str) -> Operation:
    return Operation(name, "Linear", "moe", "stage", (), (), inputs=inputs, seconds=seconds)


@pytest.mark.parametrize(("left", "right", "meant"), [(2.0, 1.0, 2.0), (1.0, 2.0, 0.0), (3.0, 0.5, 3.0)])
def test_only_what_lies_on_the_longer_branch_is_on_the_path(left: float, right: float, meant: float) -> None:
    operations = [
        _operation("begin", 1.0), _operation("left", left, "begin"), _operation("right", right, "begin"),
        _operation("end", 1.0, "left", "right"),
    ]  # fmt: skip
    on_path_s = seconds_on_path(operations, lambda operation: operation.name == "left")
    assert on_path_s == meant
    assert sum(o.seconds for o in longest_path(operations).operations if o.name == "left") == meant


# Engine and release, GPUs, model, and whether decode beside prompts takes longer than by itself.
BESIDE = [
    ("vllm", "0.11.0", "a100-80gb-sxm", "Qwen3-32B", True),
    ("vllm", "0.11.0", "l40s", "Llama-3.1-8B", True),
    # FlashAttention 3; the old engine and others part the two; MLA and sinks have kernels of their own.
    ("vllm", "0.11.0", "h100-sxm", "Qwen3-32B", False),
    ("vllm", "0.6.3", "a100-80gb-sxm", "Qwen3-32B", False),
    ("sglang", "0.5.5", "a100-80gb-sxm", "Qwen3-32B", False),
    ("trtllm", "1.0.0", "a100-80gb-sxm", "Qwen3-32B", False),
    ("vllm", "0.11.0", "a100-80gb-sxm", "DeepSeek-V2-Lite", False),
    ("vllm", "0.11.0", "a100-80gb-sxm", "gpt-oss-20b", False),
]


def table_of(layout_of: Any, engine: str, version: str, accelerator: str, model: str) -> StepTable:
    serving = {"engine": engine, "engine_version": version}
    layout = layout_of(model, {"tp": 2, "tp_ffn": 2}, accelerator=accelerator, serving=serving)
    timer = PhaseTimer(layout.setting, layout.phase("decode"))
    reach = Range(tokens=4096, sequences=64, chunk=2048, prompt=2000, request=2100)
    return step_table(layout.setting, timer, timer, reach)


@pytest.mark.parametrize(("engine", "version", "accelerator", "model", "takes_longer"), BESIDE)
def test_decode_beside_prompts_takes_longer_where_one_kernel_does_both(
    layout_of: Any, engine: str, version: str, accelerator: str, model: str, takes_longer: bool
) -> None:
    table = table_of(layout_of, engine, version, accelerator, model)
    beside = beside_or(table.beside_per_token_s, table.decode_per_token_s)
    assert (beside[-1] > 1.5 * table.decode_per_token_s[-1]) is takes_longer
    assert takes_longer or beside == table.decode_per_token_s


def test_a_token_that_decodes_beside_prompts_fills_a_tile_of_each_query_head(layout_of: Any) -> None:
    table = table_of(layout_of, "vllm", "0.11.0", "a100-80gb-sxm", "Qwen3-32B")
    # 64 layers, 32 query heads 128 wide on each of two GPUs, tiles of 128 rows, at 312 TFLOP/s and 0.603 of it.
    flops = 64 * 32 * 4 * 128 * 128
    scale = engine_profile("vllm", "0.11.0", find_accelerator("a100-80gb-sxm")).entry.constants.attention_scale
    assert table.beside_per_token_s[-1] == pytest.approx(scale * flops / (0.603 * 312e12), rel=0.05)
