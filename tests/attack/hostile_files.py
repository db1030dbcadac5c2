"""Contents and kinds of files that no honest file has."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .mutations import nested, places, put

SPARSE_BYTES = 200 << 20
# Placeholder for a literal that no JSON writer writes.
_MARK = "\u241e"


def _with_value(text: str, value: Any, rng: random.Random, *, literal: str | None = None, number: bool = False) -> str:
    """The JSON `text` with a leaf replaced by `value`, or by `literal` verbatim."""
    lines = text.splitlines() if text.count("\n{") else [text]
    document = json.loads(lines[-1])
    leaves = [path for path in places(document) if not isinstance(_at(document, path), dict | list)]
    wanted = [path for path in leaves if isinstance(_at(document, path), int | float if number else str)] or leaves
    put(document, rng.choice(wanted), _MARK if literal is not None else value)
    lines[-1] = json.dumps(document)
    if literal is not None:
        lines[-1] = lines[-1].replace(json.dumps(_MARK), literal)
    return "\n".join(lines)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with_key(text: str, key: str, rng: random.Random) -> str:
    document = json.loads(text.splitlines()[-1] if text.count("\n{") else text)
    holders = [(), *(path for path in places(document) if isinstance(_at(document, path), dict))]
    _at(document, rng.choice(holders))[key] = 1
    return json.dumps(document)


def _deep(text: str, levels: int, rng: random.Random) -> str:
    return _with_value(text, None, rng, literal="[" * levels + "]" * levels)


def _deep_key(text: str, levels: int, rng: random.Random) -> str:
    document = text.rstrip()
    return document[:-1] + ', "deep": ' + '{"a":' * levels + "1" + "}" * (levels + 1)


# Not hostile: shows that the entrance accepts files.
HONEST = "as it is"
# For JSON, and for formats that include it (YAML).
OF_JSON: Mapping[str, Callable[[str, random.Random], str]] = {
    "half a letter": lambda text, rng: _with_value(text, "a\ud800", rng),
    "another half": lambda text, rng: _with_value(text, "\udfff", rng),
    "half a letter as key": lambda text, rng: _with_key(text, "\ud800", rng),
    "254 deep": lambda text, rng: _with_value(text, nested(254), rng),
    "300 deep": lambda text, rng: _deep(text, 300, rng),
    "300 deep below a new key": lambda text, rng: _deep_key(text, 300, rng),
    "1,000 deep": lambda text, rng: _deep(text, 1000, rng),
    "100,000 deep": lambda text, rng: _deep(text, 100_000, rng),
    "5,000 digits": lambda text, rng: _with_value(text, None, rng, literal="9" * 5000, number=True),
    "10^400": lambda text, rng: _with_value(text, 10**400, rng, number=True),
    "1e999": lambda text, rng: _with_value(text, None, rng, literal="1e999", number=True),
    "-1e308": lambda text, rng: _with_value(text, -1e308, rng, number=True),
    "1e-35": lambda text, rng: _with_value(text, 1e-35, rng, number=True),
    "NaN": lambda text, rng: _with_value(text, None, rng, literal="NaN", number=True),
    "Infinity": lambda text, rng: _with_value(text, None, rng, literal="Infinity", number=True),
    "null": lambda text, rng: _with_value(text, None, rng, literal="null"),
    "a list": lambda text, rng: _with_value(text, [1], rng),
    "a control character": lambda text, rng: _with_value(text, "a\x00\x1b[2J", rng),
    "200,000 letters": lambda text, rng: _with_value(text, "x" * 200_000, rng),
    "a key twice": lambda text, rng: text.replace("{", '{"name": 1, "name": 2, ', 1),
    "a list around": lambda text, rng: f"[{text}]",
}
# For any file.
OF_BYTES: Mapping[str, Callable[[bytes], bytes]] = {
    HONEST: lambda data: data,
    "not UTF-8": lambda data: data[: len(data) // 2] + b"\xff\xfe" + data[len(data) // 2 :],
    "half a letter in UTF-8": lambda data: data[: len(data) // 2] + b"\xed\xa0\x80" + data[len(data) // 2 :],
    "UTF-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "empty": lambda data: b"",
    "blank": lambda data: b" \n\t\n",
    "a NUL": lambda data: data[: len(data) // 2] + b"\x00" + data[len(data) // 2 :],
    "cut off": lambda data: data[: len(data) // 2],
    "twice": lambda data: data + data,
    "one long line": lambda data: b"a," * 500_000,
    "an open end": lambda data: b"[" * 100_000,
    "NULs": lambda data: b"\0" * 100,
    "quotes": lambda data: data + b'"' * 5000,
}
# Instead of a file.
SPECIAL = (
    "a pipe",
    "a socket",
    "/dev/zero",
    "/dev/full",
    "a folder",
    "a link to itself",
    "200 MB of nothing",
    "not there",
    "a closed door",
)


def hostile_contents(is_json: bool) -> tuple[str, ...]:
    """The names of all contents that an entrance is tried with."""
    return (*(OF_JSON if is_json else ()), *OF_BYTES, *SPECIAL)


def put_hostile(name: str, base: str | bytes, path: Path, rng: random.Random) -> Path:
    """Make the hostile file `name` out of `base` at `path`; returns the path to use."""
    data = base.encode() if isinstance(base, str) else base
    if name in OF_JSON:
        path.write_bytes(OF_JSON[name](data.decode(), rng).encode("utf-8", "surrogatepass"))
    elif name in OF_BYTES:
        path.write_bytes(OF_BYTES[name](data))
    elif name == "a pipe":
        os.mkfifo(path)
    elif name == "a socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif name.startswith("/dev"):
        path.symlink_to(name)
    elif name == "a folder":
        path.mkdir()
    elif name == "a link to itself":
        path.symlink_to(path)
    elif name == "200 MB of nothing":
        with path.open("wb") as file:
            file.truncate(SPARSE_BYTES)
    elif name == "a closed door":
        path.write_bytes(data)
        path.chmod(0)
    return path
