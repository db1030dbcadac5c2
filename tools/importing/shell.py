"""Shell scripts, and texts with commands in them, as the processes that they start.

No shell: variables that the text sets are put in, and `case` branches are read as nodes. A loop, a function or the
output of a command is not run: what needs one stays as it is written.
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
# A backslash with a remark behind it still goes on in the next line, as people mean it.
_GOES_ON = re.compile(r"\\[ \t]*(?:#.*)?$")
# A script in quotes of several lines.
_OPENS_SCRIPT = re.compile(r"(?<![\w-])-[a-z]{0,5}c[ \t]+(['\"])")
_CALCULATION = re.compile(r"\$\(\(([^()]{1,100})\)\)")
_SUBSTITUTION = re.compile(r"\$\([^()]{0,400}\)")
_NAME = re.compile(r"\$(?:(\w{1,60})|\{(\w{1,60})(?::?[-=]([^{}]{0,200}))?\})")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,60})=(.*)", re.DOTALL)
_ENDS = frozenset({";", "&", "&&", "||", "|", ";;", "(", ")", "|&", ";&"})
_STARTERS = frozenset({"exec", "nohup", "sudo", "time", "env", "export", "then", "do", "else", "{", "!", "$", ">", "-"})
_REDIRECTS = frozenset({">", ">>", "<", "&>", ">&", "&>>"})
SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"})
# What runs a script on another machine.
_REMOTE = frozenset({"ssh", "pdsh", "sshpass"})
_SCRIPT_FLAG = re.compile(r"-[a-z]{0,5}c")


class Script(Struct):
    """What a script comes to: processes, files that it writes, words of load generators, comments, and variables."""

    processes: list[Process] = field(default_factory=list[Process])
    files: dict[str, str] = field(default_factory=dict[str, str])
    loads: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    comments: list[str] = field(default_factory=list[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])


def read_script(text: str, around: Process | None = None, environment: Mapping[str, str] | None = None) -> Script:
    """Read `text`; what an enclosing manifest says of its processes comes from `around`."""
    code = code_of(text[:MOST_CHARS], _is_command)
    found = Script(files=code.files, variables=dict(environment or {}))
    _Reader(found, around, found.variables, _MOST_DEPTH).read(plain(called(code.lines)))
    # A file may be named by a variable, and a text that a script writes holds what its variables stand for.
    written = [(filled(name, found.variables), filled(text, found.variables)) for name, text in found.files.items()]
    found.files = {name.rsplit("/", 1)[-1]: text for name, text in written}
    return found


def _is_command(line: str) -> bool:
    """Whether a line starts an engine, or begins to."""
    if line.lstrip().startswith("#") or not may_launch(line):
        return False
    return engine_words([*_words(line.rstrip().removesuffix("\\")), "--"]) is not None


class _Reader(Struct):
    found: Script
    around: Process | None
    variables: dict[str, str]
    depth: int
    node: str | None = None
    # The comment right above, which is of the next command.
    remark: str = ""
    # How often the body of each open loop is run, by the loop's variable.
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
                self.found.comments.append(comment)
                self.remark = comment
                words = _words(comment)
                if is_load_generator(words):
                    self.found.loads.append(tuple(words))
            else:
                self._line(line)

    def _line(self, line: str) -> None:
        """The commands of a line, one after the other; what stands before a `)` alone names a branch."""
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
            # It writes a file: -e takes \n for the end of a line.
            text = max(written[1 : written.index(">")], key=len, default="")
            self.found.files[written[written.index(">") + 1].rsplit("/", 1)[-1]] = text.replace("\\n", "\n")
            return
        words = list(islice((part for word in _unredirected(written) for part in self._parts(word)), _MOST_WORDS))
        own: dict[str, str] = {}
        while words and (words[0] in _STARTERS or _ASSIGNMENT.fullmatch(words[0])):
            if match := _ASSIGNMENT.fullmatch(words[0]):
                own[match[1]] = match[2]
            words = words[1:]
        if not words:
            self.variables.update(own)
            return
        if is_load_generator(words):
            self.found.loads.append(tuple(words))
        elif (inner := _inner_script(words)) is not None and self.depth > 0:
            named = {**self.variables, **own, **_passed(words)}
            around = self._around(words)
            _Reader(self.found, around, named, self.depth - 1, self.node, self.remark).read(plain(inner.split("\n")))
        elif (started := engine_words(words)) is not None:
            engine, rest, version = started
            exported = {name: value for name, value in self.variables.items() if name.isupper()}
            before = words[: len(words) - len(rest)]
            around = self._around(before)
            self.found.processes.append(
                replace(
                    around,
                    engine=engine,
                    words=rest,
                    environment={**exported, **own, **_passed(before)},
                    hint=" ".join(filter(None, (around.hint, self.remark))),
                    node=self.node,
                    copies=around.copies * self._times(rest),
                    times=around.times * self._times(rest),
                    version=version or around.version,
                )
            )

    def _around(self, words: list[str]) -> Process:
        """What is known around a command that begins with `words`."""
        around = self.around or Process(engine="vllm", words=())
        return replace(
            around,
            version=image_version(words) or around.version,
            gpus=of_docker(words) or around.gpus,
            runs_on=(*around.runs_on, *self.runs_on),
            is_spread=around.is_spread or is_launched(words),
        )

    def _times(self, words: Sequence[str]) -> int:
        """How often a command is run by the loops around it; a loop over the ranks of one server is none."""
        ranks = {f"${name}" for name, _ in self.loops}
        if any(flag.endswith("rank") and value in ranks for flag, value in pairwise(words)):
            return 1
        return min(_MOST_COPIES, prod(times for _, times in self.loops))

    def _calculated(self, match: re.Match[str]) -> str:
        """The value of a calculation in the script; as it is where it is more than numbers."""
        text = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda name: self.variables.get(name[1], name[0]), match[1])
        parts = re.findall(r"\d{1,9}|[-+*/]", text)
        if "".join(parts) != re.sub(r"\s", "", text) or len(parts) > _MOST_PARTS:
            return "$CALCULATION"
        return _value_of(parts)

    def _parts(self, word: str) -> list[str]:
        """`word` with what the text gives its variables; one that stands for several flags is several words."""
        value = filled(word, self.variables)
        if value == word or not _NAME.fullmatch(word) or not value.startswith("-") or " " not in value:
            return [value]
        return _words(value)


def filled(word: str, variables: Mapping[str, str]) -> str:
    """`word` with what `variables` say, `$NAME`, `${NAME}` or `${NAME:-otherwise}`; those that are not known stay."""

    def value(match: re.Match[str]) -> str:
        known = variables.get(match[1] or match[2]) or match[3]
        return match[0] if known is None else known

    return _NAME.sub(value, word[:_MOST_VALUE])[:_MOST_VALUE]


def _value_of(parts: Sequence[str]) -> str:
    """The value of whole numbers with signs between them, products before sums; `$CALCULATION` where it is none."""
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
    """Lines of a script, those that go on in the next one joined; comments between them stand before."""
    held, quote = "", ""
    for line in lines:
        plain = line.rstrip()
        if quote:
            held += "\n" + plain
            if quote in plain or len(held) > _MOST_SCRIPT:
                yield held
                held, quote = "", ""
        elif plain.lstrip().startswith("#"):
            yield plain
        elif goes_on := _GOES_ON.search(plain):
            held += plain[: goes_on.start()] + " "
        elif (opens := _OPENS_SCRIPT.search(held + plain)) and opens[1] not in (held + plain)[opens.end() :]:
            held, quote = held + plain, opens[1]
        elif held.strip() and not plain:
            yield held
            held = ""
        else:
            yield held + plain
            held = ""
    if held:
        yield held


def _words(line: str) -> list[str]:
    """The words of a line, and what separates commands as words of their own."""
    line = _PLACEHOLDER.sub(lambda match: "$" + re.sub(r"\W", "_", match[1]), line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quote that does not end
        return line.split()


def _unredirected(words: list[str]) -> Iterator[str]:
    """`words` without what output is sent to."""
    waiting = iter(words)
    for word in waiting:
        if word in _REDIRECTS:
            next(waiting, None)
        else:
            yield word


def _inner_script(words: list[str]) -> str | None:
    """The script that a shell is given in a word, as by `bash -c`, here or on another machine (`ssh HOST`)."""
    for place, word in enumerate(words[:-2]):
        if word.rsplit("/", 1)[-1] in _REMOTE:
            return next((one for one in words[place + 2 :] if " " in one and may_launch(one)), None)
    for place, word in enumerate(words[:-2]):
        if word.removeprefix("--entrypoint=") in SHELLS:
            # Between a shell as an image's entry point and its flag stands the image.
            found = next((at for at in range(place + 1, place + 3) if _SCRIPT_FLAG.fullmatch(words[at])), None)
            if found is not None and found + 1 < len(words):
                return words[found + 1]
    return None


def _passed(words: list[str]) -> dict[str, str]:
    """Variables that a wrapper passes on: `env A=1`, `docker run -e A=1`."""
    matches = filter(None, map(_ASSIGNMENT.fullmatch, (word.removeprefix("--env=") for word in words)))
    return {match[1]: match[2] for match in matches}
