"""A transcript is whole after each step, is read as far as it goes, and its replay reports what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from shardwright.agent.loop.context import Passages
from shardwright.agent.loop.loop import Options, run
from shardwright.agent.loop.replay import replay
from shardwright.agent.loop.transcript import Recorder, Transcript, read_transcript
from shardwright.agent.loop.transcript import Step as RecordedStep
from shardwright.agent.model.scripted import ScriptedModel, Step, says
from shardwright.tools.errors import InputError

from ...examples import examples
from .questions import SMALL, question
from .scripts import OPTIONS, SCRIPTS, TOOLS, recorded, recorder_of, strategy

TWO_TURNS: list[Step] = [strategy(1, tp=3), strategy(1, tp=2)]


class Watched:
    """A log that reads its own file after each step."""

    def __init__(self, recorder: Recorder, path: Path) -> None:
        self._recorder, self._path, self.kinds = recorder, path, list[str]()

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        self._recorder.add(kind, data)
        self.kinds.append(kind)
        transcript = read_transcript(self._path)
        assert [step.kind for step in transcript.steps] == self.kinds
        assert transcript.result is None


def saved(transcript: Transcript, path: Path) -> Path:
    path.write_text(transcript.model_dump_json(), encoding="utf-8")
    return path


@examples(8)
@given(SCRIPTS, OPTIONS)
def test_the_file_is_whole_after_each_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], options: Options
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.json"
    asked = question(SMALL)
    log = Watched(recorder_of(asked, options, path), path)
    run(asked, SMALL, Passages(), ScriptedModel(steps), options, log)
    assert log.kinds[:2] == ["opening", "messages"]


@examples(12)
@given(SCRIPTS, OPTIONS)
def test_any_run_replays_to_the_same_end(steps: list[Step], options: Options) -> None:
    outcome = replay(recorded(steps, options))
    assert outcome.differences == () and outcome.same
    assert outcome.recorded == outcome.replayed


@pytest.mark.thorough
def test_a_recording_that_was_cut_off_is_read_up_to_where_it_goes(tmp_path: Path) -> None:
    whole = recorded(TWO_TURNS)
    for length in range(0, len(whole.steps), 2):
        cut = whole.model_copy(update={"steps": whole.steps[:length], "result": None})
        outcome = replay(read_transcript(saved(cut, tmp_path / "cut.json")))
        assert not outcome.same
        assert "the recording was cut off before the run ended" in outcome.differences
        assert outcome.result.valid


def test_half_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    text = recorded(TWO_TURNS).model_dump_json()
    path = tmp_path / "half.json"
    for share in (0, 1, len(text) // 2, len(text) - 1):
        path.write_text(text[:share], encoding="utf-8")
        with pytest.raises(InputError, match="not a transcript") as refusal:
            read_transcript(path)
        assert "\n" not in str(refusal.value)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "shardwright/plan"}, "format"),
        ({"version": "2"}, "version '2'"),
        ({"steps": 7}, "steps"),
        ({"setup": {}}, "setup/request"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_is_no_transcript_of_this_version_is_refused_by_its_place(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({**recorded(TWO_TURNS).model_dump(mode="json"), **change}), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_transcript(path)


def test_a_changed_prompt_is_seen() -> None:
    whole = recorded(TWO_TURNS)
    asked_otherwise = whole.setup.model_copy(update={"request": "Serve it well."})
    outcome = replay(whole.model_copy(update={"setup": asked_otherwise}))
    assert outcome.differences == tuple(f"request {at} is not the one that was recorded" for at in (1, 2))


def test_an_answer_that_nobody_asks_for_is_seen() -> None:
    whole = recorded(TWO_TURNS)
    more = RecordedStep(kind="reply", data=says("and so on").model_dump(mode="json", exclude_defaults=True))
    outcome = replay(whole.model_copy(update={"steps": (*whole.steps, more)}))
    assert outcome.differences == ("1 recorded answers were not asked for",)


def test_another_answer_leads_to_another_end_and_is_seen() -> None:
    whole = recorded(TWO_TURNS)
    other = strategy(1, tp=1).model_dump(mode="json", exclude_defaults=True)
    places = [at for at, step in enumerate(whole.steps) if step.kind == "reply"]
    steps = list(whole.steps)
    steps[places[-1]] = RecordedStep(kind="reply", data=other)
    outcome = replay(whole.model_copy(update={"steps": tuple(steps)}))
    assert any(difference.startswith("status: recorded accepted, now ") for difference in outcome.differences)


def test_a_plan_that_is_not_the_recorded_one_is_seen() -> None:
    whole = recorded(TWO_TURNS)
    assert whole.result is not None
    other = whole.result.model_copy(update={"plan_hash": "0" * 64, "status": "no_progress"})
    outcome = replay(whole.model_copy(update={"result": other}))
    assert outcome.differences == (
        "status: recorded no_progress, now accepted", "the plan that is returned is another",
    )  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "step",
    [
        RecordedStep(kind="reply", data={}),
        RecordedStep(kind="reply", data={"finish": "stop", "usage": {"input_tokens": -1, "output_tokens": 0}}),
        RecordedStep(kind="fault", data={"kind": "tired", "message": "", "attempts": 1}),
        RecordedStep(kind="fault", data={"message": "no kind"}),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_in_one_line(step: RecordedStep) -> None:
    whole = recorded(TWO_TURNS)
    first = next(at for at, recorded_step in enumerate(whole.steps) if recorded_step.kind == "reply")
    broken = whole.model_copy(update={"steps": (*whole.steps[:first], step, *whole.steps[first + 1 :])})
    with pytest.raises(InputError, match="the recorded answer to request 1"):
        replay(broken)


def test_a_tool_that_there_is_not_is_named() -> None:
    whole = recorded(TWO_TURNS)
    setup = whole.setup.model_copy(update={"tools": (*whole.setup.tools, "launch_missiles")})
    with pytest.raises(InputError, match="launch_missiles"):
        replay(whole.model_copy(update={"setup": setup}))


def test_the_recorded_options_are_those_of_the_replay() -> None:
    whole = recorded(TWO_TURNS, Options(feedback="bit", repairs=False, tools=TOOLS.tools, fence=TOOLS.fence))
    assert replay(whole).same
    louder = whole.setup.model_copy(update={"level": "full"})
    assert not replay(whole.model_copy(update={"setup": louder})).same
