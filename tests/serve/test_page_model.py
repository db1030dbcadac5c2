"""The page beside a language model: a server of chat completions streams its words, and its plan is shown.

Skipped where Playwright or a browser (Chromium or Chrome) is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.settings import EndpointSettings

from ..agent.model.fault_server import FaultServer, call, sends
from ..agent.model.local_servers import Ollama
from .browsing import SMALL_REQUEST, Page
from .served import Server, in_thread

pytestmark = pytest.mark.thorough

CLOSING = "Two GPUs share each layer, so a token waits for half of the weights. <b>Nothing</b> else."


def colleague(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """A model that asks for a plan when spoken to, takes the plan that it is shown, and gives reasons."""
    tools = {tool["function"]["name"] for tool in body.get("tools", [])}
    if "submit_dag" in tools:
        return [{"index": 0, **call("submit_dag", '{"handle": "reference"}')}]
    if "replan" in tools and body["messages"][-1]["role"] != "tool":
        return [{"index": 0, **call("replan", f'{{"words": "{SMALL_REQUEST}"}}')}]
    return CLOSING


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with FaultServer(*[Ollama(colleague, context=100_000)] * 20) as server:
        yield server


@pytest.fixture
def advised(endpoint: FaultServer) -> Iterator[Server]:
    settings = EndpointSettings.model_validate({"base_url": endpoint.url, "model": "colleague", "api_key": "sk-hidden"})
    with in_thread(agent=Agent(EndpointClient(settings))) as server:
        yield server


def test_a_model_plans_and_its_words_stream_onto_the_page(
    chromium: Any, advised: Server, endpoint: FaultServer
) -> None:
    page = Page(chromium, advised.url)
    page.say(SMALL_REQUEST)
    page.verdict("TP2 · meta-llama/Llama-3.1-8B")
    page.tab.locator(".theirs", has_text=CLOSING).wait_for()
    assert any(body.get("stream") for body in endpoint.bodies)
    assert "sk-hidden" not in page.tab.content()
    assert page.noise == []
    page.context.close()


def test_an_endpoint_that_dies_is_named_and_the_page_plans_without_it(chromium: Any) -> None:
    with FaultServer(*[sends({"error": {"message": "out of memory"}}, status=400)] * 20) as dying:
        settings = EndpointSettings.model_validate({"base_url": dying.url, "model": "colleague"})
        with in_thread(agent=Agent(EndpointClient(settings))) as server:
            page = Page(chromium, server.url)
            page.say(SMALL_REQUEST)
            page.verdict("TP2 · meta-llama/Llama-3.1-8B")
            page.tab.locator(".theirs", has_text="out of memory").wait_for()
            assert page.noise == []
            page.context.close()
