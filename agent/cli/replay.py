"""`replay`: a recorded run, or a recorded chat, done again without a model."""

from __future__ import annotations

from pathlib import Path

import click

from ...tools.errors import InputError
from .flags import FILE, output_format
from .streams import STANDARD, write_answer


@click.command("replay", short_help="Do a recorded run of a language model again, without the model.")
@click.argument("transcript", metavar="FILE", type=FILE)
@output_format
def replay_command(transcript: Path, output_format: str) -> int:
    """Do the run or the chat of the transcript FILE again: its answers out of the recording, every judgement anew.

    Exit 1 where it takes another course today, with what differs. No endpoint and no key are needed.

    \b
      shardwright replay run.json
    """
    if str(transcript) == STANDARD:
        raise InputError("replay reads a file: name one")
    from ..chat.transcript import ChatTranscript
    from ..loop.transcript import Transcript, read_recording

    recorded = read_recording(transcript, Transcript, ChatTranscript)
    title = click.format_filename(transcript)
    if isinstance(recorded, ChatTranscript):
        from ..chat.replay import replay_chat
        from ..report.replay import render_chat_replay

        replayed = replay_chat(recorded)
        write_answer(replayed, output_format, render_chat_replay, title=title)
    else:
        from ..loop.replay import replay
        from ..report.replay import render_replay

        replayed = replay(recorded)
        write_answer(replayed, output_format, render_replay, recorded=recorded, title=title)
    return 0 if replayed.same else 1
