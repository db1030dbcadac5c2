"""The columns of the serving simulation: what is timed at once is what each load takes by itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from shardwright.tools.performance.operation import Operation, TokenLoad, longest_path, seconds_on_path
from shardwright.tools.performance.schedule import PhaseTimer, pass_seconds
from shardwright.tools.performance.step_times import StepTimes

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
    parts = sum(StepTimes(layout.setting, one).linear([1])[0] for one in alone)
    assert StepTimes(layout.setting, timer).linear([1])[0] == pytest.approx(parts + sends)


def _operation(name: str, seconds: float, *inputs: str) -> Operation:
    return Operation(name, "Linear", "moe", "stage", (), (), inputs=inputs, seconds=seconds)


@pytest.mark.parametrize(("left", "right", "meant"), [(2.0, 1.0, 2.0), (1.0, 2.0, 0.0), (3.0, 0.5, 3.0)])
def test_only_what_lies_on_the_longer_branch_is_on_the_path(left: float, right: float, meant: float) -> None:
    operations = [
        _operation("begin", 1.0), _operation("left", left, "begin"), _operation("right", right, "begin"),
        _operation("end", 1.0, "left", "right"),
    ]  # fmt: skip
    found = seconds_on_path(operations, lambda operation: operation.name == "left")
    assert found == meant
    assert sum(o.seconds for o in longest_path(operations).operations if o.name == "left") == meant
