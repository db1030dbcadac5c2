"""JSON that benchmark clients write, read strictly: objects one after another, and typed values out of each.

Its content is a stranger's: size, nesting, lists and numbers are bounded, and nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct

from ..errors import InputError
from ..input.strict_json import parse_each

Client = Literal["vllm", "sglang"]

MAX_FILE_BYTES = 256 << 20
MAX_RUNS = 1000
_MAX_LIST = 1_000_000
MOST = 1e12


def looks_like_output(text: str) -> bool:
    """Whether text may be the output of a benchmark client: JSON objects."""
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def outputs(text: str, where: str) -> Iterator[Output]:
    """The JSON objects that follow one another in `text`, on lines of their own or not; `where` is what errors call it.

    Raises InputError: it is too large, or is no such text.
    """
    if len(text) > MAX_FILE_BYTES:
        raise InputError(f"{where}: larger than {MAX_FILE_BYTES >> 20} MiB; leave the per-request details out")
    for count, (_, value) in enumerate(parse_each(text, where), start=1):
        if not isinstance(value, dict):
            raise InputError(f"{where}: holds JSON that is no object: no output of a benchmark client")
        if count > MAX_RUNS:
            raise InputError(f"{where}: more than {MAX_RUNS:,} runs; split the file")
        yield Output(cast(dict[str, Any], value), f"{where}: run {count}")


class Output(Struct, frozen=True):
    """One object of a client, read strictly; `where` is what errors call it."""

    found: Mapping[str, Any]
    where: str

    def refuse(self, reason: str) -> InputError:
        """The error that says `reason` of this run."""
        return InputError(f"{self.where}: {reason}")

    @property
    def client(self) -> Client:
        """Which client wrote it."""
        if "model_id" in self.found and "num_prompts" in self.found:
            return "vllm"
        if "total_output_tokens_retokenized" in self.found or "mean_e2e_latency_ms" in self.found:
            return "sglang"
        raise self.refuse("no output of vLLM's `bench serve` or SGLang's `bench_serving`")

    @property
    def server(self) -> Mapping[str, Any]:
        """What SGLang's client learned from its server; empty if nothing."""
        info = self.found.get("server_info")
        return cast(Mapping[str, Any], info) if isinstance(info, dict) else {}

    def number(self, *names: str) -> float | None:
        """The first of these keys that has a number above 0; `None` where none has."""
        for name in names:
            value = self.found.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
                raise self.refuse(f"{name} is no number from 0 on: {str(value)[:40]!r}")
            if value > 0:
                return float(value)
        return None

    def needed(self, name: str) -> float:
        """The number above 0 under `name`, which must be there."""
        value = self.number(name)
        if value is None:
            raise self.refuse(f"{name} is missing or 0")
        return value

    def text(self, name: str, of: Mapping[str, Any] | None = None) -> str | None:
        """The text under `name` (of another object), where there is one that can be printed."""
        value = (self.found if of is None else of).get(name)
        return value[:200] if isinstance(value, str) and value.isprintable() and value else None

    def count(self, names: Sequence[str]) -> int | None:
        """A degree: of the server, or as vLLM's `--metadata` wrote it (as text)."""
        for name in names:
            value = self.server.get(name, self.found.get(name))
            if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 7:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**6:
                return value
        return None

    def lengths(self, name: str) -> list[float]:
        """A list of lengths, one for each request; empty where there is none."""
        value = self.found.get(name)
        if not isinstance(value, list):
            return []
        items = cast(list[Any], value)
        if len(items) > _MAX_LIST:
            raise self.refuse(f"{name} has more than {_MAX_LIST:,} items")
        if any(isinstance(length, bool) or not isinstance(length, int) or not 0 <= length <= MOST for length in items):
            raise self.refuse(f"{name} is no list of lengths")
        return [float(length) for length in items if length]
