"""A model at an endpoint as a solver is asked as for users, and nothing secret is sent to other processes."""

from __future__ import annotations

import pickle

import pytest

from shardwright.agent.evaluation.solvers.live import Live
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.settings import EndpointFlags
from shardwright.tools.errors import InputError

from . import worlds
from .worlds import calls, endpoint, scored, strategy

clean_environment = worlds.clean_environment
CANARY = "sk-canary-0123456789"


def test_a_live_model_is_asked_and_corrected() -> None:
    with endpoint(calls(strategy(3)), calls(strategy(2))) as (live, server):
        result = scored(live)
        assert (result.status, result.strategy, result.spent.corrections) == ("accepted", "TP2", 1)
        assert result.spent.input_tokens == 22
        assert len(server.bodies) == 2
    assert live.name == "live:m"
    assert not live.is_deterministic


def test_an_endpoint_that_is_down_ends_runs_as_it_would_for_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "1")
    with endpoint(calls(strategy(2))) as (live, _):
        pass
    result = scored(live)
    assert (result.status, result.plan_from, result.fault) == ("endpoint_failed", "builtin", None)


def test_nothing_secret_is_in_what_another_process_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{CANARY}x@127.0.0.1:9/v1?key={CANARY}y")
    monkeypatch.setenv("SHARDWRIGHT_LLM_HEADERS", f"X-Key: {CANARY}z")
    live = Live.of(EndpointFlags(model=f"m-{CANARY}"))
    assert CANARY not in f"{live!r} {live.name} {live.options!r}"
    live = Live.of(EndpointFlags(model="m"))
    assert CANARY.encode() not in pickle.dumps(live)
    assert pickle.loads(pickle.dumps(live)) == live


@pytest.mark.parametrize("url", ["http://u:p@127.0.0.1/v1", "http://127.0.0.1/v1?key=x"])
def test_a_url_with_a_secret_is_no_option(url: str) -> None:
    with pytest.raises(InputError, match=r"\$OPENAI_BASE_URL"):
        Live.of(EndpointFlags(base_url=url, model="m"))


def test_without_an_endpoint_there_is_no_live_solver() -> None:
    with pytest.raises(InputError, match="no endpoint is configured"):
        Live.of(EndpointFlags(model="m"))


def test_mode_and_prices_of_the_settings_hold_unless_the_call_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("SHARDWRIGHT_LLM_MODE", "text")
    monkeypatch.setenv("SHARDWRIGHT_LLM_USD_PER_MILLION_INPUT", "1")
    monkeypatch.setenv("SHARDWRIGHT_LLM_USD_PER_MILLION_OUTPUT", "2")
    live = Live.of(EndpointFlags(model="m"))
    assert live.options.mode == "text"
    assert live.options.prices is not None
    assert Live.of(EndpointFlags(model="m"), AgentOptions(mode="schema")).options.mode == "schema"
