"""Shell scripts, and texts with commands in them, as the processes that they start.

No shell: variables that the text sets are put in, and `case` branches are read as nodes. A loop, a function or the
output of a command is not run: what needs one stays as it is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from .blocks import code_of
from .process import Process, engine_words, image_version, is_load_generator
from .signs import may_launch

MOST_CHARS = 300_000
_MOST_WORDS = 2_000
_MOST_DEPTH = 3
_MOST_VALUE = 4_000
_PLACEHOLDER = re.compile(r"<([A-Za-z][\w./ -]{0,60})>")
_NAME = re.compile(r"\$(?:(\w{1,60})|\{(\w{1,60})(?::?[-=]([^{}]{0,200}))?\})")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,60})=(.*)", re.DOTALL)
_ENDS = frozenset({";", "&", "&&", "||", "|", ";;", "(", ")", "|&", ";&"})
_STARTERS = frozenset({"exec", "nohup", "sudo", "time", "env", "export", "then", "do", "else", "{", "!", "$", ">", "-"})
_REDIRECTS = frozenset({">", ">>", "<", "&>", ">&", "&>>"})
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"})
_SCRIPT_FLAG = re.compile(r"-[a-z]{0,5}c")


@dataclass(slots=True)
class Script:
    """What a script comes to: processes, files that it writes, words of load generators, and its comments."""

    processes: list[Process] = field(default_factory=list[Process])
    files: dict[str, str] = field(default_factory=dict[str, str])
    loads: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    comments: list[str] = field(default_factory=list[str])


def read_script(text: str, around: Process | None = None, environment: Mapping[str, str] | None = None) -> Script:
    """Read `text`; what an enclosing manifest says of its processes comes from `around`."""
    code = code_of(text[:MOST_CHARS], _is_command)
    found = Script(files=code.files)
    _Reader(found, around, dict(environment or {}), _MOST_DEPTH).read(code.lines)
    return found


def _is_command(line: str) -> bool:
    """Whether a line starts an engine, or begins to."""
    if line.lstrip().startswith("#") or not may_launch(line):
        return False
    return engine_words([*_words(line.rstrip().removesuffix("\\")), "--"]) is not None


@dataclass(slots=True)
class _Reader:
    found: Script
    around: Process | None
    variables: dict[str, str]
    depth: int
    node: str | None = None
    # The comment right above, which is of the next command.
    remark: str = ""

    def read(self, lines: Iterable[str]) -> None:
        for line in _whole(lines):
            if not line.strip():
                self.remark = ""
            elif line.lstrip().startswith("#"):
                comment = line.lstrip().lstrip("#").strip()
                self.found.comments.append(comment)
                self.remark = comment
                words = _words(comment)
                if is_load_generator(words):
                    self.found.loads.append(tuple(words))
            else:
                self._line(line)

    def _line(self, line: str) -> None:
        """The commands of a line, one after the other; what stands before a `)` alone names a branch."""
        statement: list[str] = []
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
        words = [self._filled(word) for word in islice(_unredirected(written), _MOST_WORDS)]
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
            around = self.around or Process(engine="vllm", words=())
            around = replace(around, version=image_version(words) or around.version)
            _Reader(self.found, around, named, self.depth - 1, self.node, self.remark).read(inner.split("\n"))
        elif (started := engine_words(words)) is not None:
            engine, rest, version = started
            exported = {name: value for name, value in self.variables.items() if name.isupper()}
            around = self.around
            self.found.processes.append(
                Process(
                    engine=engine,
                    words=rest,
                    environment={**exported, **own, **_passed(words[: len(words) - len(rest)])},
                    hint=" ".join(filter(None, (around.hint if around else "", self.remark))),
                    node=self.node,
                    copies=around.copies if around else 1,
                    nodes=around.nodes if around else None,
                    version=version or (around.version if around else None),
                )
            )

    def _filled(self, word: str) -> str:
        """`word` with what the text gives its variables; the others stay."""

        def value(match: re.Match[str]) -> str:
            known = self.variables.get(match[1] or match[2]) or match[3]
            return match[0] if known is None else known

        return _NAME.sub(value, word[:_MOST_VALUE])[:_MOST_VALUE]


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a script, those that go on in the next one joined; comments between them stand before."""
    held = ""
    for line in lines:
        plain = line.rstrip()
        if plain.lstrip().startswith("#"):
            yield plain
        elif plain.endswith("\\"):
            held += plain[:-1] + " "
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
    """The script that a shell is given in a word, as by `bash -c`."""
    for place, word in enumerate(words[:-2]):
        if word in _SHELLS and _SCRIPT_FLAG.fullmatch(words[place + 1]):
            return words[place + 2]
    return None


def _passed(words: list[str]) -> dict[str, str]:
    """Variables that a wrapper passes on: `env A=1`, `docker run -e A=1`."""
    matches = filter(None, map(_ASSIGNMENT.fullmatch, (word.removeprefix("--env=") for word in words)))
    return {match[1]: match[2] for match in matches}
