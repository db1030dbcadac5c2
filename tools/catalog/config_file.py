"""A model config as a JSON object, from a file or a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import InputError
from ..input.files import check_open, read_bounded, shown_path
from ..input.strict_json import parse

MAX_CONFIG_BYTES = 2_000_000


def read_config_file(path: Path) -> Mapping[str, Any]:
    """The object in the file at `path`, or in its `config.json` where `path` is a folder.

    Raises InputError: it cannot be read, is larger than 2 MB, or is no JSON object.
    """
    name = f"model config {shown_path(path)}"
    check_open(name)
    try:
        if path.is_dir():
            path, name = path / "config.json", f"{name}/config.json"
    except ValueError:
        raise InputError("cannot read model config: the path holds characters that no path may hold") from None
    return parse_config(read_bounded(path, MAX_CONFIG_BYTES, name), name)


def parse_config(data: bytes | str, where: str) -> Mapping[str, Any]:
    """A JSON object from text. Raises InputError: it is not one; the message names `where` and the place."""
    value = parse(data, where)
    if not isinstance(value, dict):
        raise InputError(f"{where}: a model config must be a JSON object")
    return cast("dict[str, Any]", value)
