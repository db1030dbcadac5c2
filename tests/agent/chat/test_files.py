"""Files that a chat writes go to the path that was named, and replace nothing but files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from shardwright.agent.chat.chat import Chat

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"


def test_an_export_replaces_no_pipe_and_writes_through_a_link(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "plan.json"
    os.mkfifo(pipe)
    link.symlink_to(target)
    with Chat() as chat:
        chat.say(REQUEST)
        assert "nobody reads this pipe" in chat.say(f"/export {pipe}").text
        assert chat.say(f"/export {link}").error is None
        assert "is a folder" in chat.say(f"/export {tmp_path}").text
        assert "~nobody" in chat.say("/export ~nobody-of-this-name/plan.json").text
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink()
    assert target.read_text().startswith("{")
