"""`chat`: a conversation about one deployment, on a terminal or line by line through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError, ServiceError
from ..report.safe import one_line
from .asking import asks, said_of_options
from .flags import TEXT, output_format, take_stdin, time_limit_option
from .process import interrupts
from .progress import shown_work
from .proposing import agent_of, proposer_options_of
from .streams import STANDARD, may_style, stdin_bytes, text_width, write_piece, write_stdout

if TYPE_CHECKING:
    from ...tools.language.said import Said
    from ..chat.chat import Chat
    from ..chat.outcome import ChatAnswer

# A longer line than this is no sentence of a person.
MAX_LINE_BYTES = 1 << 20
_NEWEST = ""
_PROMPT = "> "


@click.command("chat", short_help="Plan in a conversation: follow-ups change the plan.")
@asks
@click.option(
    "--session",
    "session_name",
    type=TEXT,
    metavar="ID|FILE.sqlite",
    help="Keep the chat there; new or resumed.",
)
@click.option(
    "--resume",
    "resumed",
    is_flag=False,
    flag_value=_NEWEST,
    default=None,
    type=TEXT,
    metavar="[ID|FILE.sqlite]",
    help="Go on with a chat; without ID with the last one.",
)
@click.option("--list", "is_list", is_flag=True, help="List the chats that are kept, the newest first.")
@proposer_options_of("in one turn")
@time_limit_option(" each turn")
@output_format
def chat_command(
    request: tuple[str, ...],
    session_name: str | None,
    resumed: str | None,
    is_list: bool,
    output_format: str,
    **options: Any,
) -> int:
    """Plan in a conversation. REQUEST is its first turn; every line of standard input is a further one.

    Follow-ups change the plan, questions are answered, /help lists commands. The chat is kept and can be resumed.
    The exit status is 0, whatever the plans are (`--format json` tells each); 2 where the call cannot be used; 3 where
    --proposer llm asked for a language model that answered in no turn, and all was answered the built-in way.

    \b
      shardwright chat "Llama-3.1-70B on 8 H100, 2k in / 256 out"
      shardwright chat --resume
      printf 'DeepSeek-V3 on 16 H200\\nwhy not PP?\\n' | shardwright chat --format json
    """
    if is_list:
        return _list(as_json=output_format == "json")
    take_stdin("the turns of the chat", click.get_current_context())
    path = _session_path(session_name, resumed)
    (agent, _), first = agent_of(options), _first_turn(request, options)
    if resumed is not None and first is not None and first[1]:
        raise click.UsageError("options and briefs begin a chat; what changes a resumed one is said in words")
    from ..chat.chat import Chat

    settings = {"calibration": options["calibration"], "time_limit_s": options["time_limit"]}
    with Chat(path, agent=agent, width=text_width(), **settings) as chat:
        before = chat.spent
        status = _Front(chat, as_json=output_format == "json").run(first)
        is_empty, after = not chat.record.count, chat.spent
    if chat.transcript_failure is not None:
        raise InputError(chat.transcript_failure)
    if is_empty:  # nothing was said in it
        path.unlink(missing_ok=True)
    if options["proposer"] == "llm" and after.requests > before.requests and after.turns == before.turns:
        raise ServiceError("the language model answered in no turn; what is shown is the built-in proposer's")
    return status


def _session_path(name: str | None, resumed: str | None) -> Path:
    from ..chat.places import existing_path, new_path, path_of

    if name is not None and resumed is not None:
        raise click.UsageError("--session and --resume both name a chat; give one of them")
    if resumed is not None:
        return existing_path(resumed or None)
    return new_path() if name is None else path_of(name)


def _first_turn(request: tuple[str, ...], options: dict[str, Any]) -> tuple[str, tuple[Said, ...]] | None:
    """The words of the call and what its briefs and options say; `None` where it says nothing."""
    from ...tools.language.said import Said

    if request == (STANDARD,):
        raise click.UsageError("the lines of standard input are the turns; leave out -")
    said: list[Said] = []
    if options["brief"]:
        from ...tools.language.brief import read_brief_files

        said.append(read_brief_files(list(options["brief"])))
    flags = said_of_options(options)
    if flags != Said():
        said.append(flags)
    words = " ".join(request)
    return (words, tuple(said)) if words or said else None


def _list(*, as_json: bool) -> int:
    from msgspec.structs import asdict

    from ..chat.places import data_folder, sessions

    listed = sessions()
    if as_json:
        import json

        write_stdout(json.dumps({"sessions": [asdict(session) for session in listed]}, ensure_ascii=False, indent=2))
        return 0
    from ..report.text import Column, Table, render, section

    columns = (Column("id"), Column("changed"), Column("turns", figures=True), Column("first words", wraps=True))
    rows = tuple((session.id, session.changed, str(session.turns), session.note or session.first) for session in listed)
    nothing = f"There is no chat in {data_folder()} yet." if not rows else ""
    write_stdout(render([section("", nothing, Table(columns, rows))], width=text_width()))
    return 0


class _Front:
    """The terminal, or the pipe, of a chat."""

    def __init__(self, chat: Chat, *, as_json: bool) -> None:
        self.chat = chat
        self._as_json = as_json
        self._is_terminal = sys.stdin is not None and sys.stdin.isatty()

    def run(self, first: tuple[str, tuple[Said, ...]] | None) -> int:
        """Take turns until the input ends or the person quits; the exit status."""
        self._greet()
        if first is not None:
            words, said = first
            if not self._taken(lambda show: self.chat.begin(words, said, show) if said else self.chat.say(words, show)):
                return 0
        in_a_row = 0
        lines = self._lines()
        while True:
            try:
                line = next(lines, None)
                if line is None:
                    return 0
                if line.strip() and not self._taken(lambda show, line=line: self.chat.say(line, show)):
                    return 0
                in_a_row = 0
            except KeyboardInterrupt:
                in_a_row += 1
                if in_a_row > 1 or not self._is_terminal or interrupts.is_last:
                    raise
                interrupts.taken()
                self._note("stopped; Ctrl-C again quits, /again does the turn again")
                lines = self._lines()

    def _greet(self) -> None:
        """Where the chat is kept; of one that is resumed, all that was shown, and whether its last turn was cut off."""
        chat = self.chat
        if chat.record.count and not self._as_json:
            write_stdout(chat.shown_before())
        if chat.cut_off is not None:
            self._note(f"the last turn was cut off ({chat.cut_off.text[:60]!r}); /again does it again")
        from ..chat.places import name_of

        name = "" if chat.session.path is None else name_of(chat.session.path)
        self._note(f"session {one_line(name)}; go on later with: shardwright chat --resume={quote(one_line(name))}")

    def _note(self, text: str) -> None:
        click.echo(f"shardwright chat: {text}", err=True)

    def _taken(self, turn: Callable[[Callable[[str], None] | None], ChatAnswer]) -> bool:
        """Take a turn and show its answer, and until then what is done for it; whether the chat goes on."""
        with shown_work():
            answer = turn(None if self._as_json else write_piece)
        if self._as_json:
            write_stdout(answer.model_dump_json())
        else:
            write_piece("\n")
        return answer.kind != "quit"

    def _lines(self) -> Iterator[str]:
        return self._typed() if self._is_terminal else _piped()

    def _typed(self) -> Iterator[str]:
        _prepare_history([turn.text for turn in self.chat.record.turns])
        prompt = f"\x01\x1b[1m\x02{_PROMPT}\x01\x1b[0m\x02" if may_style() else _PROMPT
        while True:
            try:
                line = input(prompt)
                # Bytes that are no text reach the line as halves of characters.
                line.encode()
            except EOFError:
                write_piece("\n")
                return
            except UnicodeError:
                self._note("that was not UTF-8 text; say it again")
            else:
                yield line


def _piped() -> Iterator[str]:
    while data := stdin_bytes(MAX_LINE_BYTES + 1, is_line=True):
        if len(data) > MAX_LINE_BYTES:
            raise InputError(f"a line of standard input is longer than {MAX_LINE_BYTES:,} bytes")
        try:
            yield data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError("standard input: not UTF-8 text") from None


def _prepare_history(texts: list[str]) -> None:
    """The arrow keys bring back what was said before; it is kept in the session and nowhere else."""
    try:
        import readline
    except ImportError:  # a platform without it
        return
    readline.clear_history()
    for text in texts:
        readline.add_history(text)
