"""Lines of a script in the forms that all shells have: without arrays, bracketed lists and unit settings, with function
bodies in place of calls, and loops counted.

`ARGS=(--a 1)` and `"${ARGS[@]}"` become the words themselves, `CMD ["vllm", "serve"]` of an image a command, and
`Environment=A=1` of a systemd unit or `ENV A=1` of an image an assignment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

_MOST_CALLED_LINES = 20_000
# Characters of all function bodies that calls expand to.
_MOST_RUN = 100_000
_MOST_DEPTH = 3
_MOST_BODY = 200
_MOST_CHARS = 8_000
_MOST_GIVEN = 100
_OPENS = re.compile(r"([ \t]*)(?:function[ \t]+)?([A-Za-z_][\w-]{0,60})[ \t]*\(\)[ \t]*\{?[ \t]*")
_GIVEN = re.compile(r"\"?\$(?:[@*]|\{[@*]\})\"?|\$(\d)|\$\{(\d)(?::?-([^{}]{0,200}))?\}")


def called(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a script with bodies in place of calls; a function that nothing calls stays as it is."""
    outside, bodies = _parted(list(lines)[:_MOST_CALLED_LINES])
    used = {_first(line) for line in (*outside, *(line for body in bodies.values() for line in body))}
    for name in bodies.keys() - used:
        outside += [line for line in bodies[name] if _GIVEN.search(line) is None]
    budget = [_MOST_RUN]
    for line in outside:
        yield from _run(line, bodies, budget, _MOST_DEPTH)


def _parted(lines: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Lines outside of functions, and the bodies of functions, each up to its bracket."""
    outside: list[str] = []
    bodies: dict[str, list[str]] = {}
    place = 0
    while place < len(lines):
        opens = _OPENS.fullmatch(lines[place]) if "()" in lines[place] else None
        end = None if opens is None else _end(lines, place + 1, opens[1])
        if opens is None or end is None:
            outside.append(lines[place])
            place += 1
        else:
            bodies[opens[2]] = list(lines[place + 1 : end])
            place = end + 1
    return outside, bodies


def _end(lines: Sequence[str], start: int, margin: str) -> int | None:
    """Index of the bracket that ends a function, indented like its name; `None` if absent."""
    last = min(len(lines), start + _MOST_BODY)
    return next((place for place in range(start, last) if lines[place].rstrip() == f"{margin}}}"), None)


def _first(line: str) -> str:
    return line.split(None, 1)[0] if line.strip() else ""


def _run(line: str, bodies: dict[str, list[str]], budget: list[int], depth: int) -> Iterator[str]:
    """A line, or the lines of the function that it calls."""
    body = bodies.get(_first(line))
    if body is None or depth <= 0 or budget[0] <= 0:
        yield line
        return
    try:
        arguments = shlex.split(line[:_MOST_CHARS].rstrip().removesuffix("&"))[1:_MOST_GIVEN]
    except ValueError:
        arguments = line[:_MOST_CHARS].split()[1:_MOST_GIVEN]
    for body_line in body:
        plain = body_line.rstrip()
        shifts = plain.strip() == "shift" or plain.endswith("; shift")
        line = _arguments_put(plain.removesuffix("shift").rstrip("; \t") if shifts else body_line, arguments)
        budget[0] -= len(line) + 1
        yield from _run(line, bodies, budget, depth - 1)
        arguments = arguments[1:] if shifts else arguments


def _arguments_put(line: str, arguments: Sequence[str]) -> str:
    """`line` with the arguments of a call filled in."""

    def value(hit: re.Match[str]) -> str:
        place = hit[1] or hit[2]
        if place is None:
            return " ".join(argument if argument.startswith("$") else shlex.quote(argument) for argument in arguments)
        if place == "0" or int(place) > len(arguments):
            return hit[3] if hit[3] is not None else hit[0]
        return arguments[int(place) - 1]

    if "$" not in line:
        return line
    use = _GIVEN.search(line)
    parts: list[str] = []
    size = end = 0
    while use is not None and size < _MOST_CHARS:
        parts += [line[end : use.start()], value(use)]
        size += len(parts[-2]) + len(parts[-1])
        end = use.end()
        use = _GIVEN.search(line, end)
    return "".join((*parts, line[end:]))[:_MOST_CHARS]


_MOST_LINES = 200

_ARRAY = re.compile(r"[ \t]*(?:(?:local|declare|readonly|export)[ \t]+(?:-a[ \t]+)?)?(\w{1,60})(\+?)=\((.*)", re.DOTALL)
_ALL_OF = re.compile(r"\"?\$\{(\w{1,60})\[[@*]\]\}\"?")
_COUNT_OF = re.compile(r"\$\{#(\w{1,60})\[[@*]\]\}")
_INDICES_OF = re.compile(r"\"?\$\{!(\w{1,60})\[[@*]\]\}\"?")
_WORD_OF = re.compile(r"\$\{(\w{1,60})\[(\d{1,3})\]\}")
_REMARK = re.compile(r"(?:^|[ \t])#.*")
_QUOTED = r"(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}')"
_LIST = re.compile(rf"\[[ \t]*{_QUOTED}(?:[ \t]*,[ \t]*{_QUOTED}){{1,400}}[ \t]*,?[ \t]*\]")
# Commands of a systemd unit or a supervisor.
_RUNS = re.compile(r"[ \t]*(?:ExecStart|command)=(?=[/\w])")
_SETTING = re.compile(r"[ \t]*(?:Environment=|ENV[ \t]+)[\"']?([A-Z][A-Z0-9_]{0,60})(?:=|[ \t]+)(.*)")


def plain(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a script in plain forms, without those of arrays."""
    arrays: dict[str, str] = {}
    waiting = iter(lines)
    for line in waiting:
        if line.lstrip().startswith("#"):
            yield line
            continue
        array = _ARRAY.match(line) if "=(" in line else None
        if array is not None:
            words = _inside(array[3], waiting)
            before = arrays.get(array[1], "") if array[2] else ""
            arrays[array[1]] = f"{before} {_arrays_put(words, arrays)}".strip()[:_MOST_CHARS]
            continue
        setting = _SETTING.match(line)
        if line.startswith("FROM "):  # what an image is made from starts nothing
            continue
        if setting is not None:
            line = f"{setting[1]}={setting[2].rstrip().rstrip(chr(34))}"
        elif runs := _RUNS.match(line):
            line = line[runs.end() :]
        elif "[" in line:
            line = _arrays_put(_LIST.sub(_joined, line), arrays)
        yield line


def _inside(first: str, following: Iterator[str]) -> str:
    """The words of an array up to its bracket, on one line."""
    parts: list[str] = []
    line = first
    for _ in range(_MOST_LINES):
        line = _REMARK.sub("", line).rstrip().removesuffix("\\").rstrip()
        # A bracket that opened on the line does not close the array.
        if line.endswith(")") and line.count("(") < line.count(")"):
            return " ".join((*parts, line[:-1]))
        parts.append(line)
        after = next(following, None)
        if after is None:
            break
        line = after
    return " ".join(parts)


def _arrays_put(text: str, arrays: dict[str, str]) -> str:
    """`text` with arrays' words, counts or indices filled in; unknown names stay."""
    if "${" not in text:
        return text
    text = _ALL_OF.sub(lambda match: arrays.get(match[1], match[0]), text[:_MOST_CHARS])
    for pattern, read in ((_COUNT_OF, _count), (_INDICES_OF, _indices), (_WORD_OF, _word_at)):
        text = pattern.sub(lambda match, read=read: read(match, arrays.get(match[1], "").split()) or match[0], text)
    return text


def _count(match: re.Match[str], words: list[str]) -> str:
    return str(len(words)) if words else ""


def _indices(match: re.Match[str], words: list[str]) -> str:
    return " ".join(map(str, range(len(words))))


def _word_at(match: re.Match[str], words: list[str]) -> str:
    return words[int(match[2])] if int(match[2]) < len(words) else ""


def _joined(match: re.Match[str]) -> str:
    return shlex.join(quoted[1:-1] for quoted in re.findall(_QUOTED, match[0]))


_LOOP = re.compile(r"for[ \t]+(\w{1,40})[ \t]+in[ \t]+(.{1,2000}?)[ \t]*(?:;|$)")
_COUNTED_LOOP = re.compile(
    r"for[ \t]*\(\([ \t]*(\w{1,40})[ \t]*=[ \t]*(\d{1,6})[ \t]*;[ \t]*\w{1,40}[ \t]*(<=?)[ \t]*(\d{1,6})[ \t]*;"
)
_RUN = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}|\$\(seq[ \t]+(\d{1,6})[ \t]+(\d{1,6})\)|\$\(seq[ \t]+(\d{1,6})\)")


def loop_in(line: str) -> tuple[str, int] | None:
    """The variable of the loop that a line begins, and its number of rounds as far as the line states it."""
    if counted := _COUNTED_LOOP.match(line):
        return counted[1], max(1, int(counted[4]) - int(counted[2]) + (counted[3] == "<="))
    loop = _LOOP.match(line)
    if loop is None:
        return None
    if run := _RUN.fullmatch(loop[2].strip()):
        first, last = (int(number) for number in (run[1] or run[3] or "1", run[2] or run[4] or run[5]))
        return loop[1], max(1, last - first + 1)
    return loop[1], 1 if "$" in loop[2] else len(loop[2].split())


_STATED = re.compile(
    r"SBATCH[ \t]+(?:--(nodes|gpus-per-node|ntasks-per-node|ntasks|gres)[= \t]|(-[Nn])[ \t]*)"
    r"(?:gpu:(?:\w{1,20}:)?)?(\d{1,5})"
)
_SHORT = {"-N": "nodes", "-n": "ntasks"}
_VARIABLES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "gpus-per-node": ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"),
    "gres": ("SLURM_GPUS_ON_NODE",), "ntasks": ("SLURM_NTASKS",), "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
}  # fmt: skip


def job_variables(comment: str, known: Mapping[str, str]) -> dict[str, str]:
    """The variables that a Slurm directive of the head sets, given those `known`; empty for another remark."""
    match = _STATED.match(comment)
    if match is None:
        return {}
    name, number = match[1] or _SHORT[match[2]], match[3]
    variables = dict.fromkeys(_VARIABLES[name], number)
    nodes, tasks = ({**known, **variables}.get(key, "") for key in ("SLURM_NNODES", "SLURM_NTASKS_PER_NODE"))
    if "SLURM_NTASKS" not in {**known, **variables} and nodes.isdecimal() and tasks.isdecimal():
        variables["SLURM_NTASKS"] = str(int(nodes) * int(tasks))
    return variables
