"""Remarks of an export: the requests that its commands refuse, and what the engine does by itself."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.importing.api import import_plan
from shardwright.agent.pipeline import plan
from shardwright.tools.export.export import export
from shardwright.tools.export.result import TargetName
from shardwright.tools.performance.estimate import estimate

SAMPLED = {"pairs": [[100, 10]] * 20, "longest": [30_000, 700]}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("target", "setting"),
    [
        ("vllm", "--max-model-len, set for the load, tighter than vLLM's own"),
        ("sglang", "--context-length, set for the load, tighter than SGLang's own"),
        ("trtllm", "max_seq_len, set for the load, tighter than TensorRT-LLM's own"),
    ],
)
@pytest.mark.parametrize(
    ("lengths", "longest", "taken"),
    [
        ({"input_tokens": 2048, "output_tokens": 256}, 2048 + 256, 4096),
        ({"input_tokens": 4096 - 256, "output_tokens": 250}, 4090, 8192),
        ({"input_tokens": 1000, "output_tokens": 100, "input_tokens_range": (500, 6000)}, 6000 + 100, 8192),
        ({"input_tokens": 100, "output_tokens": 10, "lengths": SAMPLED}, 30_000 + 700, 32_768),
        ({"input_tokens": 131_000, "output_tokens": 72}, 131_072, None),
    ],
)
def test_requests_that_the_command_refuses_are_told(
    target: TargetName, setting: str, lengths: Any, longest: int, taken: int | None
) -> None:
    document = plan(model="llama-3.1-8b", hardware="1x1:h100-sxm", engine=target, **lengths).plan
    assert document is not None
    result = export(document, target)
    notes = [remark for remark in result.remarks if "are refused by this command" in remark]
    if taken is None:
        assert notes == []
        return
    assert notes == [
        f"requests longer than {taken:,} tokens in all are refused by this command ({setting}); "
        f"the load's longest has {longest:,}, the model takes 131,072"
    ]
    assert result.text is not None and f"Mind: {notes[0]}" in result.text
    assert str(taken) in result.text


def test_what_an_export_has_the_engine_do_that_it_does_not_by_itself_is_told() -> None:
    command = "trtllm-serve Qwen/Qwen3-8B --tp_size 1"
    for options, told in (("", True), (" --override-engine-args '{\"enable_chunked_prefill\": false}'", False)):
        remarks = export(import_plan(command + options, hardware="1x1:h100-sxm").plan, "trtllm").remarks
        assert any("prompts are cut into chunks" in remark for remark in remarks) == told


@pytest.mark.parametrize(("stages", "connector"), [(2, "NixlPushConnector"), (1, "NixlConnector")])
def test_stages_of_a_prefill_server_write_their_parts_of_a_cache(stages: int, connector: str) -> None:
    layout = f"{3 - stages} prefill of PP{stages} + 1 decode of TP2"
    document = plan(f"Llama-3.1-8B on 4 H100 with vLLM, 2k in, 200 out, 8 users, {layout}").plan
    assert document is not None and document.strategy.prefill.pp == stages
    result = export(document, "vllm")
    assert result.text is not None and result.text.count(f'"{connector}"') == 4 - stages
    assert any("write their parts" in remark for remark in result.remarks) == (stages > 1)


def test_a_length_that_the_imported_command_states_is_told_as_kept() -> None:
    command = "vllm serve Qwen/Qwen3-8B --max-model-len 4096"
    remarks = export(import_plan(command, hardware="1x1:h100-sxm").plan, "vllm").remarks
    assert any("tokens in all are refused by this command (--max-model-len, kept);" in remark for remark in remarks)


def test_no_longer_request_is_taken_than_the_cache_holds() -> None:
    document = plan(
        model="llama-3.1-8b", hardware="1x1:l4", engine="vllm", input_tokens=18_000, output_tokens=100, concurrency=1
    ).plan
    assert document is not None
    result, tokens = export(document, "vllm"), estimate(document).memory.kv_cache_capacity_tokens
    assert tokens is not None and 18_116 < tokens < 32_768
    assert result.text is not None and "--max-model-len 18116" in result.text


@pytest.mark.parametrize("stated", [None, 24])
def test_how_many_requests_run_at_once_and_whose_number_that_is_are_told(stated: int | None) -> None:
    serving = {} if stated is None else {"serving": {"max_batch": stated}}
    document = plan(model="llama-3.1-8b", hardware="1x1:h100-sxm", engine="vllm", concurrency=16, **serving).plan
    assert document is not None
    [remark] = [text for text in export(document, "vllm").remarks if "at once" in text]
    held_requests = estimate(document).memory.kv_cache_capacity_requests
    number, whose = ("1,024", "vLLM's own") if stated is None else ("24", "the plan's")
    assert remark == (
        f"a server runs at most {number} requests at once (--max-num-seqs, {whose}), others wait; the KV cache of all "
        f"servers holds {held_requests:,} requests of the load's length"
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("gpus", "routing", "target", "dealt"),
    [
        (2, None, "kubernetes", "deal each request to the server with the fewest: put a balancer"),
        (2, "sticky", "kubernetes", "deal each request to the server that its conversation began on: put a balancer"),
        (1, None, "kubernetes", None),
        (2, None, "llm-d", None),
        (2, None, "vllm", None),
    ],
)
def test_a_service_that_does_not_deal_as_the_figures_do_is_told(
    gpus: int, routing: str | None, target: TargetName, dealt: str | None
) -> None:
    asked: dict[str, Any] = {} if routing is None else {"prefixes": {"turns": 3, "routing": routing}}
    asked |= {"engine": "vllm", "input_tokens": 3000, "concurrency": 4}
    planned = plan(f"llama-3.1-8b on {gpus} H100, DP{gpus}", **asked)
    assert planned.plan is not None and planned.plan.strategy.dp == gpus
    result = export(planned.plan, target)
    notes = [note for note in result.remarks if note.startswith("a Service deals")]
    assert len(notes) == (dealt is not None)
    assert all(dealt is not None and dealt in note and f"# Mind: {note}" in (result.text or "") for note in notes)


def test_figures_of_a_plan_at_a_rate_that_its_tool_does_not_print_are_told_apart() -> None:
    document = plan(model="llama-3.1-8b", hardware="1x1:h100-sxm", engine="vllm", request_rate=2.0).plan
    assert document is not None
    result, figures = export(document, "vllm"), estimate(document)
    assert result.benchmark == figures.benchmark
    assert result.benchmark is not None and result.benchmark.note is not None
    assert f"TTFT {figures.latency.ttft_ms:,.1f} ms, TPOT {figures.latency.tpot_ms:,.2f} ms" in result.benchmark.note
    assert result.text is not None and result.benchmark.note in result.text


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("degrees", "sends", "places"),
    [
        ("TP8", False, False),
        ("TP8 EP8", False, True),
        ("attention DP 8, EP8", True, True),
        ("attention DP 2, TP4, EP8", True, True),
    ],
)
def test_what_engines_do_of_themselves_is_told_where_they_do_it(
    target: TargetName, degrees: str, sends: bool, places: bool
) -> None:
    planned = plan(f"Qwen3-235B-A22B on 8 H200 with {target}, {degrees}", relaxations=["attention_dp"], rules="engine")
    assert planned.plan is not None and planned.report is not None and planned.report.stated is not None
    defaults = export(planned.plan, target).by_itself
    assert any("dispatch and combine" in sentence for sentence in defaults) is sends
    assert any("run of experts" in sentence for sentence in defaults) is places


@pytest.mark.one_in(1)
@pytest.mark.parametrize(
    ("flags", "contradicted"),
    [
        ("", ()),
        ("--no-enable-prefix-caching", ("share a beginning",)),
        ("--expert-placement-strategy round_robin", ("run of experts",)),
        ("--all2all-backend deepep_low_latency", ("dispatch and combine",)),
    ],
)
def test_what_a_kept_flag_says_otherwise_is_not_told_of_the_engine(flags: str, contradicted: tuple[str, ...]) -> None:
    command = f"vllm serve Qwen/Qwen3-30B-A3B -dp 2 -ep {flags}"
    result = export(import_plan(command, hardware="1x2:h100-sxm").plan, "vllm")
    for words in ("share a beginning", "run of experts", "dispatch and combine"):
        assert any(words in sentence for sentence in result.by_itself) is (words not in contradicted)
    assert result.text is not None and flags in result.text
