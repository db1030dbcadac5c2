"""Each text is answered according to its kind of turn; a question never changes the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.chat.chat import Chat
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.document import Plan
from shardwright.tools.validate import validate

CASES = json.loads((Path(__file__).parents[2] / "cases" / "chat.json").read_text(encoding="utf-8"))
REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"


@pytest.fixture
def chat() -> Iterator[Chat]:
    """A chat with a plan."""
    with Chat() as opened:
        opened.say(REQUEST)
        yield opened


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", CASES["kinds"], ids=lambda case: case["say"])
def test_a_text_is_answered_as_what_it_is(chat: Chat, case: dict[str, Any]) -> None:
    before = chat.plan
    answer = chat.say(case["say"])
    assert answer.kind == case["kind"]
    assert case["has"].lower() in answer.text.lower()
    assert case.get("lacks", "no such words") not in answer.text
    assert bool(answer.error) == (case["kind"] == "refused")
    assert len(answer.text.splitlines()) <= case.get("lines", 10_000)
    if case["kind"] != "plan":
        assert chat.plan == before


def test_a_follow_up_says_what_changed_in_request_layout_and_figures(chat: Chat) -> None:
    answer = chat.say("now with 1 GPU")
    assert answer.changes == ("GPUs: 2 → 1", "nodes: 1 of 2 → 1 of 1")
    for words in ("The request", "GPUs: 2 → 1", "Layout", "TP2 → one device", "Figures", "TPOT"):
        assert words in answer.text
    assert answer.valid
    assert answer.result is not None
    assert answer.result.plan == chat.plan


@pytest.mark.thorough
def test_every_plan_that_becomes_current_is_valid(chat: Chat) -> None:
    for text in ("4 GPUs", "use fp8", "并发 16", "throughput instead", "TTFT under 200 ms", "换成 H200"):
        chat.say(text)
        assert chat.plan is not None
        assert validate(json.loads(chat.plan.model_dump_json())).valid


def test_what_if_leaves_the_plan_and_take_makes_it_the_current_one(chat: Chat) -> None:
    before = chat.plan
    answer = chat.say("what if we had 1 GPU?")
    assert chat.plan == before
    assert answer.result is not None
    taken = chat.say("take it")
    assert taken.kind == "plan"
    assert chat.plan == answer.result.plan != before
    assert chat.say("take it").error is None  # no plan is set aside any more: read as words


def test_a_what_if_says_whether_the_one_before_it_counts(chat: Chat) -> None:
    chat.say("what if we had 60 users?")
    more = chat.say("and prompts of 4k?")
    assert "With the what-if before it: concurrency: 1 → 60." in more.text
    assert set(more.changes) == {"concurrency: 1 → 60", "input tokens: 2,048 → 4,096"}
    assert "With the what-if" not in chat.say("and 70 users, prompts of 2k?").text
    other = chat.say("what if it was fp8?")
    assert "Without the what-if before it (" in other.text and other.changes == ("number formats: bf16 → fp8",)
    assert "changed nothing" in (chat.say("undo that").error or "")


@pytest.mark.parametrize(
    "said", ["undo the last two", "undo 2 steps", "go back two changes", "undo twice", "撤销前两步"]
)
def test_several_steps_are_taken_back_in_words(chat: Chat, said: str) -> None:
    first = chat.plan
    chat.say("1 GPU")
    chat.say("use fp8")
    assert chat.say(said).kind == "moved" and chat.plan == first


@pytest.mark.parametrize(
    ("load", "has"),
    [
        ("24 users", "the 24 users all begin at once, and the last of that burst wait longest"),
        ("4 requests/s", "requests come at random, and those that come close together wait"),
    ],
)
def test_a_mean_that_few_requests_make_is_told_as_such(load: str, has: str) -> None:
    with Chat() as chat:
        chat.say(f"Llama-3.1-70B on 8 H200, fp8, 6k in / 800 out, {load}, prefill and decode apart")
        answer = chat.say("why is TTFT so high?")
        assert chat.result is not None and chat.result.estimate is not None
        times = chat.result.estimate.latency.percentiles.ttft_ms
    assert times.p95 > 1.25 * times.p50 and has in " ".join(answer.text.split()), times


def test_the_gpus_of_an_expert_are_those_of_its_group_in_each_replica() -> None:
    with Chat() as chat:
        chat.say("Qwen3-30B-A3B on 4 H100, 2k in 256 out, 50 users, DP2 of EP2 x TP2, no disaggregation")
        assert "replica 1, layers 0–47: n0.g3" in chat.say("which GPUs hold expert 100?").text
        assert "all-to-all of experts: 2 GPUs in one node" in chat.say("is NVLink used for the all-to-all?").text


def test_undo_and_redo_take_several_steps_and_no_more_than_there_are(chat: Chat) -> None:
    plans = [chat.plan]
    for text in ("1 GPU", "use fp8", "TTFT under 500 ms"):
        chat.say(text)
        plans.append(chat.plan)
    for command, place in (("/undo 2", 1), ("/undo 1", 0), ("/redo 3", 3)):
        assert chat.say(command).kind == "moved"
        assert chat.plan == plans[place]
    for command in ("/undo 4", "/redo 1", "/undo 0", "/undo -1", "/undo 2 3"):
        assert chat.say(command).error is not None, command
        assert chat.plan == plans[3]


def test_undo_and_redo_go_through_the_history(chat: Chat) -> None:
    plans = [chat.plan]
    for text in ("1 GPU", "use fp8"):
        chat.say(text)
        plans.append(chat.plan)
    for place in (1, 0):
        assert chat.say("/undo").kind == "moved"
        assert chat.plan == plans[place]
    assert chat.say("/undo").error is not None
    chat.say("/redo")
    assert chat.plan == plans[1]
    chat.say("concurrency 8")
    assert chat.say("/redo").error == "nothing to redo: this is the last request"


@pytest.mark.parametrize(
    "said", ["go back to the first plan", "restore the original", "back to what we had at the start", "回到最初的方案"]
)
def test_the_first_plan_is_gone_back_to_by_a_turn_that_undo_takes_back(chat: Chat, said: str) -> None:
    first = chat.plan
    chat.say("4 GPUs")
    other = chat.plan
    assert chat.say(said).kind == "plan" and chat.plan == first
    assert chat.say("/first").kind == "refused"
    chat.say("undo")
    assert chat.plan == other


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("no, go back to the H100 plan", {"accelerator: l40s → h100-sxm", "objective: cost → latency"}),
        ("switch back to the bf16 one", {"accelerator: l40s → h100-sxm", "objective: cost → latency"}),
        ("换回 A100 的方案", {"加速卡: l40s → a100-80gb-sxm", "目标: 成本 → 延迟"}),
        (
            "put it back to what I asked at first, but with a TTFT limit of 5 seconds at p95",
            {"TTFT limit (ms): not stated → 5,000 (p95)", "accelerator: l40s → h100-sxm", "objective: cost → latency"},
        ),
        ("back to the A100 plan and 4 users", {"concurrency: open → 4", "accelerator: l40s → a100-80gb-sxm"}),
        ("back to my first request, please", {"accelerator: l40s → h100-sxm"}),
    ],
)
def test_an_earlier_plan_is_gone_back_to_with_its_whole_request(said: str, changes: set[str]) -> None:
    with Chat() as chat:
        for text in (f"{REQUEST}, bf16", "A100 80GB", "back to the H100 plan", "L40S, int8, cheapest"):
            chat.say(text)
        answer = chat.say(said)
    assert answer.kind == "plan" and changes <= set(answer.changes), answer.changes


def test_a_way_back_for_one_fact_says_that_the_rest_stayed(chat: Chat) -> None:
    chat.say("L40S, cheapest")
    answer = chat.say("go back to H100")
    assert answer.changes == ("accelerator: l40s → h100-sxm",)
    assert 'Only that changed; "go back to the H100 plan"' in answer.text
    chat.say("undo")
    assert "Only that changed" not in chat.say("back to the H100 plan").text


def test_a_plan_that_was_never_given_is_neither_compared_with_nor_gone_back_to(chat: Chat) -> None:
    chat.say("fp8 weights and fp8 kv")
    now = chat.plan
    assert "number formats: bf16 → fp8 KV-fp8" in chat.say("compare that with the bf16 one you gave before").changes
    for said in ("compare that with the int4 one you gave before", "back to the int4 plan we had before"):
        assert "no plan of this chat" in (chat.say(said).error or ""), said
    assert "was not understood" in (chat.say("back to the first plan, but blue").error or "") and chat.plan == now


@pytest.mark.parametrize(
    ("asked", "has"),
    [
        ("what was the TPOT of the first plan?", "2 of 2 GPUs"),
        ("how fast was the previous plan?", "1 of 1 GPU"),
        ("what did I ask at first?", "2 of 2 GPUs"),
        ("compare with the first plan", "GPUs: 2 → 4"),
        ("what is the time to the first token?", "TTFT is the time"),
    ],
)
def test_earlier_plans_are_asked_about(chat: Chat, asked: str, has: str) -> None:
    chat.say("1 GPU")
    chat.say("4 GPUs")
    now = chat.plan
    assert has in chat.say(asked).text and chat.plan == now


def test_a_request_without_a_plan_stays_and_can_be_changed_further(chat: Chat) -> None:
    answer = chat.say("use Llama-3.1-70B on 1 GPU")
    assert chat.plan is None
    assert "ME001" in answer.text
    assert chat.say("compare TP2").error is not None
    chat.say("8 GPUs")
    assert chat.plan is not None
    assert "70B" in chat.plan.model.name


def test_an_answer_counts_the_requests_that_there_is_room_for_in_one_way(chat: Chat) -> None:
    text = " ".join(chat.say("why not PP2?").text.split())
    said = re.search(r"requests at once \(([\d,]+) → ([\d,]+)\)", text)
    assert said is not None and f"requests that the engine's cache holds {said[1]} {said[2]}" in text
    assert "requests that fit" not in text


def test_degrees_are_judged_by_the_best_that_has_them() -> None:
    with Chat() as chat:
        chat.say("Qwen3-30B-A3B on 4 H100, 2k in 256 out, 200 users, throughput, SGLang")
        in_one_node, too_many = chat.say("why not EP4?"), chat.say("why not EP8?")
    assert "The best with EP4 is EP4 × TP4." in in_one_node.text and "attention dp" in in_one_node.text
    assert in_one_node.comparison is not None and in_one_node.comparison.b.valid
    assert "it needs 8 GPUs, you have 4 (GP004)" in too_many.text and "ME001" not in too_many.text


@pytest.mark.parametrize("asked", ["export it for vLLM", "why not TP2?", "what is the TPOT?", "/export p.json"])
def test_what_is_asked_of_a_plan_is_refused_where_the_current_request_has_none(chat: Chat, asked: str) -> None:
    chat.say("TPOT under 1 ms")
    assert chat.plan is None and "the current request has no plan" in str(chat.say(asked).error)


def test_a_reserve_is_a_change_and_stays() -> None:
    with Chat() as chat:
        chat.say("Llama-3.1-8B on 2 H100, 500 in, 50 out, 4 requests/s, no disaggregation")
        changed = chat.say("make it survive the loss of one replica")
        assert "replicas that may be lost: not stated → 1" in changed.changes and chat.plan is not None
        assert "so already" in chat.say("make it survive the loss of one replica").text
        chat.say("set the rate to 5 req/s")
        assert chat.result is not None and chat.result.intent is not None and chat.result.intent.day is not None
        assert chat.result.intent.day.reserve_replicas == 1


def test_again_does_the_last_turn_again_from_where_it_began(chat: Chat) -> None:
    chat.say("double the GPUs")
    once = chat.plan
    chat.say("/again")
    assert chat.plan == once


def test_new_forgets_what_was_said(chat: Chat) -> None:
    chat.say("TTFT under 100 ms")
    chat.say("/new Qwen2.5-7B on 1 L40S")
    assert chat.plan is not None
    assert chat.plan.workload.ttft_ms_max is None
    assert chat.plan.hardware.accelerator == "l40s"


def test_export_writes_the_plan_whole_or_not_at_all(chat: Chat, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    first, again = (chat.say(f"/export {target}") for _ in range(2))
    assert first.error is None and "in place of" not in first.text
    assert "in place of the file that was there" in again.text
    assert Plan.model_validate_json(target.read_text(encoding="utf-8")) == chat.plan
    assert chat.say(f"/export {tmp_path}").error is not None
    assert chat.say("/export /nowhere/at/all.json").error is not None
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    ("say", "is_planned"),
    [("give me the vllm command for Llama-3.1-8B on 2 H100", True), ("which vllm flags do I need?", False)],
)
def test_a_command_asked_for_at_once_is_planned_for_where_it_says_enough(say: str, is_planned: bool) -> None:
    with Chat() as chat:
        answer = chat.say(say)
        assert (chat.plan is not None) is is_planned
    assert answer.error is None and ("vllm serve" if is_planned else "There is no plan yet") in answer.text


@pytest.mark.parametrize(
    ("say", "holds"),
    [
        ("no pipeline and TP1, then give me the vllm command", "vllm serve"),
        ("use TP1 and show me the sglang flags", "sglang.launch_server"),
        ("用TP1,然后给我vllm启动命令", "vllm serve"),
    ],
)
def test_a_change_beside_the_wish_for_a_command_is_made_and_the_command_is_that_of_the_new_plan(
    chat: Chat, say: str, holds: str
) -> None:
    answer = chat.say(say)
    assert answer.kind == "plan" and holds in answer.text
    assert chat.plan is not None and chat.plan.strategy.decode.tp == 1


def test_a_file_that_is_named_is_compared(chat: Chat, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    chat.say(f"/export {target}")
    chat.say("1 GPU")
    answer = chat.say(f"/compare {target}")
    assert answer.comparison is not None
    assert answer.comparison.b.gpus == 2


def test_difference_is_against_the_plan_before(chat: Chat) -> None:
    assert chat.say("/diff").error == "there is no plan before this one"
    chat.say("1 GPU")
    answer = chat.say("/diff")
    assert "GPUs: 2 → 1" in answer.text
    assert answer.comparison is not None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("load", ["1024 in / 200 out, 48 users", "1024 in / 64 out, 4 users"])
def test_why_not_apart_names_the_best_of_them_and_what_decided(load: str) -> None:
    with Chat() as chat:
        chat.say(f"Llama-3.2-1B on 3 L40S, {load}, highest throughput")
        assert chat.plan is not None and "prefill" not in describe(chat.plan.strategy)
        answer = chat.say("why not disaggregated?")
        assert "The best with separate prefill and decode" in answer.text
        assert re.search(r"prefill of .* \+ 1 decode of .*: .* output\s+tokens/s against", answer.text)
        chat.say("disaggregated")
        assert "The current plan has separate prefill and decode" in chat.say("why not disaggregated?").text


def cost_of(text: str) -> list[str]:
    """The costs in a table of figures."""
    row = next(line for line in text.splitlines() if "cost of a million output tokens" in line)
    return re.findall(r"[\d.,]+ USD", row)


def test_each_plan_of_a_changed_price_has_its_own() -> None:
    with Chat() as chat:
        chat.say(f"{REQUEST}, 2 USD per GPU hour")
        for price, of_before in ((3, 2), (5, 3)):
            now = chat.say(f"now {price} USD per GPU hour")
            for text in (now.text, chat.say("/diff").text):
                before, after = (float(cost.split()[0]) for cost in cost_of(text))
                assert after / before == pytest.approx(price / of_before, rel=0.01)
        aside = chat.say("what if it were 10 USD per GPU hour?")
        before, after = (float(cost.split()[0]) for cost in cost_of(aside.text))
        assert after / before == pytest.approx(2.0, rel=0.01)


def test_the_first_turn_may_ask_and_needs_a_model_to_plan() -> None:
    with Chat() as chat:
        assert "names no model" in (chat.say("8 H100").error or "") or "no model" in (chat.say("8 H100").error or "")
        assert chat.say("why?").error is not None
        assert chat.say("/plan").error is not None
        assert chat.say("").kind == "ask"
        assert chat.say("x" * 30_000).error is not None
        assert chat.say(REQUEST).valid


def test_control_characters_of_a_person_never_reach_the_screen(chat: Chat) -> None:
    shown: list[str] = []
    chat.say("explain \x1b[31mred\x07", shown.append)
    chat.say("/\x1b]0;title\x07", shown.append)
    assert not {"\x1b", "\x07"} & set("".join(shown))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("request_", "has"),
    [
        ("Llama-3.1-70B on 8 H100, 2k in / 256 out, concurrency 32, TTFT under 1 s", "may be missed: the far end"),
        ("Llama-3.1-8B on 8 H100, 2k in / 256 out, concurrency 32, TPOT under 30 ms", "held even there: the far end"),
        ("Llama-3.1-8B on 8 H100, 2k in / 256 out, concurrency 32, no PD separation", "without one replica"),
    ],
)
def test_what_is_risky_is_told_by_ranges_memory_and_the_loss_of_a_replica(request_: str, has: str) -> None:
    with Chat() as chat:
        chat.say(request_)
        assert has in " ".join(chat.say("is this risky?").text.split())


@pytest.mark.thorough
def test_what_flips_the_choice_is_what_a_what_if_then_chooses() -> None:
    with Chat() as chat:
        chat.say("Llama-3.1-70B on 16 H100, 2k in / 256 out, concurrency 32, TPOT under 30 ms, TTFT under 1 s")
        answer = " ".join(chat.say("what would change your mind?").text.split())
        flipped = (
            answer.partition("With 2x the requests in flight (64): ")[2].partition(", TTFT")[0].partition(" → ")[2]
        )
        assert flipped
        chat.say("what if traffic doubles?")
        chat.say("/take")
        assert chat.plan is not None
        assert describe(chat.plan.strategy) == flipped


def test_degrees_that_cannot_be_kept_are_told_before_the_plan() -> None:
    with Chat() as chat:
        chat.say("Llama-3.1-8B on 2 H100, 1k in / 128 out, TPOT under 6 ms")
        first, second, *_ = chat.say("vllm serve meta-llama/Llama-3.1-8B -tp 1").text.splitlines()
        assert first.startswith("one device was asked for and cannot be kept: ") and "TPOT" in first
        assert second.startswith("Valid plan: TP2")
