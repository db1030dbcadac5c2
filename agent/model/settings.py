"""Where a language model answers and how it is to be asked: from a file, the environment and flags, later ones winning.

Nothing secret stands in a field that can be printed: user and query of the URL are moved out of it, keys and header
values are kept as secrets. An unknown field, a value out of range, and a key in a file are refused by name.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from ...tools.errors import InputError
from ..loop.budget import Prices
from .settings_file import read_settings_file

# How answers are asked for: by calls of tools, in a strict schema, or as text. `auto` begins with tools.
Mode = Literal["auto", "tools", "schema", "text"]
OPENAI_URL = "https://api.openai.com/v1"
# Variables of the environment, by the field that each sets.
VARIABLES = {
    "base_url": "OPENAI_BASE_URL",
    "api_key": "OPENAI_API_KEY",
    "model": "SHARDWRIGHT_LLM_MODEL",
    "mode": "SHARDWRIGHT_LLM_MODE",
    "stream": "SHARDWRIGHT_LLM_STREAM",
    "headers": "SHARDWRIGHT_LLM_HEADERS",
    "request_timeout_s": "SHARDWRIGHT_LLM_TIMEOUT_S",
    "transport_attempts": "SHARDWRIGHT_LLM_ATTEMPTS",
    "max_answer_bytes": "SHARDWRIGHT_LLM_MAX_ANSWER_BYTES",
}
PRICE_VARIABLES = {
    "usd_per_million_input": "SHARDWRIGHT_LLM_USD_PER_MILLION_INPUT",
    "usd_per_million_output": "SHARDWRIGHT_LLM_USD_PER_MILLION_OUTPUT",
    "usd_per_million_cached_input": "SHARDWRIGHT_LLM_USD_PER_MILLION_CACHED_INPUT",
}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


class EndpointSettings(BaseModel):
    """An endpoint and a model. `base_url` is safe to show: what was secret in it is in `basic_auth` and `query`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: str = Field(max_length=2000)
    model: str = Field(min_length=1, max_length=300)
    api_key: SecretStr | None = None
    headers: dict[str, SecretStr] = {}
    # The user of the URL as HTTP Basic sends it; it takes the place of the key, as in every HTTP client.
    basic_auth: SecretStr | None = None
    query: dict[str, SecretStr] = {}
    mode: Mode = "auto"
    stream: bool = False
    # One HTTP request from the first byte sent to the last one read.
    request_timeout_s: float = Field(default=120.0, gt=0, le=3600)
    transport_attempts: int = Field(default=4, ge=1, le=20)
    max_answer_bytes: int = Field(default=4_000_000, ge=10_000, le=100_000_000)
    prices: Prices | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_url(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("base_url"), str):
            return values
        url = values["base_url"].strip()
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise ValueError("base_url: not a URL, such as http://localhost:8000/v1") from None
        if parts.scheme not in ("http", "https") or not host or not _PRINTABLE.fullmatch(url):
            raise ValueError("base_url: not a URL of http or https, such as http://localhost:8000/v1")
        if parts.path.rstrip("/").endswith("/completions"):
            raise ValueError("base_url: leave out /chat/completions; it is added to the URL")
        split = {**values, "base_url": parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")}
        split["base_url"] = split["base_url"].geturl().rstrip("/")
        if parts.query:
            split["query"] = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **values.get("query", {})}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            split["basic_auth"] = base64.b64encode(user.encode()).decode()
        return split

    @field_validator("api_key", mode="before")
    @classmethod
    def _clean_key(cls, value: Any) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not isinstance(text, str):
            return value
        if not _PRINTABLE.fullmatch(text.strip()):
            raise ValueError("holds characters that no HTTP header carries: copy the key again")
        return text.strip() or None

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _PRINTABLE.fullmatch(value.get_secret_value()):
                raise ValueError("a name or a value is none that an HTTP header can have")
        return headers

    def secrets(self) -> list[str]:
        """Everything that nobody may see."""
        kept = [self.api_key, self.basic_auth, *self.headers.values(), *self.query.values()]
        found = [one.get_secret_value() for one in kept if one is not None]
        if self.basic_auth is not None:
            user = base64.b64decode(self.basic_auth.get_secret_value()).decode()
            found += [user, *user.split(":", 1)]
        return [*found, *(value.rpartition(" ")[2] for value in found if " " in value)]


class EndpointFlags(Struct, frozen=True):
    """What the call itself says of the endpoint; `None` is not said."""

    base_url: str | None = None
    model: str | None = None
    mode: Mode | None = None
    stream: bool | None = None
    request_timeout_s: float | None = None

    def __repr__(self) -> str:
        # What a person wrote there may hold a key.
        return f"{type(self).__name__}(...)"


def read_settings(
    flags: EndpointFlags | None = None, environment: Mapping[str, str] | None = None, file: Path | None = None
) -> EndpointSettings:
    """The settings of this call; `environment` is the process's and `file` the usual one where they are not given.

    Raises:
        InputError: no endpoint or no model is named, or a setting cannot be; the message says which, where and how
            to mend it.
    """
    said = _gather(flags, os.environ if environment is None else environment, file)
    values = said.values()
    if "base_url" not in values:
        raise InputError(f"no endpoint is configured: set {VARIABLES['base_url']}, such as http://localhost:8000/v1")
    if "model" not in values:
        raise InputError(f"no model of the endpoint is named: give --llm-model or set {VARIABLES['model']}")
    try:
        return EndpointSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "base_url"
        words = first["msg"].removeprefix("Value error, ").removeprefix("base_url: ")
        place = ".".join(str(part) for part in first["loc"][1:] if name == "prices")
        raise InputError(f"{said.place(name)}: {place + ': ' if place else ''}{words}") from None


def configured(
    flags: EndpointFlags | None = None, environment: Mapping[str, str] | None = None, file: Path | None = None
) -> bool:
    """Whether an endpoint and a model are named, so that a language model may be asked.

    Raises:
        InputError: the settings file cannot be read.
    """
    values = _gather(flags, os.environ if environment is None else environment, file).values()
    return "base_url" in values and "model" in values


class _Said(Struct, frozen=True):
    """Values by field, each with where it was said."""

    of: dict[str, tuple[Any, str]]

    def values(self) -> dict[str, Any]:
        return {name: value for name, (value, _) in self.of.items()}

    def place(self, name: str) -> str:
        return self.of[name][1] if name in self.of else f"endpoint setting {name}"


def _gather(flags: EndpointFlags | None, environment: Mapping[str, str], file: Path | None) -> _Said:
    said: dict[str, tuple[Any, str]] = {}
    found, source = read_settings_file(environment, file)
    for name, value in found.items():
        said[name] = (value, f"{source}: {name}")
    for name, variable in VARIABLES.items():
        text = environment.get(variable, "").strip()
        if text:
            said[name] = (_headers(text, variable) if name == "headers" else text, f"${variable}")
    prices = {
        name: text for name, variable in PRICE_VARIABLES.items() if (text := environment.get(variable, "").strip())
    }
    if prices:
        before = said["prices"][0] if "prices" in said else {}
        said["prices"] = ({**before, **prices} if isinstance(before, dict) else prices, "$SHARDWRIGHT_LLM_USD_PER_…")
    for name, value in asdict(flags or EndpointFlags()).items():
        if value is not None:
            said[name] = (value, f"the option for {name}")
    if "api_key" in said and "base_url" not in said:
        said["base_url"] = (OPENAI_URL, "the usual endpoint")
    return _Said(said)


def _headers(text: str, variable: str) -> dict[str, str]:
    """Headers out of `Name: value` lines, or of pairs with commas between them on one line."""
    parts = text.splitlines() if "\n" in text else text.split(",")
    pairs = [re.split(r"[:=]", one, maxsplit=1) for one in parts if one.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"${variable}: not of the form Name=value, Name=value")
    return {name.strip(): value.strip() for name, value in pairs}
