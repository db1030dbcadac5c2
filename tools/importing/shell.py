"""Shell scripts, and texts with commands in them, as the processes that they start.

No shell: variables that the text sets are filled in, and `case` branches are read as nodes. Loops, functions and the
output of commands are not run: what needs them stays as written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import prod

from msgspec import Struct, field
from msgspec.structs import replace

from .plain import called, job_variables, loop_in, plain
from .process import Process, code_of, engine_words, image_version, is_launched, is_load_generator
from .resources import hardware_of_job, of_docker
from .signs import may_launch

MOST_CHARS = 300_000
_MOST_WORDS = 2_000
_MOST_DEPTH = 3
_MOST_VALUE = 4_000
_MOST_SCRIPT = 50_000
_MOST_COPIES = 100_000
_MOST_PARTS = 20
_PLACEHOLDER = re.compile(r"<([A-Za-z][\w./ -]{0,60})>")
# A backslash before a remark continues the line, as people mean it.
_GOES_ON = re.compile(r"\\[ \t]*(?:#.*)?$")
# A quoted script over several lines.
_OPENS_SCRIPT = re.compile(r"(?<![\w-])-[a-z]{0,5}c[ \t]+(['\"])")
_CALCULATION = re.compile(r"\$\(\(([^()]{1,100})\)\)")
_SUBSTITUTION = re.compile(r"\$\([^()]{0,400}\)")
_NAME = re.compile(r"\$(?:(\w{1,60})|\{(\w{1,60})(?::?[-=]([^{}]{0,200}))?\})")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,60})=(.*)", re.DOTALL)
_ENDS = frozenset({";", "&", "&&", "||", "|", ";;", "(", ")", "|&", ";&"})
_STARTERS = frozenset({"exec", "nohup", "sudo", "time", "env", "export", "then", "do", "else", "{", "!", "$", ">", "-"})
_REDIRECTS = frozenset({">", ">>", "<", "&>", ">&", "&>>"})
SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"})
# Programs that run a script on another machine.
_REMOTE = frozenset({"ssh", "pdsh", "sshpass"})
_SCRIPT_FLAG = re.compile(r"-[a-z]{0,5}c")


class Script(Struct):
    """What a script amounts to: processes, files that it writes, words of load generators, comments, and variables."""

    processes: list[Process] = field(default_factory=list[Process])
    files: dict[str, str] = field(default_factory=dict[str, str])
    loads: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    comments: list[str] = field(default_factory=list[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])


def read_script(text: str, around: Process | None = None, environment: Mapping[str, str] | None = None) -> Script:
    """Read `text`; `around` are the surroundings of its processes in an enclosing manifest."""
    code = code_of(text[:MOST_CHARS], _is_command)
    script = Script(files=code.files, variables=dict(environment or {}))
    _Reader(script, around, script.variables, _MOST_DEPTH).read(plain(called(code.lines)))
    # A variable may name a file, and a text that a script writes has its variables filled in.
    written = [(filled(name, script.variables), filled(text, script.variables)) for name, text in script.files.items()]
    script.files = {name.rsplit("/", 1)[-1]: text for name, text in written}
    return script


def _is_command(line: str) -> bool:
    """Whether a line starts an engine, or begins a command that does."""
    if line.lstrip().startswith("#") or not may_launch(line):
        return False
    return engine_words([*_words(line.rstrip().removesuffix("\\")), "--"]) is not None


class _Reader(Struct):
    script: Script
    around: Process | None
    variables: dict[str, str]
    depth: int
    node: str | None = None
    # The comment right above, which belongs to the next command.
    remark: str = ""
    # Each open loop's variable and number of rounds.
    loops: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    # The hardware that the head of the script names.
    runs_on: tuple[str, ...] = ()

    def read(self, lines: Iterable[str]) -> None:
        for line in _whole(lines):
            if not line.strip():
                self.remark = ""
            elif line.lstrip().startswith("#"):
                comment = line.lstrip().lstrip("#").strip()
                self.variables |= job_variables(comment, self.variables)
                self.runs_on += tuple(hardware_of_job(comment))
                self.script.comments.append(comment)
                self.remark = comment
                words = _words(comment)
                if is_load_generator(words):
                    self.script.loads.append(tuple(words))
            else:
                self._line(line)

    def _line(self, line: str) -> None:
        """Read the commands of a line in order; text before a `)` alone names a branch."""
        stripped = line.strip()
        if (loop := loop_in(stripped)) is not None:
            self.loops.append(loop)
        elif re.match(r"done\b", stripped) and self.loops:
            self.loops.pop()
        statement: list[str] = []
        line = _SUBSTITUTION.sub("$COMMAND", _CALCULATION.sub(self._calculated, line))
        for word in [*_words(line), ";"]:
            if word not in _ENDS:
                statement.append(word)
                continue
            if word == ")" and len(statement) == 1:
                self.node = statement[0].strip("\"'")
            elif statement:
                self._statement(statement)
            statement = []

    def _statement(self, written: list[str]) -> None:
        if written[0] == "echo" and ">" in written[1:-1]:
            # It writes a file: -e reads \n as the end of a line.
            text = max(written[1 : written.index(">")], key=len, default="")
            self.script.files[written[written.index(">") + 1].rsplit("/", 1)[-1]] = text.replace("\\n", "\n")
            return
        words = list(islice((part for word in _unredirected(written) for part in self._parts(word)), _MOST_WORDS))
        assigned: dict[str, str] = {}
        while words and (words[0] in _STARTERS or _ASSIGNMENT.fullmatch(words[0])):
            if match := _ASSIGNMENT.fullmatch(words[0]):
                assigned[match[1]] = match[2]
            words = words[1:]
        if not words:
            self.variables.update(assigned)
            return
        if is_load_generator(words):
            self.script.loads.append(tuple(words))
        elif (inner := _inner_script(words)) is not None and self.depth > 0:
            named = {**self.variables, **assigned, **_passed(words)}
            around = self._around(words)
            _Reader(self.script, around, named, self.depth - 1, self.node, self.remark).read(plain(inner.split("\n")))
        elif (started := engine_words(words)) is not None:
            engine, arguments, version = started
            exported = {name: value for name, value in self.variables.items() if name.isupper()}
            before = words[: len(words) - len(arguments)]
            around = self._around(before)
            self.script.processes.append(
                replace(
                    around,
                    engine=engine,
                    words=arguments,
                    environment={**exported, **assigned, **_passed(before)},
                    hint=" ".join(filter(None, (around.hint, self.remark))),
                    node=self.node,
                    copies=around.copies * self._times(arguments),
                    times=around.times * self._times(arguments),
                    version=version or around.version,
                )
            )

    def _around(self, words: list[str]) -> Process:
        """The surroundings of a command that begins with `words`."""
        around = self.around or Process(engine="vllm", words=())
        return replace(
            around,
            version=image_version(words) or around.version,
            gpus=of_docker(words) or around.gpus,
            runs_on=(*around.runs_on, *self.runs_on),
            is_spread=around.is_spread or is_launched(words),
        )

    def _times(self, words: Sequence[str]) -> int:
        """How often the loops around a command run it; a loop over the ranks of one server counts once."""
        ranks = {f"${name}" for name, _ in self.loops}
        if any(flag.endswith("rank") and value in ranks for flag, value in pairwise(words)):
            return 1
        return min(_MOST_COPIES, prod(times for _, times in self.loops))

    def _calculated(self, match: re.Match[str]) -> str:
        """The value of a calculation in the script; unchanged if it has more than numbers."""
        text = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda name: self.variables.get(name[1], name[0]), match[1])
        parts = re.findall(r"\d{1,9}|[-+*/]", text)
        if "".join(parts) != re.sub(r"\s", "", text) or len(parts) > _MOST_PARTS:
            return "$CALCULATION"
        return _value_of(parts)

    def _parts(self, word: str) -> list[str]:
        """`word` with variables filled in, as several words if it stands for several flags."""
        value = filled(word, self.variables)
        if value == word or not _NAME.fullmatch(word) or not value.startswith("-") or " " not in value:
            return [value]
        return _words(value)


def filled(word: str, variables: Mapping[str, str]) -> str:
    """`word` with `variables` in place of `$NAME`, `${NAME}` or `${NAME:-otherwise}`; unknown ones stay."""

    def value(match: re.Match[str]) -> str:
        known = variables.get(match[1] or match[2]) or match[3]
        return match[0] if known is None else known

    return _NAME.sub(value, word[:_MOST_VALUE])[:_MOST_VALUE]


def _value_of(parts: Sequence[str]) -> str:
    """The value of whole numbers with signs between them, products before sums; `$CALCULATION` if it is no such sum."""
    try:
        terms = [int(parts[0])]
        for sign, number in zip(parts[1::2], map(int, parts[2::2]), strict=True):
            if sign in "*/":
                terms[-1] = terms[-1] * number if sign == "*" else terms[-1] // number
            else:
                terms.append(number if sign == "+" else -number)
    except (ValueError, ZeroDivisionError, IndexError):
        return "$CALCULATION"
    return str(sum(terms))


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a script with continued ones joined; comments between them stand before."""
    pending, quote = "", ""
    for line in lines:
        plain = line.rstrip()
        if quote:
            pending += "\n" + plain
            if quote in plain or len(pending) > _MOST_SCRIPT:
                yield pending
                pending, quote = "", ""
        elif plain.lstrip().startswith("#"):
            yield plain
        elif goes_on := _GOES_ON.search(plain):
            pending += plain[: goes_on.start()] + " "
        elif (opens := _OPENS_SCRIPT.search(pending + plain)) and opens[1] not in (pending + plain)[opens.end() :]:
            pending, quote = pending + plain, opens[1]
        elif pending.strip() and not plain:
            yield pending
            pending = ""
        else:
            yield pending + plain
            pending = ""
    if pending:
        yield pending


def _words(line: str) -> list[str]:
    """The words of a line, with separators of commands as words of their own."""
    line = _PLACEHOLDER.sub(lambda match: "$" + re.sub(r"\W", "_", match[1]), line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quote that does not end
        return line.split()


def _unredirected(words: list[str]) -> Iterator[str]:
    """`words` without redirections of output."""
    waiting = iter(words)
    for word in waiting:
        if word in _REDIRECTS:
            next(waiting, None)
        else:
            yield word


def _inner_script(words: list[str]) -> str | None:
    """The script that a shell is given as a word (`bash -c`), here or on another machine (`ssh HOST`)."""
    for place, word in enumerate(words[:-2]):
        if word.rsplit("/", 1)[-1] in _REMOTE:
            return next((word for word in words[place + 2 :] if " " in word and may_launch(word)), None)
    for place, word in enumerate(words[:-2]):
        if word.removeprefix("--entrypoint=") in SHELLS:
            # The image stands between a shell as its entry point and the shell's flag.
            flag_at = next(
                (index for index in range(place + 1, place + 3) if _SCRIPT_FLAG.fullmatch(words[index])), None
            )
            if flag_at is not None and flag_at + 1 < len(words):
                return words[flag_at + 1]
    return None


def _passed(words: list[str]) -> dict[str, str]:
    """Variables that a wrapper passes on: `env A=1`, `docker run -e A=1`."""
    matches = filter(None, map(_ASSIGNMENT.fullmatch, (word.removeprefix("--env=") for word in words)))
    return {match[1]: match[2] for match in matches}
