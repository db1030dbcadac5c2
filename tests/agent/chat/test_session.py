"""A chat is stored: it is resumed as it was, belongs to one process, and refuses files that it does not know."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.chat.places import existing_path, new_path, path_of, sessions
from shardwright.agent.chat.session import Session
from shardwright.agent.chat.turn_input import Given
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import ModelRequest, Reply
from shardwright.tools.errors import InputError
from shardwright.tools.language.said import Said

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"


def test_a_chat_is_resumed_as_it_stood(tmp_path: Path) -> None:
    path, shown = tmp_path / "one.sqlite", list[str]()
    with Chat(path) as chat:
        for text in (REQUEST, "1 GPU", "use fp8", "/undo", "what if concurrency 8"):
            chat.say(text, shown.append)
        plan, result = chat.plan, chat.result
    with Chat(path) as chat:
        assert chat.plan == plan
        assert chat.result == result
        assert chat.cut_off is None
        for piece in shown:
            assert piece in chat.shown_before()
        assert chat.say("/redo").kind == "moved"
        assert chat.plan is not None
        assert chat.plan.precision.weights == "fp8"
    with Chat(path) as chat:
        assert chat.say("/history").text.count("\n") == 3


def test_a_what_if_can_be_taken_after_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    with Chat(path) as chat:
        chat.say(REQUEST)
        chat.say("what if we had 1 GPU")
    with Chat(path) as chat:
        chat.say("/take")
        assert chat.plan is not None
        assert chat.plan.strategy.gpu_count == 1


def test_a_turn_that_was_cut_off_is_seen_and_can_be_done_again(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    with Chat(path) as chat:
        chat.say(REQUEST)
        chat.session.add(("turn", {"text": "now with 1 GPU", "at": 0}), ("shown", {"text": "half an ans"}))
    with Chat(path) as chat:
        assert chat.cut_off is not None
        assert chat.cut_off.text == "now with 1 GPU"
        assert "half an ans" in chat.shown_before()
        answer = chat.say("/again")
        assert answer.text.startswith("Again: now with 1 GPU")
        assert chat.plan is not None
        assert chat.plan.strategy.gpu_count == 1
        assert chat.cut_off is None


def test_what_is_shown_is_on_the_disk_before(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    seen: list[str] = []

    def look(piece: str) -> None:
        # The files as another process would find them after a crash at this moment.
        copy = tmp_path / "copy.sqlite"
        for suffix in ("", "-wal"):
            source = Path(f"{path}{suffix}")
            Path(f"{copy}{suffix}").write_bytes(source.read_bytes() if source.exists() else b"")
        with Session(copy) as session:
            written = "".join(str(event.data["text"]) for event in session.events() if event.kind == "shown")
        assert written.endswith(piece)
        seen.append(piece)

    with Chat(path) as chat:
        chat.say(REQUEST, look)
        chat.say("why?", look)
    assert seen


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    script = (
        "import sys; from shardwright.agent.chat.session import Session; from pathlib import Path\n"
        "from shardwright.tools.errors import InputError\n"
        "try: Session(Path(sys.argv[1]))\n"
        "except InputError as error: print(error)\n"
    )
    with Session(path) as session:
        session.add(("turn", {"text": "hello", "at": -1}))
        process = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
        assert "another process has this session open" in process.stdout
        with pytest.raises(InputError, match="another process"):
            Session(path)
        session.add(("done", {"kind": "show"}))
    process = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert process.stdout == ""


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "one.sqlite"
    with Chat(path) as chat:
        chat.say(REQUEST)
        assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
        assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ("PRAGMA user_version = 99", "version 99 of sessions is not known"),
        ("PRAGMA application_id = 7", "not a chat session"),
    ],
)
def test_an_unknown_version_and_a_stranger_are_refused(tmp_path: Path, spoil: str, told: str) -> None:
    path = tmp_path / "one.sqlite"
    Session(path).close()
    with sqlite3.connect(path) as database:
        database.execute(spoil)
    database.close()
    with pytest.raises(InputError, match=told):
        Session(path)


def test_what_is_no_session_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    path.write_text("dear diary, " * 500, encoding="utf-8")
    with pytest.raises(InputError, match="cannot be used as a session"):
        Session(path)
    assert path.read_text(encoding="utf-8").startswith("dear diary")
    with pytest.raises(InputError):
        Session(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET data = '{' WHERE kind = 'version'",
        "UPDATE events SET data = '{\"version\": 3}' WHERE kind = 'version'",
        "DELETE FROM documents",
        "UPDATE documents SET data = x'00'",
    ],
)
def test_a_damaged_session_is_refused_in_one_line(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "one.sqlite"
    with Chat(path) as chat:
        chat.say(REQUEST)
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(InputError, match=r"damaged|cannot read") as refused, Chat(path) as chat:
        assert chat.plan is None
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [(b"kind TEXT NOT", b"k\xd2nd TEXT NOT"), (b"(seq INTEGER", b"(seq \xe4NTEGER"), (b'"turn"', b'"tu\xffn"')],
)
def test_a_session_whose_bytes_are_damaged_is_refused_in_one_line(tmp_path: Path, whole: bytes, damaged: bytes) -> None:
    path = tmp_path / "one.sqlite"
    with Session(path) as session:
        session.add(("turn", {"turn": "x"}))
    data = path.read_bytes()
    assert whole in data
    path.write_bytes(data.replace(whole, damaged))
    with pytest.raises(InputError) as refused, Session(path) as session:
        list(session.events())
    assert "\n" not in str(refused.value)


def test_sessions_are_found_by_id_and_the_last_one_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWRIGHT_HOME", str(tmp_path))
    with pytest.raises(InputError, match="there is no session"):
        existing_path(None)
    with Chat(path_of("mine")) as chat:
        chat.say("hello")
        assert [session.note for session in sessions()] == ["in use"]
    assert existing_path("mine") == existing_path(None) == tmp_path / "chats" / "mine.sqlite"
    assert [(session.id, session.turns, session.first) for session in sessions()] == [("mine", 1, "hello")]
    assert new_path() != new_path()
    with pytest.raises(InputError, match="mine"):
        existing_path("yours")
    with pytest.raises(InputError, match="no name"):
        path_of("a name with spaces")


def test_a_calibration_comes_back_with_the_chat(tmp_path: Path) -> None:
    from shardwright.tools.calibration.custom import CustomCalibration

    path = tmp_path / "one.sqlite"
    calibration = CustomCalibration(name="mine")
    with Chat(path, calibration=calibration) as chat:
        chat.say(REQUEST)
    with Chat(path) as chat:
        chat.say("1 GPU")
        assert chat.result is not None
        assert chat.result.intent is not None
        assert chat.result.intent.calibration == calibration


def test_a_first_turn_that_was_cut_off_is_done_again_with_its_options(tmp_path: Path) -> None:
    path, options = tmp_path / "one.sqlite", Said(ttft_ms_max=400.0, words={"ttft_ms_max": "--ttft-ms 400"})
    with Chat(path) as chat:
        chat.begin(REQUEST, [options])
        plan = chat.plan
        stated = next(event.data for event in chat.session.events() if event.kind == "turn")
    cut = tmp_path / "cut.sqlite"
    with Session(cut) as session:
        session.add(("turn", stated))
    with Chat(cut) as chat:
        chat.say("/again")
        assert chat.plan == plan
        assert plan is not None
        assert plan.workload.ttft_ms_max == 400.0


def test_what_was_set_or_opened_without_words_is_kept_and_done_again(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    with Chat(path) as chat:
        chat.say(REQUEST)
        opened = chat.plan
        chat.give("Requests at once: 8", Given(said=Said(concurrency=8)))
        at_eight = chat.plan
    with Chat(path) as chat:
        assert chat.plan == at_eight
        assert at_eight is not None and at_eight.workload.concurrency == 8
        chat.say("/undo")
        chat.give("plan.json", Given(plan=opened))
        assert chat.plan == opened
        assert chat.give("Requests at once: 8", Given(said=Said(concurrency=8))).valid
        assert chat.say("/again").valid
    with Chat(path) as chat:
        assert chat.plan is not None and chat.plan.workload.concurrency == 8


def test_an_interrupt_leaves_what_is_on_the_disk(tmp_path: Path) -> None:
    class Interrupted:
        name = "interrupted"

        def complete(
            self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
        ) -> Reply:
            raise KeyboardInterrupt

    path = tmp_path / "one.sqlite"
    with Chat(path) as chat:
        chat.say(REQUEST)
        plan = chat.plan
    with Agent(Interrupted()).chat(path) as chat:
        with pytest.raises(KeyboardInterrupt):
            chat.say("now with 1 GPU")
        assert chat.plan == plan
        assert chat.cut_off is None
        assert chat.say("/history").error is None
    with Chat(path) as chat:
        assert chat.plan == plan
        assert chat.record.turns[1].ending == "interrupted"
        chat.say("/undo")
