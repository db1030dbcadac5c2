"""The flags of an engine by the concept that each stands for: exports write them, imports read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property, reduce
from typing import Any

from msgspec import Struct

from ..catalog.names import named_format
from ..input.files import shipped
from .release import Release, release_of

# What a flag without a value is set to.
VALUELESS = "true"
LONGEST_NAME = 60
_SHORTEST_PREFIX = 6
_NEAR = 0.8
# A value that a template leaves open.
_OPEN = re.compile(r"__\w{1,60}__|\{\{.{0,100}\}\}")
# Flags of all engines that do not affect a plan.
_BESIDE = re.compile(
    r"host|port|root-path|api-key|api-server-count|served-model-name|trust-remote-code|tokenizer.*|skip-tokenizer-init"
    r"|chat-template.*|tool-call-parser|tool-parser-plugin|reasoning-parser.*|enable-(?:auto-tool-choice|reasoning)"
    r"|(?:disable-)?(?:uvicorn-)?log.*|enable-(?:metrics|log.*|request.*|cache-report|prompt-tokens.*)|max-log-len"
    r"|seed|random-seed|download-dir|load-format|revision|code-revision|hf-token|model-loader.*|ssl-.*|allowed-.*|cors.*"
    r"|middleware|(?:override-)?generation-config|guided-decoding.*|structured-outputs.*|grammar-backend|otlp.*"
    r"|collect-.*|.*timeout|show-time-cost|limit-mm-per-prompt|mm-.*|master-(?:addr|port)|nccl-.*|runner|task|device"
    r"|model-impl|stream-interval|version|help"
)
# What a flag of each kind takes, where not every text is a value.
_NUMBERS = {
    "whole": ("a whole number", re.compile(r"[-+]?\d{1,18}(?:\.\d{1,6})?[kKmMgGtT]?|auto|none", re.IGNORECASE)),
    "number": (
        "a number",
        re.compile(r"[-+]?(?:\d{1,18}\.?\d{0,18}|\.\d{1,18})(?:e[-+]?\d{1,3})?|none", re.IGNORECASE),
    ),
}
# What an engine does in a way that does not say how much memory it takes.
HOST_CACHE = "a KV cache in CPU memory"
IN_STORAGE = "a KV cache in storage"
# Concepts whose values choose a format: any known name of a format will do, beside `choices`.
_OF_FORMATS = frozenset({"kv_cache", "quantization", "dtype"})
DTYPE_CHOICES = ("auto", "bfloat16", "float16", "float32", "half", "float")
METHOD_CHOICES = (
    "fp8", "awq", "gptq", "nvfp4", "compressed-tensors", "modelopt", "bitsandbytes", "gguf", "torchao", "quark",
    "marlin", "qoq", "inc", "auto-round", "none",
)  # fmt: skip

_OF_ROPE = {"rope_type": ("rope-type", "type"), "rope_factor": ("factor",),
            "rope_original": ("original-max-position-embeddings",)}  # fmt: skip


def of_rope(overrides: str, *apart: str) -> dict[str, str]:
    """The spelling of a rope scaling within a flag of config `overrides`, or in a flag `apart`."""
    parts = [f"{overrides}.", f"{overrides}.text-config."]
    outer = [*apart, *(part + name for part in parts for name in ("rope-scaling", "rope-parameters"))]
    return {
        "positions": " ".join(f"{part}max-position-embeddings" for part in parts),
        **{concept: " ".join(f"{name}.{key}" for name in outer for key in keys) for concept, keys in _OF_ROPE.items()},
    }


def nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """`values` by their paths as one object of objects."""
    options: dict[str, Any] = {}
    for (*outer, name), value in values.items():
        reduce(lambda inside, key: inside.setdefault(key, {}), outer, options)[name] = value
    return options


class Vocabulary(Struct, frozen=True, dict=True):
    """The flags of an engine, names in lower case and joined by hyphens: `spelled` has those of each concept.

    The first name of a concept is the one to write; `switches` take no value. `unplanned`: what an engine does that the
    estimate does not know, with the flags, or flags with a value (`name=value`), that turn it on. `beside`: flags
    that change nothing of what is planned, beside switches without a concept and those of all engines. `choices` are
    the values that are known of a concept, or of a flag without one, in lower case, where not every text is one: those
    of all releases; one with a point stands for the path of any class. `meeting`: flags by which the processes of a
    server find each other, and callers find it; `starting`: by which ranks are started, or answer, in another way than
    an export starts them. Names stand in one text, parted by blanks. Where they are `in_file`, a file of options states
    them, and counts more than flags.

    `listed` is the file in `data` with all flags of the engine's version, by the kind of value that each takes, and the
    first and last release with each flag where not all have it: what names above are not in it are those of earlier
    releases, but `apart`, which other programs around the engine take.
    Where it `inverts` them, `disable-x` turns `enable-x` off, and the reverse. `successors`: what says now what a flag
    of earlier releases said; `renamed`: the flag and value that do, where a switch said it. `variables`: the flag that
    each variable of the environment sets, or set in earlier releases.
    """

    spelled: Mapping[str, str]
    switches: str
    unplanned: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    beside: str = ""
    meeting: str = ""
    starting: str = ""
    in_file: bool = False
    listed: str = ""
    apart: str = ""
    inverts: bool = False
    successors: Mapping[str, str] = {}
    renamed: Mapping[str, tuple[str, str]] = {}
    variables: Mapping[str, str] = {}

    @cached_property
    def concepts(self) -> Mapping[str, str]:
        """The concept of each name."""
        return {name: concept for concept, names in self.spelled.items() for name in names.split()}

    @cached_property
    def turned_on(self) -> Mapping[str, str]:
        """What each name turns on that the estimate does not know."""
        return {name: what for what, names in self.unplanned.items() for name in names.split()}

    @cached_property
    def _kinds(self) -> Mapping[str, str]:
        """The kind of each listed flag: a `switch`, or one that takes a `whole` number, a `number` or a `text`."""
        return self._listing("kinds")

    @cached_property
    def _first(self) -> Mapping[str, str]:
        """The first release with a flag; of a flag that the oldest known release has there is none."""
        return self._listing("first")

    @cached_property
    def _last(self) -> Mapping[str, str]:
        """The last release with a flag; of a flag that is still there, there is none."""
        return self._listing("last")

    @cached_property
    def _parts(self) -> Mapping[str, Mapping[str, str]]:
        """The parts of the list of flags."""
        return shipped(__name__, self.listed) if self.listed else {}

    def _listing(self, part: str) -> Mapping[str, str]:
        """What a part of the list says of each name."""
        return {name: value for value, names in self._parts.get(part, {}).items() for name in names.split()}

    @cached_property
    def valueless(self) -> frozenset[str]:
        """The names that take no value."""
        return frozenset((*self.switches.split(), *(name for name, kind in self._kinds.items() if kind == "switch")))

    @cached_property
    def _beside(self) -> frozenset[str]:
        return self.valueless.union(self.beside.split(), self._kinds, self._last)

    @cached_property
    def known(self) -> frozenset[str]:
        """All names."""
        return frozenset({*self.concepts, *self.turned_on, *self._beside})

    def flag(self, concept: str) -> str:
        """The flag of a concept as the engine reads it: `--max-model-len`, or in a file `max_seq_len`."""
        name = self.spelled[concept].split(maxsplit=1)[0]
        return name.replace("-", "_") if self.in_file else f"--{name}"

    def written(self, **values: int | str | None) -> list[str]:
        """Flags that state `values` by concept, a true one without a value; `None`, off and 0 are left out."""
        stated = ((self.flag(concept), value) for concept, value in values.items() if value not in (None, False))
        return [word for flag, value in stated for word in ((flag,) if value is True else (flag, str(value)))]

    def tree(self, **values: object) -> dict[str, Any]:
        """`values` by concept as in a file of options, without those that are `None`."""
        stated = ((concept, value) for concept, value in values.items() if value is not None)
        return nested({tuple(self.flag(concept).split(".")): value for concept, value in stated})

    def whole(self, name: str) -> str:
        """The only flag that begins with `name`, as engines take abbreviated ones; `name` where none or several do."""
        if name in self.known or len(name) < _SHORTEST_PREFIX or "." in name or _BESIDE.fullmatch(name):
            return name
        matches = [flag for flag in self.known if flag.startswith(name)]
        return matches[0] if len(matches) == 1 else name

    def turned_off(self, name: str) -> str | None:
        """The switch that `name` turns off; `None` where it is a flag itself, or turns off none."""
        opposites = (opposite for opposite in self._opposites(name) if opposite in self.valueless)
        return None if name in self.known else next(opposites, None)

    def _opposites(self, name: str) -> list[str]:
        pairs = (("no-", ""), ("disable-", "enable-"), ("enable-", "disable-"))[: 3 if self.inverts else 1]
        return [on + name.removeprefix(off) for off, on in pairs if name.startswith(off)]

    def takes_value(self, name: str) -> bool:
        """Whether a flag is known to take a value."""
        return name not in self.valueless and (name in self.concepts or name in self._kinds)

    def lacks(self, name: str, release: Release | None = None) -> bool:
        """Whether the listed version has no flag of a `name`, nor one alone that begins with it.

        An earlier `release` lacks a flag that came after it, or went before it; flags may be abbreviated.
        """
        outer = name.partition(".")[0]
        spelled = {outer, *self._opposites(outer)}
        if not self.listed or outer in self.apart.split():
            return False
        if release is not None:
            flags = self._kinds.keys() | self._last.keys()
            there = (flag for flag in flags if flag in spelled or flag.startswith(outer))
            return bool(spelled & flags) and not any(self._has(flag, release) for flag in there)
        return not spelled & self._kinds.keys() and sum(flag.startswith(outer) for flag in self._kinds) != 1

    def _has(self, name: str, release: Release) -> bool:
        first, last = release_of(self._first.get(name)), release_of(self._last.get(name))
        return (first is None or release >= first) and (last is None or release <= last)

    def releases(self, name: str) -> str:
        """In brackets, the releases that have a flag: ` (0.6.6 to 0.17.1)`; nothing where all known ones do."""
        outer = name.partition(".")[0]
        first, last = self._first.get(outer), self._last.get(outer)
        if first is not None and last is not None:
            return f" ({first} to {last})"
        return f" (from {first})" if first is not None else f" (until {last})" if last is not None else ""

    def apart_in_time(self, flags: Mapping[str, str]) -> tuple[str, str] | None:
        """Of flags as written, by name, one that went before another came, with their releases; `None`: none did."""
        names = {name.partition(".")[0]: shown.partition(".")[0] for name, shown in flags.items()}
        gone = [(last, name) for name in names if (last := release_of(self._last.get(name))) is not None]
        came = [(first, name) for name in names if (first := release_of(self._first.get(name))) is not None]
        if not gone or not came or min(gone)[0] >= max(came)[0]:
            return None
        before, after = min(gone)[1], max(came)[1]
        return names[before] + self.releases(before), names[after] + self.releases(after)

    def successor(self, flag: str) -> str:
        """In brackets, what says now what a `flag` of earlier releases said; nothing where it is not known."""
        name = flag.lstrip("-").replace("_", "-")
        words = f"--{' '.join(self.renamed[name])}" if name in self.renamed else self.successors.get(name)
        return f" (now {words})" if words else ""

    def meant(self, name: str) -> str:
        """A hint in brackets at the flag that an unknown `name` comes near to; "" if none is near."""
        near = get_close_matches(name[:LONGEST_NAME], self.known, n=1, cutoff=_NEAR)
        return f" (did you mean --{near[0]}?)" if near else ""

    def refuses(self, name: str, value: str) -> str | None:
        """Why the flag of a `name` does not take `value`, with what it takes; `None` where it does, or takes any."""
        key = self.concepts.get(name, name)
        shown = "no value" if value == VALUELESS else repr(value[:40])
        expected, number = _NUMBERS.get(self._kinds.get(name, ""), ("", None))
        if number is not None and name not in self.concepts and not (is_open(value) or number.fullmatch(value)):
            return f"{shown}; would pass: {expected}"
        known = self.choices.get(key)
        if known is None or value.lower() in known or is_open(value):
            return None
        if (key in _OF_FORMATS and named_format(value[:LONGEST_NAME])) or ("." in value and "." in "".join(known)):
            return None
        return f"{shown}; would pass: {', '.join(known)}"

    def is_beside(self, name: str) -> bool:
        """Whether a flag, or the one that holds it, changes nothing of what is planned."""
        outer = name.partition(".")[0]
        return outer in self._beside or (outer != name and outer in self.known) or bool(_BESIDE.fullmatch(outer))


def is_open(value: str) -> bool:
    """Whether a value is left to a variable, or to a template."""
    return "$" in value or _OPEN.fullmatch(value) is not None


NO_FLAGS = Vocabulary({}, "", {}, {})
