"""The host's time of a step: added to the GPU's, or hidden behind it as far as it is shorter."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.engines.names import ENGINES
from shardwright.tools.performance.operation import TokenLoad
from shardwright.tools.performance.schedule import PhaseTimer
from shardwright.tools.performance.serving.load import ClosedLoop, Lengths

from .serving.engines import BUSY_HOST, ROOMY, simulate

AHEAD, BEHIND = "0.16.0", "0.12.0"


def host_ms(layout_of: Any, model: str, version: str, users: int) -> tuple[float, float]:
    """The host's time for a step of so many sequences, and how much of it the step waits for."""
    layout = layout_of(model, {"tp": 1, "tp_ffn": 1}, serving={"engine": "vllm", "engine_version": version})
    constants = layout.setting.engine.entry.constants
    step = PhaseTimer(layout.setting, layout.phase("decode")).decode(TokenLoad(users, 1, 512), 1)
    return constants.host_step_ms + constants.host_sequence_us * 1e-3 * users, step.host_seconds * 1e3


def test_a_model_too_small_to_hide_the_host_is_bound_by_it_and_a_large_one_is_not(layout_of: Any) -> None:
    whole_ms, waited_ms = host_ms(layout_of, "Llama-3.2-1B", AHEAD, 256)
    assert 0.0 < waited_ms < whole_ms
    assert host_ms(layout_of, "Llama-3.1-8B", AHEAD, 8)[1] == 0.0


@pytest.mark.parametrize("model", ["Llama-3.2-1B", "Llama-3.1-8B"])
def test_a_host_that_prepares_no_step_ahead_is_added_whole(layout_of: Any, model: str) -> None:
    whole_ms, waited_ms = host_ms(layout_of, model, BEHIND, 64)
    assert waited_ms == pytest.approx(whole_ms)


def test_throughput_grows_no_further_with_users_where_the_host_is_the_bound() -> None:
    rates = [simulate(BUSY_HOST, ROOMY, ClosedLoop(n, 4 * n), Lengths(16, 200)).output_tokens_per_s for n in (64, 256)]
    most = 1.0 / BUSY_HOST.hidden_per_sequence_s
    assert 0.8 * most < rates[0] < most
    assert rates[1] < most


@pytest.mark.parametrize(
    ("engine", "version", "hides"),
    [
        ("vllm", "0.7.3", False),
        ("vllm", "0.13.0", False),
        ("vllm", "unstated (2025)", False),
        ("vllm", "0.14.0", True),
        ("vllm", None, True),
        ("sglang", "0.3.6", False),
        ("sglang", "0.4.0", True),
        ("sglang", None, True),
        ("trtllm", "0.17.0", False),
        ("trtllm", "1.0.0", True),
        ("trtllm", None, True),
        ("lmdeploy", None, False),
    ],
)
def test_which_releases_hide_their_host(engine: str, version: str | None, *, hides: bool) -> None:
    assert ENGINES[engine].hides_host(version) is hides


@pytest.mark.parametrize(
    ("engine", "version", "flag", "hides"),
    [
        ("vllm", "0.12.0", "--async-scheduling", True),
        ("vllm", "0.16.0", "--no-async-scheduling", False),
        ("sglang", "0.5.0", "--disable-overlap-schedule", False),
        ("sglang", "0.5.0", "--trust-remote-code", True),
        ("trtllm", "1.0.0", '{"disable_overlap_scheduler": true}', False),
        ("trtllm", "1.0.0", '{"disable_overlap_scheduler": false}', True),
        ("trtllm", "1.0.0", '{"print_iter_log": true}', True),
    ],
)
def test_a_server_that_is_told_to_hide_its_host_or_not_does_so(
    layout_of: Any, engine: str, version: str, flag: str, *, hides: bool
) -> None:
    serving = {"engine": engine, "engine_version": version, "flags": {"decode": [flag]}}
    layout = layout_of("Llama-3.2-1B", {"tp": 1, "tp_ffn": 1}, serving=serving)
    assert layout.setting.hides_host is hides


def test_a_flag_of_all_servers_counts_beside_flags_of_one_phase(layout_of: Any) -> None:
    flags = {"both": ["--no-async-scheduling"], "decode": ["--enforce-eager"]}
    serving = {"engine": "vllm", "engine_version": "0.16.0", "flags": flags}
    assert not layout_of("Llama-3.2-1B", {"tp": 1, "tp_ffn": 1}, serving=serving).setting.hides_host
