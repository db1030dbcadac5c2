"""If number formats are open, the right ones are considered, and the plan is the best in any of them."""

from __future__ import annotations

from typing import Any

import pytest

import shardwright
from shardwright.agent.intent.complete import complete
from shardwright.agent.intent.formats import complete_precision, formats_on
from shardwright.agent.intent.intent import Intent
from shardwright.agent.mix import plan_mix
from shardwright.agent.search_api import search
from shardwright.tools.catalog.accelerators import Accelerator
from shardwright.tools.catalog.dtypes import DTYPES, DType, element_bytes
from shardwright.tools.catalog.hardware import all_accelerators, find_accelerator
from shardwright.tools.errors import InputError
from shardwright.tools.language.brief import read_brief
from shardwright.tools.language.request import read_request
from shardwright.tools.language.said import OpenPrecisions, Said, StatedPrecision

ANY = OpenPrecisions(is_open=True)
LOAD: dict[str, Any] = {"input_tokens": 2048, "output_tokens": 256}


def names(choice: OpenPrecisions, checkpoint: DType, accelerator: str) -> list[str]:
    """The formats to consider, as weights / activations / KV cache."""
    formats = formats_on(choice, checkpoint, find_accelerator(accelerator))
    return [f"{precision.weights}/{precision.activations}/{precision.kv_cache}" for precision in formats]


@pytest.mark.parametrize(
    ("own", "accelerator", "expected"),
    [
        ("bf16", "h100-sxm", ["bf16/bf16/bf16", "fp8/fp8/bf16"]),
        ("bf16", "a100-80gb-sxm", ["bf16/bf16/bf16"]),
        ("fp16", "h100-sxm", ["fp16/fp16/fp16", "fp8/fp8/bf16"]),
        ("fp8", "h100-sxm", ["fp8/fp8/bf16", "bf16/bf16/bf16"]),
        ("fp8", "a100-80gb-sxm", ["fp8/bf16/bf16", "bf16/bf16/bf16"]),
        ("mxfp4", "b200", ["mxfp4/bf16/bf16", "bf16/bf16/bf16"]),
    ],
)
def test_open_is_the_checkpoints_own_and_what_the_accelerator_computes_in(
    own: DType, accelerator: str, expected: list[str]
) -> None:
    assert names(ANY, own, accelerator) == expected


@pytest.mark.parametrize("own", DTYPES)
def test_four_bits_are_never_taken_unasked_and_the_checkpoint_comes_first(own: DType) -> None:
    for accelerator in all_accelerators():
        formats = formats_on(ANY, own, accelerator)
        first = accelerator.computes_in(own)
        assert formats[0].weights == first
        assert len(set(formats)) == len(formats)
        assert all(element_bytes(precision.weights) >= 1 for precision in formats if precision.weights != first)


def test_what_is_named_joins_what_is_excluded_goes_and_what_is_stated_stays() -> None:
    four = OpenPrecisions(is_open=True, named=(StatedPrecision(weights="int4"),))
    assert names(four, "bf16", "h100-sxm") == ["bf16/bf16/bf16", "fp8/fp8/bf16", "int4/bf16/bf16"]
    assert names(OpenPrecisions(is_open=True, excluded=("bf16",)), "bf16", "h100-sxm") == ["fp8/fp8/bf16"]
    common = ANY.model_copy(update={"common": StatedPrecision(kv_cache="fp8")})
    assert names(common, "bf16", "h100-sxm") == ["bf16/bf16/fp8", "fp8/fp8/fp8"]
    kv = OpenPrecisions(named=(StatedPrecision(kv_cache="fp8"), StatedPrecision(kv_cache="bf16")))
    assert names(kv, "bf16", "h100-sxm") == ["bf16/bf16/fp8", "bf16/bf16/bf16"]


def test_a_later_statement_replaces_a_choice_and_a_choice_an_earlier_statement() -> None:
    opened, stated = Said(model="llama-3.1-8b", precisions=ANY), Said(weights="fp8")
    intent = complete(opened, stated)
    assert intent.precisions is None and intent.precision.weights == "fp8"
    other = complete(Said(model="llama-3.1-8b", weights="fp8"), Said(precisions=ANY))
    assert other.precisions is not None and other.precision.weights == "bf16"


def test_what_is_looked_at_is_a_stated_assumption() -> None:
    intent: Intent = complete(Said(model="llama-3.1-8b", accelerator="h100-sxm", gpus=2, precisions=ANY))
    assumed = [assumption for assumption in intent.assumptions if assumption.field.startswith("precision")]
    assert [assumption.value for assumption in assumed] == ["bf16, fp8"]
    assert "quality is yours to judge" in assumed[0].reason


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.yaml", "precision: any", OpenPrecisions(is_open=True)),
        ("b.yaml", "precision:\n  weights: any", OpenPrecisions(is_open=True)),
        ("c.yaml", "precision: [fp8, bf16]", None),
        ("d.md", "Precision: FP8 or BF16", None),
        ("e.md", "- 精度: 不限", OpenPrecisions(is_open=True)),
        ("f.md", "- Quantization is up to you, no int4.", OpenPrecisions(is_open=True, excluded=("int4",))),
    ],
)
def test_a_brief_may_leave_them_open(name: str, text: str, expected: OpenPrecisions | None) -> None:
    said = read_brief([(name, f"model: Llama-3.1-70B\n{text}\n")])
    two = OpenPrecisions(named=(StatedPrecision(weights="fp8"), StatedPrecision(weights="bf16")))
    assert said.precisions == (expected or two)
    assert said.weights is None and said.words["precisions"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("objective", ["latency", "throughput", "cost"])
def test_the_plan_is_valid_and_the_better_of_the_searches_of_one_format(objective: str) -> None:
    text = f"Llama-3.1-8B on 2 H100, 2k in / 256 out, 8 requests at once, {objective}"
    each = {name: search(text, precision=name).best for name in ("bf16", "fp8")}
    planned, answer = shardwright.plan(f"{text}, any precision"), search(text, precision="any")
    assert planned.valid and planned.plan is not None and planned.report is not None and answer.best is not None
    assert answer.best.precision == planned.plan.precision == answer.request.precision
    figures = {
        name: (best.end_to_end_ms if objective == "latency" else -(best.output_tokens_per_s_per_gpu or 0.0))
        for name, best in each.items()
        if best is not None
    }
    winner = min(figures, key=lambda name: figures[name] or 0.0)
    best = each[winner]
    assert best is not None and planned.plan.precision.weights == winner
    assert (answer.best.strategy, answer.best.output_tokens_per_s) == (best.strategy, best.output_tokens_per_s)
    assert planned.plan.strategy == best.strategy
    reasons = [assumption for assumption in planned.report.assumptions if assumption.field.startswith("precision")]
    assert len(reasons) == 1 and reasons[0].value == winner and "the best in" in reasons[0].reason
    assert f" in {winner} " in planned.report.explanation


def test_the_plan_keeps_stated_degrees_in_the_format_that_is_best_for_them() -> None:
    text = "Llama-3.1-8B on 2 H100, TP1, precision fp8 or bf16"
    planned = shardwright.plan(text)
    assert planned.plan is not None and planned.valid and planned.plan.strategy.decode.tp == 1
    single = shardwright.plan(text.replace("fp8 or bf16", planned.plan.precision.weights))
    assert single.plan == planned.plan


def test_the_fewest_cards_are_those_of_the_smaller_format_where_one_may_be_chosen() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "hardware": "h100-sxm", "workload": LOAD}
    wide, free = search(**asked, precision="bf16"), search(**asked, precision="any")
    assert wide.best is not None and free.best is not None
    assert free.best.gpus < wide.best.gpus and free.request.precision.weights == "fp8"
    reasons = [assumption.reason for assumption in free.assumptions if assumption.field == "precision"]
    assert len(reasons) == 1 and "chosen with the hardware" in reasons[0]


def test_unnamed_hardware_is_chosen_with_the_format() -> None:
    wide, free = (search(model="llama-3.1-70b", workload=LOAD, precision=name) for name in ("bf16", "any"))
    assert wide.request.hardware is not None and free.request.hardware is not None
    memory = [
        (find_accelerator(str(block.accelerator)).memory_gb_marketing or 0.0) * block.nodes * block.gpus_per_node
        for block in (free.request.hardware, wide.request.hardware)
    ]
    assert memory[0] < memory[1]


@pytest.mark.thorough
def test_what_cannot_be_met_in_any_format_is_refused_with_the_nearest() -> None:
    answer = search(model="llama-3.1-405b", hardware="1x4:h100-sxm", workload=LOAD, precision=["bf16", "fp8"])
    assert answer.infeasible is not None and "in fp8" in answer.infeasible.reason
    assert answer.infeasible.needs.gpus is not None and "in fp8" in (answer.infeasible.needs.note or "")
    alone = search(model="llama-3.1-405b", hardware="1x4:h100-sxm", workload=LOAD, precision="fp8")
    assert alone.infeasible is not None and alone.infeasible.needs.gpus == answer.infeasible.needs.gpus


@pytest.mark.thorough
def test_the_limits_within_reach_name_their_format() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm", "workload": LOAD}
    answer = search(**asked, ttft_ms_max=1e5, tpot_ms_max=0.5, precision="any")
    reach = {within.limit: within.best for within in answer.within_reach}
    best = reach["tpot_ms_max"]
    assert best is not None and best.precision is not None and best.precision.weights == "fp8"
    single = search(**asked, ttft_ms_max=1e5, precision="fp8")
    assert single.best is not None and best.tpot_ms == pytest.approx(single.best.tpot_ms)


def test_what_flips_the_answer_is_asked_in_the_chosen_format() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm", "workload": LOAD, "sensitivity": True}
    free, single = search(**asked, precision="any"), search(**asked, precision="fp8")
    assert free.request.precision == single.request.precision
    assert free.sensitivity is not None and single.sensitivity is not None
    assert free.sensitivity.unchanged == single.sensitivity.unchanged
    assert [flip.change for flip in free.sensitivity.flips] == [flip.change for flip in single.sensitivity.flips]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_a_mix_is_planned_in_the_best_of_the_formats(objective: Any) -> None:
    kinds = [
        {"name": "chat", "weight": 3, "input_tokens": 1024, "output_tokens": 256},
        {"name": "long", "weight": 1, "input_tokens": 6000, "output_tokens": 300},
    ]
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm", "objective": objective}
    free = plan_mix(workloads=kinds, **asked, precision="any")
    each = [plan_mix(workloads=kinds, **asked, precision=name) for name in ("bf16", "fp8")]
    assert free.plan is not None and free.precision == free.plan.precision
    assert free.candidates[0].output_tokens_per_s == max(mix.candidates[0].output_tokens_per_s for mix in each)
    assert free.evaluated == sum(mix.evaluated for mix in each)


@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("anything", "'anything' is no number format of weights"),
        ("fp8,fp9", "'fp9' is no number format of weights"),
        ([], "a list holds one to 20"),
        (["any", "fp8"], "each by itself"),
        ([{"weight": "fp8"}], "did you mean 'weights'"),
        ([{"weights": "fp9"}, "fp8"], "precision: weights"),
        (["fp8"] * 1000, "one to 20"),
    ],
)
def test_a_choice_that_is_none_is_refused_in_one_line(precision: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        search(model="llama-3.1-8b", hardware="1x2:h100-sxm", precision=precision)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_the_whole_formats_of_a_list_are_each_searched_as_they_are() -> None:
    listed = [{"weights": "bf16"}, {"weights": "fp8", "kv_cache": "fp8", "activations": "bf16"}]
    answer = search(model="llama-3.1-8b", hardware="1x2:h100-sxm", workload=LOAD, precision=listed)
    assert answer.request.precisions is not None
    shown = [(precision.weights, precision.kv_cache, precision.activations) for precision in answer.request.precisions]
    assert shown == [("bf16", "bf16", "bf16"), ("fp8", "fp8", "bf16")]


WITHOUT_BF16 = [part for part in all_accelerators() if part.computes_in("bf16") == "fp16"]


def test_v100_and_t4_are_the_parts_without_bf16_units() -> None:
    assert {part.names[0] for part in WITHOUT_BF16} == {"V100", "T4"}


@pytest.mark.parametrize("accelerator", WITHOUT_BF16, ids=lambda part: part.id)
@pytest.mark.parametrize("own", DTYPES)
def test_bf16_is_never_assumed_where_there_are_no_units_for_it(own: DType, accelerator: Accelerator) -> None:
    completed = complete_precision(Said(), own, accelerator)
    assert "bf16" not in dict(completed.precision).values()
    if own == "bf16":
        assert any("has no bf16 units" in assumption.reason for assumption in completed.assumptions)
    for block in formats_on(ANY, own, accelerator):
        assert "bf16" not in dict(block).values()


@pytest.mark.parametrize(
    "request_", ["bf16 weights", "KV cache in bf16", "bf16 activations", "precision open: fp8 or bf16"]
)
def test_a_stated_bf16_where_there_are_no_units_for_it_is_refused_by_name(request_: str) -> None:
    with pytest.raises(InputError, match="t4 has no bf16 units"):
        complete(read_request(f"Llama-3.1-8B on 8 T4, 2k in, 256 out, {request_}"))
    sixteen = complete(read_request("Llama-3.1-8B on 8 T4, 2k in, 256 out, 16-bit weights"))
    assert sixteen.precision.weights == "fp16"
