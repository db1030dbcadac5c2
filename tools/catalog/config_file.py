"""Reads a `config.json` from hostile text or from a file: bounded, strict JSON, one-line refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import InputError

MAX_CONFIG_BYTES = 2_000_000


def read_config_file(path: Path) -> Mapping[str, Any]:
    """The object in the file at `path`, or in its `config.json` where `path` is a folder.

    Raises:
        InputError: it cannot be read, is larger than 2 MB, or is no JSON object.
    """
    try:
        if path.is_dir():
            path = path / "config.json"
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read model config {path}: {error.strerror or error}") from None
    except ValueError:
        raise InputError("cannot read model config: the path holds characters that no path may hold") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError(f"model config {path} is larger than {MAX_CONFIG_BYTES} bytes")
    return parse_config(data, str(path))


def parse_config(data: bytes | str, where: str) -> Mapping[str, Any]:
    """A JSON object from text: no key twice, no NaN or Infinity, no nesting beyond the parser's bound.

    Raises:
        InputError: it is not one; the message names `where` and the place.
    """

    def refuse_constant(token: str) -> Any:
        raise InputError(f"{where}: {token} is not JSON")

    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InputError(f"{where}: an object states the same key twice")
        return found

    try:
        value: Any = json.loads(data, parse_constant=refuse_constant, object_pairs_hook=without_duplicates)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8 text") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{where}: a number has too many digits") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: a model config must be a JSON object")
    return cast("dict[str, Any]", value)
