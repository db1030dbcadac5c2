"""What is published of deployments in service: what fits, what each device holds, how fast it runs, which layout wins.

A row that the model misses says why and is expected to fail, so that it is noticed when it no longer does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.catalog.models import find_model
from shardwright.tools.performance.layout import LoadedLayout, layout_from_view
from shardwright.tools.performance.memory import device_memory, fits, max_concurrency
from shardwright.tools.performance.operation import TokenLoad
from shardwright.tools.performance.request_memory import all_layers, bytes_per_token, request_bytes
from shardwright.tools.performance.schedule import PhaseTimer
from shardwright.tools.performance.serving.load import Lengths, ServingTimes, closed_loop
from shardwright.tools.performance.serving_estimate import serve
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.view import PlanView

LayoutOf = Callable[..., LoadedLayout]
Row = dict[str, Any]
TABLE = json.loads((Path(__file__).parents[1] / "cases" / "deployment_checks.json").read_text(encoding="utf-8"))


def rows(kind: str) -> list[Any]:
    """The rows of a kind; those that the model misses are expected to fail."""
    return [
        pytest.param(
            row,
            id=row["name"],
            marks=[pytest.mark.xfail(strict=True, reason=row["misses"])] if "misses" in row else [],
        )
        for row in TABLE[kind]
    ]


def laid_out(row: Row, layout_of: LayoutOf, degrees: dict[str, Any] | None = None) -> LoadedLayout:
    """The layout of a row; `dp` among its degrees is the number of replicas."""
    chosen = dict(row["degrees"] if degrees is None else degrees)
    options = dict(row["options"])
    options["relaxations"] = tuple(options.get("relaxations", ()))
    return layout_of(row["model"], {k: v for k, v in chosen.items() if k != "dp"}, dp=chosen.get("dp", 1), **options)


def served(layout: LoadedLayout, users: int) -> ServingTimes:
    """Times that `users` of the layout see who each send one request after the other."""
    workload = layout.setting.workload
    return serve(
        layout, closed_loop(users, len(layout.decode_replicas)), Lengths(workload.input_tokens, workload.output_tokens)
    )


@pytest.mark.parametrize("row", rows("weights"))
def test_weights_of_a_device_with_redundant_experts(row: Row) -> None:
    """fp8 but for embedding and head; the tolerance is for router and block scales, which the figures leave out."""
    phase = PhaseStrategy(attention_dp=row["ranks"], ep=row["ranks"])
    plan = build_plan(
        BuildRequest(
            model=ModelBlock(name="DeepSeek-V3", config=dict(find_model("DeepSeek-V3").config)),
            hardware=HardwareBlock(accelerator="h800", nodes=row["ranks"] // 8, gpus_per_node=8),
            workload=WorkloadBlock(input_tokens=4096, output_tokens=512, concurrency=row["ranks"]),
            precision=PrecisionBlock(weights="fp8", kv_cache="bf16", activations="fp8"),
            strategy=Strategy(dp=1, gpu_count=row["ranks"], prefill=phase, decode=phase),
            policy=PolicyBlock(relaxations=("attention_dp", "redundant_experts")),
            redundant_experts=row["redundant"],
        )
    )
    devices = device_memory(layout_from_view(PlanView(plan.model_dump(mode="json")))).per_device
    assert max(device.weights_bytes for device in devices) / 1e9 == pytest.approx(row["gb"], abs=0.35)


def test_one_routed_expert_of_all_layers_of_deepseek_weighs_2_55_gb(layout_of: LayoutOf) -> None:
    setting = layout_of("DeepSeek-V3", {}, weights="fp8").setting
    experts = [layer.moe.expert_tensors for layer in setting.architecture.layers if layer.moe is not None]
    assert len(experts) == 58
    assert sum(setting.tensor_bytes(tensors).total for tensors in experts) == pytest.approx(2.55e9, rel=2e-3)


def test_the_experts_of_gpt_oss_weigh_60_9_gb(layout_of: LayoutOf) -> None:
    """114.66 billion weights at 4.25 bits; the biases of their matrices come on top."""
    setting = layout_of("gpt-oss-120b", {}, weights="mxfp4").setting
    experts = [layer.moe for layer in setting.architecture.layers if layer.moe is not None]
    total = sum(moe.experts * setting.tensor_bytes(moe.expert_tensors).total for moe in experts)
    assert total / 1e9 == pytest.approx(60.9, rel=5e-3)


def test_four_kv_heads_on_eight_devices_are_held_twice_unless_the_tokens_are_split(layout_of: LayoutOf) -> None:
    """vllm-project/vllm, docs on context parallel deployment: Qwen3-235B at TP8, DCP2."""
    setting = layout_of("Qwen3-235B-A22B", {"tp": 8, "ep": 8}, input_tokens=1024).setting
    assert bytes_per_token(setting) == 192_512
    assert request_bytes(setting, all_layers(setting), 1000, 8) == 1000 * 48_128
    assert request_bytes(setting, all_layers(setting), 1000, 4, 2) == 1000 * 24_064


@pytest.mark.parametrize("row", rows("fits"))
def test_what_runs_fits_and_what_is_said_not_to_does_not(row: Row, layout_of: LayoutOf) -> None:
    assert fits(laid_out(row, layout_of)) is row["fits"]


@pytest.mark.parametrize("row", rows("most_requests"))
def test_the_most_requests_that_fit(row: Row, layout_of: LayoutOf) -> None:
    layout = laid_out(row, layout_of)
    per_device = max_concurrency(layout) / len(layout.devices)
    assert per_device == pytest.approx(row["per_device"], rel=row["tolerance"])


@pytest.mark.parametrize("row", rows("rates"))
def test_tokens_per_second_of_a_gpu_in_one_phase(row: Row, layout_of: LayoutOf) -> None:
    layout, load = laid_out(row, layout_of), TokenLoad(**row["load"])
    timer = PhaseTimer(layout.setting, layout.phase(row["phase"]))
    seconds = (timer.prefill([load]) if row["phase"] == "prefill" else timer.decode(load, 1)).seconds
    rate = load.all_tokens / seconds / len(layout.phase(row["phase"]).devices)
    assert rate == pytest.approx(row["tokens_per_s_per_gpu"], rel=row["tolerance"])


def test_a_user_of_deepseek_in_service_sees_20_to_22_tokens_a_second(layout_of: LayoutOf) -> None:
    """deepseek-ai/open-infra-index, day 6: EP144, at the batch that makes 14.8k tokens/s of a node."""
    row = next(row for row in TABLE["rates"] if "88 on each of 144" in row["name"])
    layout, load = laid_out(row, layout_of), TokenLoad(**row["load"])
    seconds = PhaseTimer(layout.setting, layout.phase("decode")).decode(load, 1).seconds
    assert 1 / seconds == pytest.approx(21.0, rel=0.30)


@pytest.mark.parametrize("row", rows("serving"))
def test_output_tokens_per_second_under_load(row: Row, layout_of: LayoutOf) -> None:
    layout = laid_out(row, layout_of)
    assert fits(layout, row["users"])
    assert served(layout, row["users"]).output_tokens_per_s == pytest.approx(
        row["output_tokens_per_s"], rel=row["tolerance"]
    )


@pytest.mark.parametrize("row", rows("which_wins"))
def test_the_layout_that_is_recommended_wins(row: Row, layout_of: LayoutOf) -> None:
    good, bad = (served(laid_out(row, layout_of, row[which]), row["users"]) for which in ("better", "worse"))
    gain = good.output_tokens_per_s / bad.output_tokens_per_s
    if row["metric"] == "tpot":
        gain = bad.tpot.mean / good.tpot.mean
    assert row["at_least"] < gain < row.get("at_most", math.inf)
