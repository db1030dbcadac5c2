"""A known key appears in nothing that a chat stores or shows, whoever says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import ModelRequest, Reply, Usage

# The chat's note after words of a model that no tool supports.
UNCHECKED = "(No tool was asked"
CANARY = "sk-canary-7f3b9c2d1e"


class Telling:
    """A model that says the key in pieces."""

    name = "telling"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        self.requests.append(request)
        text = f"your key is {CANARY}, is it not?\n"
        if on_text is not None:
            for at in range(0, len(text), 5):
                on_text(text[at : at + 5])
        return Reply(text=text, finish="stop", usage=Usage(input_tokens=1, output_tokens=1))


def test_a_key_is_in_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    shown: list[str] = []
    path, model = tmp_path / "one.sqlite", Telling()
    with Agent(model, options=AgentOptions(knowledge_tokens=0, transcript=tmp_path / "chat.json")).chat(path) as chat:
        answers = [chat.say(f"my key is {CANARY}", shown.append), chat.say(f"/export /nowhere/{CANARY}", shown.append)]
        answers.append(chat.say(f"/explain {CANARY}", shown.append))
        everything = chat.shown_before()
        files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    with Chat(path) as chat:
        answers.append(chat.say(f"Llama-3.1-8B on 2 H100 {CANARY}", shown.append))
        answers.append(chat.say("/export " + str(tmp_path / "plan.json"), shown.append))
        everything += chat.shown_before()
    files += b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for text in ("".join(shown), everything, *(answer.model_dump_json() for answer in answers), str(model.requests)):
        assert CANARY not in text
    assert CANARY.encode() not in files
    assert "[redacted]" in everything


class Streaming:
    """A model whose words come in the given pieces."""

    name = "streaming"

    def __init__(self, *pieces: str) -> None:
        self._pieces = pieces

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        assert on_text is not None
        for piece in self._pieces:
            on_text(piece)
        return Reply(text="".join(self._pieces), finish="stop", usage=Usage(input_tokens=1, output_tokens=1))


@pytest.mark.parametrize("cut", range(1, len(CANARY)))
@pytest.mark.parametrize("before", ["", "z" * 70 + " ", "a line\n"])
def test_a_secret_that_comes_in_two_pieces_is_not_shown(monkeypatch: pytest.MonkeyPatch, before: str, cut: int) -> None:
    monkeypatch.setenv("HF_TOKEN", CANARY)
    shown: list[str] = []
    model = Streaming(before + CANARY[:cut], CANARY[cut:] + " and more\n")
    with Agent(model, options=AgentOptions(knowledge_tokens=0)).chat() as chat:
        answer = chat.say("hello, what do you know?", shown.append)
        everything = chat.shown_before()
    assert "".join(shown) == answer.text
    assert answer.text.partition(UNCHECKED)[0] == f"{before}[redacted] and more\n"
    assert CANARY not in everything


def test_words_that_only_begin_as_a_secret_does_are_shown_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", CANARY)
    model = Streaming("it begins with ", CANARY[:9])
    with Agent(model, options=AgentOptions(knowledge_tokens=0)).chat() as chat:
        answer = chat.say("how does the key begin?").text
    assert answer.partition(UNCHECKED)[0] == f"it begins with {CANARY[:9]}\n"
