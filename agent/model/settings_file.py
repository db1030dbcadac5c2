"""The settings file: TOML with one table, `[endpoint]`. It refuses keys: files are copied, shown and committed.

    [endpoint]
    base_url = "http://localhost:8000/v1"
    model = "qwen2.5-72b-instruct"
    api_key_env = "MY_KEY"                    # the variable that holds the key
    headers_env = { X-Api-Key = "MY_OTHER" }  # headers, each by the variable that holds its value
    prices = { usd_per_million_input = 0.5, usd_per_million_output = 1.5 }

It is `$SHARDWRIGHT_CONFIG`, else `config.toml` in the platform's folder for application settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from ...tools.errors import InputError
from ...tools.input.files import read_bounded, shown_path, utf8_text
from ...tools.input.strict_values import check_value

FILE_VARIABLE = "SHARDWRIGHT_CONFIG"
MAX_FILE_BYTES = 1 << 16
_KEY_LIKE = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)
_USER_IN_URL = re.compile(r"://[^/?#]*@")


def settings_path(environment: Mapping[str, str]) -> tuple[Path, bool]:
    """The path of the file, and whether it was named explicitly, so that it must exist."""
    named = environment.get(FILE_VARIABLE, "").strip()
    if named:
        return Path(named).expanduser(), True
    import click

    return Path(click.get_app_dir("shardwright")) / "config.toml", False


def read_settings_file(
    environment: Mapping[str, str], file: Path | None, known: Set[str]
) -> tuple[dict[str, Any], str]:
    """The fields out of `known` that the file sets, and the file's name for errors; no fields if there is no file.

    Raises:
        InputError: the named file is missing, is no TOML, or holds a key or an unknown field.
    """
    path, is_named = (file, True) if file is not None else settings_path(environment)
    name = shown_path(path)
    if not is_named and not path.is_file():
        return {}, name
    import tomllib

    text = utf8_text(read_bounded(path, MAX_FILE_BYTES, name), name)
    try:
        document = tomllib.loads(text)
    # The library's recursion is unbounded, and it meets the interpreter's limit of digits.
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not TOML: {error}") from None
    check_value(document, name)
    endpoint = document.get("endpoint", {})
    unknown = sorted(document.keys() - {"endpoint"})
    if unknown or not isinstance(endpoint, dict):
        key = unknown[0] if unknown else "endpoint"
        raise InputError(f"{name}: {key!r} cannot be read; settings stand in one table, [endpoint]")
    return _fields(dict(endpoint), environment, name, known), name


def _fields(table: dict[str, Any], environment: Mapping[str, str], name: str, known: Set[str]) -> dict[str, Any]:
    key_variable, header_variables = table.pop("api_key_env", None), table.pop("headers_env", {})
    _refuse_keys(table, name)
    unknown = sorted(table.keys() - known)
    if unknown:
        settings = ", ".join(sorted(known | {"api_key_env", "headers_env"}))
        raise InputError(f"{name}: unknown setting {unknown[0]!r} in [endpoint]; there are {settings}")
    if key_variable is not None:
        table["api_key"] = _variable(environment, key_variable, f"{name}: api_key_env")
    if not isinstance(header_variables, dict):
        raise InputError(f"{name}: headers_env is no table of header = variable")
    if header_variables:
        headers = {
            header: _variable(environment, variable, f"{name}: headers_env.{header}")
            for header, variable in header_variables.items()
        }
        table["headers"] = {**table.get("headers", {}), **headers}
    return table


def _refuse_keys(table: Mapping[str, Any], name: str) -> None:
    headers = table.get("headers", {})
    if not isinstance(headers, dict):
        raise InputError(f"{name}: headers is no table of header = value")
    if "api_key" in table:
        raise InputError(
            f"{name}: a key does not belong in a file: put it in the environment and name its variable in api_key_env"
        )
    for header in headers:
        if _KEY_LIKE.search(header):
            raise InputError(
                f"{name}: the header {header!r} may hold a key: name the variable that holds it in headers_env"
            )
    url = table.get("base_url")
    if isinstance(url, str) and (_USER_IN_URL.search(url) or _KEY_LIKE.search(url.partition("?")[2])):
        raise InputError(f"{name}: base_url holds a password or a key: set OPENAI_BASE_URL in the environment instead")


def _variable(environment: Mapping[str, str], variable: Any, where: str) -> str:
    if not isinstance(variable, str) or not variable:
        raise InputError(f"{where}: not the name of a variable of the environment")
    value = environment.get(variable, "").strip()
    if not value:
        raise InputError(f"{where}: the environment has no variable {variable}")
    return value
