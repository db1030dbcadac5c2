"""The `openai` client talks with the planner as with a model, without a configured endpoint."""

from __future__ import annotations

import openai
import pytest

from ..agent.operations.asked import REQUEST
from .served import Server, in_thread

MORE = "now with 1 GPU"


@pytest.fixture
def model(served: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served.url}v1", api_key="none", max_retries=0)


def test_the_model_is_listed_and_answers(model: openai.OpenAI) -> None:
    assert [listed.id for listed in model.models.list()] == ["shardwright"]
    answer = model.chat.completions.create(model="shardwright", messages=[{"role": "user", "content": REQUEST}])
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.choices[0].message.content or "").startswith("Valid plan")
    assert answer.usage is not None and answer.usage.total_tokens > answer.usage.completion_tokens > 0


def test_a_stream_is_the_same_text_with_an_end_and_usage(model: openai.OpenAI) -> None:
    question = {"model": "shardwright", "messages": [{"role": "user", "content": [{"type": "text", "text": REQUEST}]}]}
    whole = model.chat.completions.create(**question)
    pieces = list(model.chat.completions.create(**question, stream=True, stream_options={"include_usage": True}))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == whole.choices[0].message.content
    assert pieces[-2].choices[0].finish_reason == "stop"
    assert pieces[-1].usage == whole.usage


def test_a_conversation_goes_on_and_what_is_not_known_is_said_again() -> None:
    def answer_to(client: openai.OpenAI, messages: list[dict[str, str]]) -> str:
        answer = client.chat.completions.create(model="shardwright", messages=messages)  # type: ignore[arg-type]
        return answer.choices[0].message.content or ""

    talk = [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": REQUEST}]
    with in_thread() as server:
        client = openai.OpenAI(base_url=f"{server.url}v1", api_key="none", max_retries=0)
        first = answer_to(client, talk)
        talk += [{"role": "assistant", "content": f"{first}\n"}, {"role": "user", "content": MORE}]
        known = answer_to(client, talk)
        assert len(server.parts.talks) == 1
        # The conversation has gone on, so the repeated question is answered in a new one.
        assert answer_to(client, talk) == known
        assert len(server.parts.talks) == 2
    assert "1 of 1 GPUs" in known


def test_a_short_answer_is_cut_and_says_so(model: openai.OpenAI) -> None:
    answer = model.chat.completions.create(
        model="shardwright", messages=[{"role": "user", "content": REQUEST}], max_tokens=5
    )
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None and answer.usage.completion_tokens == 5


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "gpt-9"}, openai.NotFoundError),
        ({"n": 2}, openai.BadRequestError),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError),
        ({"tool_choice": "required"}, openai.BadRequestError),
        ({"messages": []}, openai.BadRequestError),
        ({"messages": [{"role": "assistant", "content": "hello"}]}, openai.BadRequestError),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, openai.BadRequestError),
        ({"messages": [{"role": "user", "content": "x"}] * 60}, openai.BadRequestError),
    ],
)
def test_what_cannot_be_answered_is_an_error_of_openai(
    change: dict[str, object], error: type[openai.APIStatusError], model: openai.OpenAI
) -> None:
    question = {"model": "shardwright", "messages": [{"role": "user", "content": "hello"}], **change}
    with pytest.raises(error) as refused:
        model.chat.completions.create(**question)  # type: ignore[call-overload]
    assert isinstance(refused.value.body, dict)
    assert set(refused.value.body) == {"message", "type", "param", "code"}
