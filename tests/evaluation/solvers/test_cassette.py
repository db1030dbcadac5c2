"""A recorded run replays to the same result without its server; a misfit is a fault, not a score."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from shardwright.agent.evaluation.results import CaseResult
from shardwright.agent.evaluation.solvers.cassette import Played
from shardwright.agent.evaluation.solvers.live import Live
from shardwright.agent.evaluation.solvers.recorder import Recorder
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.tools.errors import InputError

from ...agent.model.fault_server import Step, answer, call, cuts, delta, hangs, refuses, sends, streams, text
from ...examples import examples
from . import worlds
from .worlds import BARE, calls, endpoint, rewritten, scored, strategy

clean_environment = worlds.clean_environment
WRONG, RIGHT = calls(strategy(3)), calls(strategy(2))
HANDLE = calls(call("submit_dag", '{"handle": "d2"}'))
LOOK = calls(call("look_up", '{"kind": "model", "name": "Qwen3-8B"}'))
WORDS = text('I propose {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}')
BUSY = refuses(429, "slow down", Retry_After="0")
DOWN = refuses(500, "oh no", Retry_After="0")
NO_TOOLS = refuses(400, "m does not support tools")
STREAM = streams(
    [
        delta({"role": "assistant", "content": "TP"}),
        delta({"content": "2 "}),
        delta({"content": "on both cards"}, "stop"),
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
    ]
)


# Without repairs a run ends sooner.
SWIFT = AgentOptions(knowledge_tokens=0, repairs=False)


def recorded(
    folder: Path, *steps: Step, name: str = "words", options: AgentOptions = SWIFT, **flags: Any
) -> CaseResult:
    """The result of a run against a server of `steps`, recorded in `folder`."""
    with endpoint(*steps, options=options, **flags) as (live, _):
        return scored(Recorder.into(folder, live), name)


def file_of(folder: Path, name: str = "words") -> Path:
    """The path of a case's cassette."""
    return folder / f"{name}.1.json"


def exchanges(folder: Path) -> list[dict[str, Any]]:
    """The recorded exchanges."""
    return json.loads(file_of(folder).read_text())["exchanges"]


RUNS: dict[str, tuple[Step, ...]] = {
    "corrected": (WRONG, RIGHT),
    "tools before the answer": (LOOK, WRONG, RIGHT),
    "words": (text("no idea"), WORDS),
    "refused tools": (NO_TOOLS, WRONG, WORDS),
    "busy": (BUSY, DOWN, WRONG, BUSY, RIGHT),
    "busy for ever": (WRONG, BUSY),
    "a wait beyond the end": (WRONG, refuses(429, "quota", Retry_After="100000")),
    "the same again": (WRONG, WRONG, WRONG),
    "no answers": (sends("{}"), sends("<html>"), RIGHT),
    "not text": (sends(b'{"choices": "\xff\xfe"}'), RIGHT),
    "compressed": (sends(gzip.compress(json.dumps(answer({"content": "TP2"})).encode()), Content_Encoding="gzip"),),
    "cut off": (cuts(b'{"id": "x", "cho'), RIGHT),
    "refused key": (refuses(401),),
    "a redirect": (refuses(302, Location="http://127.0.0.1:9/"),),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("steps", RUNS.values(), ids=RUNS)
def test_a_recording_played_offline_comes_to_the_same(steps: tuple[Step, ...], tmp_path: Path) -> None:
    live = recorded(tmp_path, *steps)
    played = scored(Played.of(tmp_path))
    assert live.fault is None
    assert played == live


def test_a_repair_that_was_taken_is_taken_again(tmp_path: Path) -> None:
    live = recorded(tmp_path, WRONG, HANDLE, options=BARE)
    assert (live.status, live.proposals) == ("accepted_after_repair", 2)
    assert scored(Played.of(tmp_path)) == scored(Played.of(tmp_path)) == live


def test_a_stream_is_played_as_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_STREAM", "true")
    live = recorded(tmp_path, STREAM)
    monkeypatch.delenv("SHARDWRIGHT_LLM_STREAM")
    assert (live.status, live.spent.input_tokens) == ("accepted", 5)
    assert "data:" in exchanges(tmp_path)[0]["body"]
    assert scored(Played.of(tmp_path)) == live


def test_a_server_that_says_nothing_is_played_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "2")
    live = recorded(tmp_path, hangs, RIGHT, request_timeout_s=0.3)
    assert live.spent.requests == 2
    assert exchanges(tmp_path)[0]["failure"] == "timeout"
    assert scored(Played.of(tmp_path)) == live


STEPS = st.lists(
    st.sampled_from([WRONG, RIGHT, LOOK, WORDS, BUSY, DOWN, text("hm"), sends("[]")]), min_size=1, max_size=4
)


@examples(3, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_any_run_comes_to_the_same(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    folder = tmp_path_factory.mktemp("tape")
    live = recorded(folder, *steps)
    assert scored(Played.of(folder)) == live


def test_the_same_request_twice_is_answered_in_the_order_recorded(tmp_path: Path) -> None:
    live = recorded(tmp_path, DOWN, DOWN, RIGHT)
    bodies = [exchange["request"] for exchange in exchanges(tmp_path)]
    assert bodies[0] == bodies[1] == bodies[2]
    assert [exchange["status"] for exchange in exchanges(tmp_path)] == [500, 500, 200]
    assert scored(Played.of(tmp_path)).spent.requests == live.spent.requests == 3


def no_tail(document: dict[str, Any]) -> None:
    document["exchanges"].append(document["exchanges"][-1])


def no_end(document: dict[str, Any]) -> None:
    document["exchanges"].pop()


def another_model(document: dict[str, Any]) -> None:
    document["exchanges"][0]["request"]["model"] = "other"


def another_tool(document: dict[str, Any]) -> None:
    document["exchanges"][0]["request"]["tools"][2]["function"]["name"] = "other"


def another_word(document: dict[str, Any]) -> None:
    message = document["exchanges"][1]["request"]["messages"][1]
    message["content"] = message["content"].replace("RTX", "GTX", 1)


def one_field_more(document: dict[str, Any]) -> None:
    document["exchanges"][0]["request"]["temperature"] = 0


def another_case(document: dict[str, Any]) -> None:
    document["case"] = "other"


def changed_case(document: dict[str, Any]) -> None:
    document["case_digest"] = "0" * 64


def cut_off(document: dict[str, Any]) -> None:
    document["is_cut_off"] = True


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "an unplayed tail": (no_tail, "1 of 3 recorded requests were not made"),
    "a request more": (no_end, "request 2 is not in the recording: no more was recorded"),
    "another model": (another_model, "differs at /model: recorded 'other', now 'm'"),
    "another tool": (another_tool, "differs at /tools/2/function/name"),
    "another word": (another_word, "request 2 is not in the recording: the next of 1 differs at /messages/1/content"),
    "a field more": (one_field_more, "differs at /temperature: recorded, not asked now"),
    "another case": (another_case, "is of case 'other'"),
    "a changed case": (changed_case, "changed since it was recorded"),
    "a run cut off": (cut_off, "cut off by the clock"),
    "a version to come": (lambda document: document.update(version="2"), "version"),
}


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording of a corrected answer, two requests in all."""
    folder = tmp_path_factory.mktemp("corrected")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "none"))
        assert recorded(folder, WRONG, RIGHT).status == "accepted"
    return folder


@pytest.mark.parametrize(("change", "words"), FAULTS.values(), ids=FAULTS)
def test_what_does_not_fit_is_a_fault_that_names_the_case(
    change: Callable[[dict[str, Any]], None], words: str, corrected: Path, tmp_path: Path
) -> None:
    for file in corrected.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rewritten(file_of(tmp_path), change)
    result = scored(Played.of(tmp_path))
    assert result.answer == "failed"
    assert result.passed("rules") is not True
    assert result.fault is not None
    assert "words" in result.fault
    assert words in result.fault


def test_a_missing_cassette_is_a_fault(corrected: Path) -> None:
    for name, epoch in (("words", 2), ("base", 1)):
        result = scored(Played.of(corrected), name, epoch)
        assert f"case {name} (epoch {epoch}): not recorded" in (result.fault or "")


def test_a_recording_of_a_case_that_no_model_is_asked_any_more_is_a_fault(corrected: Path, tmp_path: Path) -> None:
    for file in corrected.iterdir():
        (tmp_path / file.name.replace("words", "refused")).write_bytes(file.read_bytes())
    assert "no model is asked any more" in (scored(Played.of(tmp_path), "refused").fault or "")
    assert scored(Played.of(corrected), "refused").fault is None


def test_a_run_that_the_clock_ended_is_recorded_as_one(tmp_path: Path) -> None:
    hurried = AgentOptions(knowledge_tokens=0, limits=Limits(seconds=0.4))
    live = recorded(tmp_path, hangs, options=hurried)
    assert live.status == "time_spent"
    assert "cut off by the clock" in (scored(Played.of(tmp_path)).fault or "")


def test_the_order_of_keys_and_the_letters_of_fences_are_no_difference(corrected: Path, tmp_path: Path) -> None:
    before = json.loads(file_of(corrected).read_text())["exchanges"][0]["request"]
    for file in corrected.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rewritten(
        file_of(tmp_path), lambda document: document["exchanges"][0].update(request=dict(reversed(before.items())))
    )
    assert "data-" in json.dumps(before)
    assert scored(Played.of(tmp_path)).fault is None


def test_options_of_the_recorded_run_hold_when_it_is_played(tmp_path: Path) -> None:
    options = AgentOptions(knowledge_tokens=0, feedback="bit", repairs=False, limits=Limits(corrections=1))
    live = recorded(tmp_path, WRONG, WRONG, options=options)
    played = scored(Played.of(tmp_path))
    assert (live.status, live.proposals) == ("corrections_spent", 2)
    assert played == live


def test_a_folder_takes_one_recording_and_can_be_carried_on(corrected: Path) -> None:
    with endpoint(WRONG, RIGHT, options=SWIFT) as (live, _):
        assert scored(Recorder.into(corrected, live), epoch=3).fault is None
        with pytest.raises(InputError, match="holds a recording of another run"):
            Recorder.into(corrected, live, dataset_hash="1")
        with pytest.raises(InputError, match="holds a recording of another run"):
            Recorder.into(corrected, Live.of(live.flags, AgentOptions()))


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no recording: there is no recording\.json"):
        Played.of(tmp_path)
