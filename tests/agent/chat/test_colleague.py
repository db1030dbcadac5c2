"""Thirty turns with a model, in English and Chinese, with the traps of real talks, recorded and replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.chat.grounding import Heard
from shardwright.agent.chat.replay import replay_chat
from shardwright.agent.chat.session import Event
from shardwright.agent.chat.transcript import ChatTranscript
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.transcript import read_recording
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says

HEARD = json.loads((Path(__file__).parents[2] / "cases" / "chat.json").read_text(encoding="utf-8"))["heard"]
REQUEST = "Llama-3.1-8B on 4 H100, 2k in / 256 out, concurrency 8"
# The built-in proposer's plan, taken by the model in a run that a tool begins.
PLANNED = calls(("submit_dag", {"handle": "reference"}))


def replan(words: str) -> Step:
    return calls(("replan", {"words": words}))


def supposed(words: str) -> Step:
    return calls(("what_if", {"words": words}))


def replanned(words: str, answer: str) -> list[Step]:
    return [replan(words), PLANNED, says(answer)]


# What the person says, and what the model does in that turn.
TALK: tuple[tuple[str, list[Step]], ...] = (
    (REQUEST, [replan(REQUEST), PLANNED, says("That is the plan.")]),
    ("TTFT at most 400 ms, our users wait", replanned("TTFT at most 400 ms", "Kept.")),
    ("why not PP?", [calls(("why", {"words": "PP"})), says("It is slower.")]),
    ("it feels expensive", [says("Shall I halve the GPUs or raise the TTFT limit?")]),
    ("what does half of them do?", [supposed("half the GPUs"), says("It fits.")]),
    ("hm", [says("Shall I halve the GPUs or raise the TTFT limit?")]),
    # Not /take: it answers the model's question, and the model asks which of the two is meant.
    ("yes, do that", [says("Which of the two: the GPUs, or the limit?")]),
    ("the limit, to 600 ms", replanned("TTFT under 600 ms", "Raised.")),
    # A limit that nobody stated is refused with its figure, and the model asks.
    ("make it snappy", [replan("TTFT under 250 ms"), says("How many ms to the first token do you need?")]),
    ("500 ms 就够了", replanned("TTFT under 500 ms", "好的，已经改为 500 ms。")),
    ("which vllm flags?", [says("Use --tensor-parallel-size.")]),
    ("用哪些 sglang 启动参数？", [calls(("launch", {"words": "sglang"})), says("就是这些。")]),
    ("如果流量翻倍呢？", [supposed("流量翻倍"), says("仍然可以。")]),
    ("take it", [calls(("move", {"to": "looked_at"})), says("Taken.")]),
    ("/undo", []),
    ("is this risky?", [calls(("why", {"words": "is this risky"})), says("Not very.")]),
    ("how many users per GPU is that?", [says("It is 7,531 tokens/s on each GPU.")]),
    ("有什么会改变你的选择？", [calls(("why", {"words": "what would change your mind"})), says("看上面。")]),
    ("use fp8", replanned("use fp8", "Done.")),
    ("undo", []),
    ("换成 H200", replanned("换成 H200", "已换成 H200。")),
    ("and 并发 16", replanned("并发 16", "好。")),
    ("explain PP003", [calls(("explain", {"words": "PP003"})), says("That is the rule.")]),
    ("show me the plan", []),
    ("thanks", [says("You are welcome.")]),
    ("compare TP2", [calls(("compare", {"words": "TP2"})), says("See above.")]),
    ("谢谢", [says("不客气。")]),
    ("/cost", []),
    ("为什么 TTFT 的限制是这个数？", [says("因为你说过 500 ms 就够了。")]),
    ("good, done", [says("Good.")]),
)  # fmt: skip


def play(
    path: Path, look: Callable[[int, Chat, str], None] = lambda number, chat, text: None
) -> tuple[Chat, ScriptedModel]:
    """Play the whole talk; `look` is called with the number of each turn, the chat and what it showed."""
    model = ScriptedModel([step for _, steps in TALK for step in steps])
    chat = Agent(model, options=AgentOptions(knowledge_tokens=0, transcript=path)).chat()
    for number, (words, _) in enumerate(TALK, start=1):
        look(number, chat, chat.say(words).text)
    model.assert_complete()
    return chat, model


def number_of(words: str) -> int:
    return next(at for at, (said, _) in enumerate(TALK, start=1) if said == words)


@pytest.mark.thorough
def test_thirty_turns_with_their_traps_are_recorded_and_replayed_to_the_same_end(tmp_path: Path) -> None:
    path, shown, gpus, ttft = tmp_path / "chat.json", dict[int, str](), dict[int, int](), dict[int, float | None]()

    def look(number: int, chat: Chat, text: str) -> None:
        assert chat.plan is not None
        shown[number], hardware = text, chat.plan.hardware
        gpus[number] = hardware.nodes * hardware.gpus_per_node
        ttft[number] = chat.plan.workload.ttft_ms_max

    chat, model = play(path, look)
    assert len(TALK) == 30

    # "yes, do that" halved nothing; it went to the model together with the model's question.
    assert gpus[number_of("yes, do that")] == 4
    turn_request = next(request for request in model.requests if request.messages[-1].content.count("\nyes, do that\n"))
    assert "may answer" in turn_request.messages[-1].content
    assert "Shall I halve the GPUs or raise the TTFT limit?" in turn_request.messages[-1].content

    # The invented limit did not enter the request, and the refusal names it.
    assert ttft[number_of("make it snappy")] == 600.0
    refused = [turn.content for sent in model.requests for turn in sent.messages if "was said neither" in turn.content]
    assert refused and all("250 ms" in answer for answer in refused)
    assert ttft[number_of("500 ms 就够了")] == 500.0

    # The flags come from the tool, whether or not the model called it.
    assert "vllm serve" in shown[number_of("which vllm flags?")]
    assert "sglang.launch_server" in shown[number_of("用哪些 sglang 启动参数？")]

    # A figure that no tool reported is marked.
    assert "7,531 tokens/s" in shown[number_of("how many users per GPU is that?")].partition("not checked")[2]
    assert "not checked" not in shown[number_of("is this risky?")].lower()

    assert "未经核对" in shown[number_of("谢谢")]

    # A what-if was taken, and undone.
    assert "Current now" in shown[number_of("take it")]
    assert "Current again" in shown[number_of("/undo")]

    # Twenty turns later the decision is in the memory, with the words that made it.
    last = model.requests[-2].messages[-1].content
    decided = next(line for line in last.splitlines() if line.startswith(f"turn {number_of('500 ms 就够了')}:"))
    assert "500 ms 就够了" in decided and "600 → 500" in decided
    assert json.dumps("How many ms to the first token do you need?") in decided

    outcome = replay_chat(read_recording(path, ChatTranscript))
    assert outcome.differences == () and outcome.same
    assert chat.plan is not None
    assert (chat.plan.hardware.accelerator, chat.plan.workload.concurrency) == ("h200-sxm", 16)
    assert chat.plan.precision.weights == "bf16"


@pytest.mark.thorough
def test_a_figure_enters_a_request_only_from_the_person_or_a_tool(tmp_path: Path) -> None:
    refused = (
        "TTFT under 250 ms",
        "TPOT under 400 ms",
        "use 16 GPUs",
        "use PP4",
        "switch to A100",
        "use fp8",
        "use sglang",
        "triple the GPUs",
    )
    allowed = ("TTFT under 0.4 s", "4 GPUs", "concurrency 8")
    for words, is_said in (*((spoken, False) for spoken in refused), *((spoken, True) for spoken in allowed)):
        steps = [*replanned(REQUEST, "Done."), supposed(words), PLANNED if is_said else says("What do you need?")]
        model = ScriptedModel([*steps, says("So."), says("So.")])
        with Agent(model, options=AgentOptions(knowledge_tokens=0)).chat() as chat:
            chat.say(REQUEST)
            chat.say("make it better, the first token within 400 ms would be nice")
            answers = [turn.content for sent in model.requests for turn in sent.messages if turn.role == "tool"]
        assert any("was said neither" in answer for answer in answers) is not is_said, words


@pytest.mark.parametrize("case", HEARD, ids=lambda case: f"{case['person']}: {case['call']}")
def test_what_a_call_says_follows_from_what_was_said_or_is_named(case: dict[str, str]) -> None:
    heard = Heard.of([Event(1, "turn", {"text": case["person"]})])
    assert heard.unsaid(case["call"]) == case.get("refused")


@pytest.mark.thorough
def test_a_figure_of_the_model_counts_once_the_person_has_agreed_to_it() -> None:
    # A figure that no tool shows is refused; one that was shown may be used.
    for reply, limit in (("yes please", 287.0), ("hold it there", 287.0), ("no, not that", None)):
        steps = [
            *replanned(REQUEST, "Shall I hold the TTFT under 287 ms?"),
            replan("TTFT under 287 ms"),
            PLANNED,
            says("So."),
        ]
        with Agent(ScriptedModel(steps), options=AgentOptions(knowledge_tokens=0)).chat() as chat:
            chat.say(REQUEST)
            chat.say(reply)
            assert chat.plan is not None
            assert chat.plan.workload.ttft_ms_max == limit, reply


@pytest.mark.one_in(2)
@pytest.mark.parametrize("offer", ["Shall I raise the limit?", "I could raise the limit instead; tell me."])
def test_where_the_model_offers_something_and_then_fails_no_pattern_answers_for_it(offer: str) -> None:
    steps = [*replanned(REQUEST, "Done."), supposed("half the GPUs"), PLANNED, says(offer)]
    with Agent(ScriptedModel(steps), options=AgentOptions(knowledge_tokens=0)).chat() as chat:
        chat.say(REQUEST)
        chat.say("what if we take half the GPUs?")
        before = chat.plan
        for words in ("yes, do that", "/again"):
            assert "Say /take if that is meant" in chat.say(words).text
            assert chat.plan == before
        chat.say("/take")
        assert chat.plan != before


def test_a_question_that_is_asked_again_is_the_one_that_is_answered() -> None:
    steps = [*replanned(REQUEST, "Done."), says("So."), says("Shall I raise the limit?"), says("To what?")]
    model = ScriptedModel(steps)
    with Agent(model, options=AgentOptions(knowledge_tokens=0)).chat() as chat:
        for words in (REQUEST, "what next", "/again", "undo"):
            chat.say(words)
    model.assert_complete()
    assert "Shall I raise the limit?" in model.requests[-1].messages[-1].content


def test_an_answer_to_the_first_question_is_planned_for_with_what_it_asked() -> None:
    asked = "Do you mean Llama-3.1-8B on 4 H100, 2k in, 256 out?"
    steps = [
        says(asked),
        calls(("replan", {"words": "Llama-3.1-8B on 4 H100, 2k in, 256 out"})),
        PLANNED,
        says("Done."),
    ]
    with Agent(ScriptedModel(steps), options=AgentOptions(knowledge_tokens=0)).chat() as chat:
        chat.say("the small llama on our four cards")
        assert chat.plan is None
        chat.say("yes")
        assert chat.plan is not None


def test_a_model_that_asks_back_is_not_overruled_by_a_plan() -> None:
    with Agent(ScriptedModel([says("Which load do you expect?")]), options=AgentOptions()).chat() as chat:
        assert "Valid plan" not in chat.say(REQUEST).text
        assert chat.plan is None


@pytest.mark.thorough
def test_a_what_if_beside_a_plan_of_the_model_is_planned_by_it_too_or_says_so() -> None:
    proposal = calls(("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 4}, "decode": {"tp": 4}}}))
    first = [replan(REQUEST), proposal, says("Done.")]
    told_apart = "a part of the difference may be the proposer's"
    with Agent(ScriptedModel([*first, supposed("concurrency 16"), proposal, says("So.")])).chat() as chat:
        chat.say(REQUEST)
        assert told_apart not in " ".join(chat.say("what about concurrency 16?").text.split())
    with Agent(ScriptedModel(first)).chat() as chat:
        chat.say(REQUEST)
        assert chat.result is not None and chat.result.report is not None
        assert chat.result.report.proposer == "llm"
        # The model is gone: the built-in proposer answers.
        assert told_apart in " ".join(chat.say("what about concurrency 16?").text.split())
