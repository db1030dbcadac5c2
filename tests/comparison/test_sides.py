"""Both sides of a comparison share one setting: a plan and its export, two commands, one load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.compare import Words, compare
from shardwright.tools.comparison.result import Comparison
from shardwright.tools.errors import InputError
from shardwright.tools.plan.document import Plan, ServingBlock

from ..export.plans import EXPORTED, exported, plan_named
from .plans import dense

ON = "1x8:h100-sxm"
COMMAND = "vllm serve Qwen/Qwen3-8B -tp {}"


def is_same(comparison: Comparison) -> bool:
    """Whether the verdict calls both sides the same deployment."""
    return "A and B are the same deployment." in comparison.verdict


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_a_plan_and_its_export_are_the_same_deployment_with_the_same_figures(name: str, target: str) -> None:
    text = exported(name, target).text
    assert text is not None
    comparison = compare(plan_named(name), Words(text))
    assert is_same(comparison), (comparison.question, comparison.changes)
    assert all(figure.a == figure.b for figure in comparison.figures)
    assert comparison.a.takes_engine and f"judged as run on {_title(target)}, like B" in comparison.verdict[0]


def _title(target: str) -> str:
    return {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}[target]


def _run_on(engine: str, **serving: Any) -> Plan:
    return dense().model_copy(update={"serving": ServingBlock(engine=engine, **serving)})


def test_a_plan_without_an_engine_is_judged_on_that_of_the_other_whichever_side_it_is() -> None:
    for pair, taker in (((dense(), _run_on("sglang")), "A"), ((_run_on("sglang"), dense()), "B")):
        comparison = compare(*pair)
        assert is_same(comparison) and {comparison.a.engine, comparison.b.engine} == {"sglang"}
        assert comparison.verdict[0].startswith(f"{taker} names no engine: it is judged as run on SGLang")


def test_that_nothing_but_the_engine_differs_is_said() -> None:
    comparison = compare(_run_on("vllm"), _run_on("sglang"))
    assert not is_same(comparison)
    assert comparison.verdict[0].startswith("A and B are one strategy on two engines (vLLM, SGLang): what differs")
    other = compare(_run_on("vllm"), _run_on("sglang", max_batch=8))
    assert other.verdict[0].endswith("is the engine and its settings alone.")


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("requests that a scheduler runs at once", {"max_batch": 8}),
        ("tokens of a step", {"prefill_chunk_tokens": 512}),
        ("overlap of two batches", {"overlap": "two_batch"}),
    ],
)
def test_plans_that_differ_in_a_setting_alone_are_not_the_same(what: str, changed: dict[str, Any]) -> None:
    comparison = compare(_run_on("vllm"), _run_on("vllm", **changed))
    assert not is_same(comparison) and [change.what for change in comparison.changes] == [what]


def test_plans_on_other_gpus_are_not_the_same() -> None:
    raw = dense().model_dump(mode="json")
    for node in raw["nodes"]:
        if "devices" in node:
            node["devices"] = [device.replace("g0", "g5") for device in node["devices"]]
    comparison = compare(dense(), raw)
    assert not is_same(comparison) and len(comparison.changes) == 1


def test_the_engine_s_version_is_part_of_what_differs() -> None:
    comparison = compare(_run_on("vllm"), _run_on("vllm", engine_version="0.9.0"))
    assert "engine version" in {difference.what for difference in comparison.question}


def test_two_commands_are_compared_under_a_stated_load() -> None:
    comparison = compare(
        COMMAND.format(2), COMMAND.format(1), hardware=ON, input_tokens=2048, output_tokens=64, concurrency=4
    )
    assert (comparison.a.gpus, comparison.b.gpus) == (2, 1)
    loads = {
        (side.workload.input_tokens, side.workload.output_tokens, side.workload.concurrency)
        for side in (comparison.a, comparison.b)
    }
    assert loads == {(2048, 64, 4)}
    assert not any("Assumed of the load" in caveat for caveat in comparison.a.caveats)


def test_of_two_commands_under_a_rate_the_requests_at_once_follow_from_it() -> None:
    comparison = compare(COMMAND.format(2), COMMAND.format(1), hardware=ON, request_rate=2.0, input_tokens=512)
    for side in (comparison.a, comparison.b):
        assert side.workload.request_rate == 2.0
        assert all("requests at once" not in caveat for caveat in side.caveats)


def test_of_two_commands_without_a_load_both_have_the_one_that_is_said_to_be_assumed() -> None:
    comparison = compare(COMMAND.format(2), COMMAND.format(1), hardware=ON)
    assert comparison.a.workload == comparison.b.workload
    [assumed] = [caveat for caveat in comparison.a.caveats if "Assumed of the load" in caveat]
    assert "tokens in 1,024" in assumed and "--input-tokens" in assumed


def test_a_command_beside_a_plan_may_be_either_side() -> None:
    plan_first = compare(dense(), Words("vllm serve tiny -tp 2"))
    words_first = compare(Words("vllm serve tiny -tp 2"), dense())
    assert is_same(plan_first) and is_same(words_first)
    assert (plan_first.a.workload, plan_first.a.model) == (words_first.a.workload, words_first.a.model)


def test_a_script_in_a_file_is_what_it_starts(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("vllm serve tiny -tp 2\n")
    assert is_same(compare(dense(), script)) and is_same(compare(str(script), dense()))


def test_a_load_that_is_stated_is_that_of_both() -> None:
    comparison = compare(dense(), Words("DP2 of TP1"), request_rate=1.0, input_tokens=512)
    assert {(side.workload.input_tokens, side.workload.request_rate) for side in (comparison.a, comparison.b)} == {
        (512, 1.0)
    }
    assert shardwright.estimate(dense()).latency.ttft_ms != comparison.figure("ttft_ms").a  # pyright: ignore[reportOptionalMemberAccess]


def test_two_strategies_in_words_are_compared_under_a_model_and_hardware_that_are_said() -> None:
    comparison = compare(Words("TP2"), Words("DP2 of TP1"), model="Llama-3.2-1B", hardware="1x2:l4", concurrency=4)
    assert (comparison.a.valid, comparison.b.valid) == (True, True)
    assert {side.workload.concurrency for side in (comparison.a, comparison.b)} == {4}
    with pytest.raises(InputError, match="nothing to compare"):
        compare(Words("TP1"), Words("TP1"), model="Llama-3.1-405B", hardware="1x1:l4")


def test_what_neither_side_says_is_asked_for() -> None:
    with pytest.raises(InputError, match="neither model nor hardware"):
        compare(Words("TP2"), Words("TP4"))
    with pytest.raises(InputError, match="on which GPUs"):
        compare(COMMAND.format(2), COMMAND.format(1))


@pytest.mark.parametrize(
    ("first", "second", "stated", "of_each"),
    [
        (dense(), Words("TP2"), {"hardware": "1x2:l40s"}, (None, "l40s")),
        (dense(), Words("TP2"), {"hardware_b": "l40s"}, (None, "l40s")),
        (dense(), COMMAND.format(2), {"hardware_b": "1x2:l40s"}, (None, "l40s")),
        (Words("TP2"), Words("TP2"), {"model": "Llama-3.2-1B", "hardware": "1x2:l4", "hardware_b": "1x2:l40s"},
         ("l4", "l40s")),
        (COMMAND.format(2), COMMAND.format(2), {"hardware": "1x2:l4", "hardware_b": "1x2:l40s"}, ("l4", "l40s")),
    ],
    ids=["words beside a plan", "b alone", "commands", "two in words", "two commands"],
)  # fmt: skip
def test_words_and_commands_run_on_the_hardware_that_is_said_for_them(
    first: Any, second: Any, stated: dict[str, Any], of_each: tuple[str | None, str]
) -> None:
    comparison = compare(first, second, **stated)
    plan_accelerator = dense().hardware.accelerator
    assert (comparison.a.accelerator, comparison.b.accelerator) == (of_each[0] or plan_accelerator, of_each[1])


@pytest.mark.parametrize("second", [Words("TP2"), dense()], ids=["words", "a plan"])
@pytest.mark.parametrize("stated", [{"model": "Llama-3.1-8B"}, {"precision": "fp8"}, {"engine": "sglang"}])
def test_what_no_side_takes_is_refused(second: Any, stated: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leave it out"):
        compare(dense(), second, **stated)


def test_plans_have_the_hardware_that_they_name() -> None:
    for stated in ({"hardware": "1x2:l4"}, {"hardware_b": "1x2:l4"}):
        with pytest.raises(InputError, match="leave it out"):
            compare(dense(), dense(), **stated)
    with pytest.raises(InputError, match="leave it out"):
        compare(COMMAND.format(2), dense(), hardware_b="1x2:l4")
