"""`replay`: a recorded run done again without a model."""

from __future__ import annotations

from pathlib import Path

import click

from ...tools.errors import InputError
from .flags import FILE, output_format
from .streams import STANDARD, may_style, text_width, write_json, write_stdout


@click.command("replay", short_help="Do a recorded run of a language model again, without the model.")
@click.argument("transcript", metavar="FILE", type=FILE)
@output_format
def replay_command(transcript: Path, output_format: str) -> int:
    """Do the run of the transcript FILE again: its answers out of the recording, every judgement anew.

    Exit 1 where the run takes another course today, with what differs. No endpoint and no key are needed.

    \b
      shardwright replay run.json
    """
    if str(transcript) == STANDARD:
        raise InputError("replay reads a file: name one")
    from ..loop.replay import replay
    from ..loop.transcript import read_transcript

    recorded = read_transcript(transcript)
    found = replay(recorded)
    if output_format == "json":
        write_json(found)
    else:
        from ..report.replay import render_replay

        title = click.format_filename(transcript)
        write_stdout(render_replay(found, recorded, title=title, width=text_width(), bold=may_style()))
    return 0 if found.same else 1
