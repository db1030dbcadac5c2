"""`doctor` finds out what a server can do, by asking servers of different abilities the same questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shardwright.agent.cli.app import run

from .fault_server import Exchange, FaultServer, Step, answer, call, delta, hangs, refuses, sends, streams, text

MODELS = sends({"object": "list", "data": [{"id": "other"}, {"id": "m", "max_model_len": 32_768}]})
KEPT = '{"colour": "green", "count": 12, "note": ""}'
FORM_ONLY = '{"colour": "green", "count": 3, "note": ""}'


def usage_at_the_end() -> Step:
    """A stream that ends with its usage."""
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    return streams([delta({"content": "rea"}), delta({"content": "dy"}, "stop"), usage])


def sums(body: Any) -> Step:
    """A model that calls the tool as asked."""
    twice = "twice" in body["messages"][-1]["content"]
    calls = [call("report_sum", '{"a": 1, "b": 2, "sum": 3}', f"c{at}") for at in range(2 if twice else 1)]
    return sends(answer({"content": None, "tool_calls": calls}, "tool_calls"))


def server_of(
    *,
    tools: Callable[[Any], Step] = sums,
    schema: Step = text(KEPT),  # noqa: B008 - a step is a function without a state
    plain: Step = text("ready"),  # noqa: B008
    stream: Callable[[], Step] = usage_at_the_end,
) -> Step:
    """A server with its own step for each kind of question."""

    def step(exchange: Exchange) -> None:
        body = exchange.received.body
        if body.get("stream"):
            stream()(exchange)
        elif body.get("tools"):
            tools(body)(exchange)
        elif body.get("response_format"):
            schema(exchange)
        else:
            plain(exchange)

    return step


def examined(
    step: Step, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], models: Step = MODELS, *more: str
) -> tuple[int, dict[str, Any]]:
    """Exit status and report of `doctor`."""
    with FaultServer(step, models=models) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        status = run(["doctor", "--llm-model", "m", "--format", "json", *more])
    out, err = capsys.readouterr()
    assert err == ""
    return status, json.loads(out)


def states(report: dict[str, Any]) -> dict[str, str]:
    """The state of each check by name."""
    return {check["name"]: check["state"] for check in report["checks"]}


def test_a_server_that_can_do_everything_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = examined(server_of(), monkeypatch, capsys)
    assert status == 0
    assert set(states(report).values()) == {"ok"}
    assert (report["suits"], report["context_tokens"], report["requests"]) == ("tools", 32_768, 6)
    assert report["advice"] == ["mode auto suits it: nothing is to be set"]


def no_tools(body: Any) -> Step:
    """A server that refuses tools."""
    del body
    return refuses(400, "m does not support tools")


def ignores_tools(body: Any) -> Step:
    """A model that talks instead."""
    del body
    return text("The sum is 42.")


def wrong_arguments(body: Any) -> Step:
    """A model that calls the tool with other arguments."""
    del body
    return sends(answer({"content": None, "tool_calls": [call("report_sum", '{"a": "x"}')]}, "tool_calls"))


LESS: dict[str, tuple[Step, int, str, dict[str, str]]] = {
    "no tools": (server_of(tools=no_tools), 0, "schema", {"tools": "failed", "parallel calls": "skipped"}),
    "tools ignored": (server_of(tools=ignores_tools), 0, "schema", {"tools": "failed"}),
    "wrong arguments": (server_of(tools=wrong_arguments), 0, "schema", {"tools": "weak", "parallel calls": "weak"}),
    "bounds not kept": (server_of(tools=no_tools, schema=text(FORM_ONLY)), 0, "schema", {"strict schema": "weak"}),
    "schema ignored": (server_of(schema=text("Here you are: purple!")), 0, "tools", {"strict schema": "failed"}),
    "enumeration ignored": (
        server_of(schema=text('{"colour": "purple", "count": 12, "note": ""}')),
        0,
        "tools",
        {"strict schema": "failed"},
    ),
    "words only": (
        server_of(tools=no_tools, schema=refuses(400, "response_format is not supported")),
        1,
        "text",
        {"tools": "failed", "strict schema": "failed", "plain answer": "ok"},
    ),
    "no count in streams": (
        server_of(stream=lambda: streams([delta({"content": "ready"}, "stop")])),
        0,
        "tools",
        {"streaming": "weak"},
    ),
    "ignores that a stream was asked for": (
        server_of(stream=lambda: text("one two three")),
        0,
        "tools",
        {"streaming": "weak"},
    ),
    "streams are cut": (
        server_of(stream=lambda: streams([delta({"content": "rea"})])),
        0,
        "tools",
        {"streaming": "failed"},
    ),
}


@pytest.mark.parametrize(("step", "status", "suits", "found"), LESS.values(), ids=LESS.keys())
def test_a_server_that_can_do_less_is_told_how_it_is_best_asked(
    step: Step,
    status: int,
    suits: str,
    found: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen, report = examined(step, monkeypatch, capsys)
    assert (seen, report["suits"]) == (status, suits)
    assert found.items() <= states(report).items()
    if suits != "tools":
        assert f"set SHARDWRIGHT_LLM_MODE={suits}" in report["advice"]


DOWN: dict[str, tuple[Step, Step, str]] = {
    "key refused": (refuses(401), refuses(401), "key"),
    "model unknown": (refuses(404, "model 'm' not found"), MODELS, "not found"),
    "broken": (refuses(400, "broken"), MODELS, "broken"),
}


@pytest.mark.parametrize(("step", "models", "words"), DOWN.values(), ids=DOWN.keys())
def test_a_server_that_gives_no_answer_is_down(
    step: Step, models: Step, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = examined(step, monkeypatch, capsys, models)
    assert (status, report["suits"]) == (3, None)
    assert states(report)["tools"] == "skipped"
    assert any(words in line for line in report["advice"])


def test_a_server_that_hangs_is_down_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = examined(hangs, monkeypatch, capsys, hangs, "--seconds", "0.4")
    assert status == 3
    assert states(report)["model listed"] == "failed"


def test_a_server_without_a_list_of_models_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = examined(server_of(), monkeypatch, capsys, refuses(404))
    assert status == 0
    assert states(report)["model listed"] == "weak"
    assert states(report)["context"] == "skipped"


def test_a_model_that_is_not_listed_is_named_with_its_neighbours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = sends({"data": [{"id": "m-large"}, {"id": "zzz"}, {"no": "id"}, 7]})
    status, report = examined(server_of(), monkeypatch, capsys, models)
    assert status == 0
    listed = report["checks"][0]
    assert listed["state"] == "weak"
    assert "m-large" in listed["detail"]


def test_a_short_context_is_warned_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    models = sends({"data": [{"id": "m", "meta": {"n_ctx_train": 4096}}]})
    _, report = examined(server_of(), monkeypatch, capsys, models)
    assert states(report)["context"] == "weak"
    assert any("longer context" in line for line in report["advice"])


def test_the_report_for_people_says_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    with FaultServer(server_of(tools=no_tools), models=MODELS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run(["doctor", "--llm-model", "m"]) == 0
    out, _ = capsys.readouterr()
    assert "works; mode schema suits it" in out
    assert "set SHARDWRIGHT_LLM_MODE=schema" in out
    assert "does not support tools" in out


@pytest.mark.parametrize("named", ["OPENAI_BASE_URL", "SHARDWRIGHT_LLM_MODEL"])
def test_without_an_endpoint_the_call_is_wrong(
    named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("OPENAI_BASE_URL", "SHARDWRIGHT_LLM_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(named, "http://127.0.0.1:9/v1")
    assert run(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "set " in err
