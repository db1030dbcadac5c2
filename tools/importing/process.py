"""One program that a text starts, in the form that all readers share, and a text as its code and files: fenced blocks,
parts below a file's name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from ..engines.names import ENGINES, EngineName
from .resources import Allotment

# Modules and programs that start a server, and images that start their engine by themselves: the words that follow are
# its flags. Dynamo's workers take those of their engine.
_MODULES = {module: name for name, engine in ENGINES.items() for module in engine.modules}
_PROGRAMS = {program: name for name, engine in ENGINES.items() for program in engine.programs}
_IMAGES = {image: name for name, engine in ENGINES.items() for image in engine.starting_images}
_OWN_IMAGES = frozenset(
    image.rpartition(":")[0] for engine in ENGINES.values() for image in (engine.image, engine.rocm_image)
)
# Images whose tag is their engine's version; framework images (`vllm-runtime`) have versions of their own.
_NAMED = "|".join(image for engine in ENGINES.values() for image in engine.versioned_images)
_VERSIONED = re.compile(rf"(?:^|/)(?:{_NAMED})(?!-runtime)[\w-]*:v?(\d+\.\d+(?:\.\d+)?)")
# Programs that start the ranks of another, on several nodes if their flags name them.
_LAUNCHERS = frozenset({"mpirun", "mpiexec", "srun", "trtllm-llmapi-launch", "ray"})
_LOAD_GENERATORS = frozenset(
    {"vllm.benchmarks.serve", "sglang.bench_serving", "benchmark_serving", "benchmark_serving.py"}
)


class Process(Struct, frozen=True):
    """Words of a command after the program, the variables that it starts with, and its surroundings.

    `hint`: names and remarks around it, which may state its role. `node`: a label of its node or place. `copies` of its
    group of `nodes` nodes are started. `gpus` is the text's allotment, and `runs_on` the hardware that the text names,
    as written. `is_spread`: a launcher starts its ranks, on other nodes too. `times` of the copies share one allotment:
    loops of a script start them. `beside` names settings around it that no plan has.
    """

    engine: EngineName
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    hint: str = ""
    node: str | None = None
    copies: int = 1
    nodes: int | None = None
    version: str | None = None
    gpus: Allotment | None = None
    runs_on: tuple[str, ...] = ()
    is_spread: bool = False
    times: int = 1
    beside: tuple[str, ...] = ()


def engine_words(words: Sequence[str]) -> tuple[EngineName, tuple[str, ...], str | None] | None:
    """The engine that a command starts, the words after its program, and the version that an image names."""
    version = image_version(words)
    image: int | None = None
    for place, word in enumerate(word.lstrip("[(`'\"") for word in words):
        base = word.rsplit("/", 1)[-1]
        if word in _MODULES:
            return _MODULES[word], tuple(words[place + 1 :]), version
        if base in _PROGRAMS and "=" not in word:
            engine, arguments = _PROGRAMS[base], tuple(words[place + 1 :])
            if arguments[:1] == ("serve",) and _is_call(arguments[1:]):
                return engine, arguments[1:], version
            if base == "trtllm-serve" and arguments[:1] not in (("disaggregated",), ("serve",)) and _is_call(arguments):
                return engine, arguments, version
        if image is None and base.partition(":")[0].partition("@")[0] in _IMAGES and "/" in word:
            # An image that is an argument of some script is started by the script, with unknown arguments.
            if any(before.endswith(".sh") for before in words[:place]):
                return None
            image = place
    if image is None:
        return None
    base = words[image].rsplit("/", 1)[-1].partition(":")[0].partition("@")[0]
    return _IMAGES[base], tuple(words[image + 1 :]), version


def image_version(words: Sequence[str]) -> str | None:
    """The version of the engine in an image among `words`; `None` if no image states one."""
    return next((match[1] for word in words if (match := _VERSIONED.search(word))), None)


def is_foreign(image: str) -> bool:
    """Whether an image is another than an engine's own, whatever its tag."""
    return bool(image) and image.removeprefix("docker.io/").partition("@")[0].partition(":")[0] not in _OWN_IMAGES


def is_launched(words: Sequence[str]) -> bool:
    """Whether a launcher among `words` starts the ranks of what follows."""
    return any(word.rsplit("/", 1)[-1] in _LAUNCHERS for word in words)


def _is_call(words: Sequence[str]) -> bool:
    """Whether `words` are a program's arguments: one word, or flags; not the rest of a sentence."""
    return len(words) == 1 or any(word.startswith("-") for word in words)


def is_load_generator(words: Sequence[str]) -> bool:
    """Whether a command sends a load to servers, and so states that load."""
    names = any(word.rsplit("/", 1)[-1] in _LOAD_GENERATORS for word in words)
    return names or ("bench", "serve") in pairwise(words)


_MOST_LINES = 20_000
_FENCE = re.compile(r"[ \t>]{0,20}(?:```|~~~)")
_FILE_NAME = re.compile(r"[\w./-]{1,200}\.ya?ml")
_TITLE = re.compile(r"#+[ \t]*([\w./-]{1,200}\.\w{1,10})[ \t]*")
_OPENING = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,40})\1")
_TARGET = re.compile(r"(?:>{1,2}|\btee(?:[ \t]+-a)?)[ \t]*([\w./${}-]{1,200})")


class Code(Struct):
    """Lines of code, and the texts of files by their names without folders."""

    lines: list[str] = field(default_factory=list[str])
    files: dict[str, str] = field(default_factory=dict[str, str])

    def put(self, name: str, lines: list[str]) -> None:
        """Add a file."""
        self.files[name.rsplit("/", 1)[-1]] = "\n".join(lines)


def code_of(text: str, is_command: Callable[[str], bool]) -> Code:
    """The code of `text`: its fenced blocks if a line of them `is_command`, each below the line above it."""
    code = Code()
    lines = text.replace("\r\n", "\n").split("\n", _MOST_LINES)[:_MOST_LINES]
    blocks: list[tuple[str, list[str]]] = []
    for above, block in fenced(lines):
        name = _FILE_NAME.search(above)
        if name is not None and not any(map(is_command, block)):
            code.put(name[0], block)
        else:
            blocks.append((above, block))
    if any(is_command(line) for _, block in blocks for line in block):
        lines = [line for above, block in blocks for line in ("", f"# {above}", *block)]
    code.lines = list(_unfiled(_unwritten(lines, code), code, is_command))
    return code


def fenced(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Fenced blocks, each with the last line above it that is not empty."""
    above = ""
    block: list[str] | None = None
    for line in lines:
        if _FENCE.match(line) is not None:
            if block is not None:
                yield above, block
                above, block = "", None
            else:
                block = []
        elif block is not None:
            block.append(line)
        elif line.strip():
            above = line.strip()
    if block is not None:
        yield above, block


def _unwritten(lines: list[str], code: Code) -> list[str]:
    """`lines` without here-documents (`cat > FILE <<EOF`), which are put among the files."""
    ends: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        ends.setdefault(line.strip(), []).append(place)
    remaining: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        opening = None if line.lstrip().startswith("#") else _OPENING.search(line)
        closing = ends.get(opening[2], []) if opening is not None else []
        after = bisect_right(closing, place)
        if after == len(closing):
            remaining.append(line)
            place += 1
            continue
        end = closing[after]
        target = _TARGET.search(_OPENING.sub(" ", line))
        if target is not None:
            code.put(target[1], lines[place + 1 : end])
        place = end + 1
    return remaining


def _unfiled(lines: list[str], code: Code, is_command: Callable[[str], bool]) -> Iterator[str]:
    """`lines` without the parts below a remark that names a YAML file, which are put among the files."""
    part: list[str] = []
    title: str | None = None
    for line in [*lines, "# end.of"]:
        match = _TITLE.fullmatch(line)
        if match is None:
            part.append(line)
            continue
        if title is None or any(map(is_command, part)):
            yield from part
        else:
            code.put(title, part)
        title, part = (match[1] if _FILE_NAME.fullmatch(match[1]) else None), []
