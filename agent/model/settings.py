"""Where a language model answers and how it is asked: from a file, the environment and flags, later ones winning.

No printable field holds a secret: user and query of the URL are moved out of it, keys and header values are secrets. An
unknown field, a value out of range, and a key in a file are refused by name.
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
from .settings_file import FILE_VARIABLE, read_settings_file

# The form of answers: tool calls, a strict schema, or text. `auto` begins with tools.
Mode = Literal["auto", "tools", "schema", "text"]
OPENAI_URL = "https://api.openai.com/v1"
# Environment variables by the field that each sets.
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
HOW_TO_PRICE = (
    f"set ${PRICE_VARIABLES['usd_per_million_input']} and ${PRICE_VARIABLES['usd_per_million_output']}, or below "
    f"[endpoint] of the settings file (${FILE_VARIABLE}) "
    "prices = { usd_per_million_input = 0.5, usd_per_million_output = 1.5 }"
)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


class EndpointSettings(BaseModel):
    """An endpoint and a model. `base_url` is safe to show: what was secret in it is in `basic_auth` and `query`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: str = Field(max_length=2000)
    model: str = Field(min_length=1, max_length=300)
    api_key: SecretStr | None = None
    headers: dict[str, SecretStr] = {}
    # The URL's user as HTTP Basic sends it, which replaces the key, as in every HTTP client.
    basic_auth: SecretStr | None = None
    query: dict[str, SecretStr] = {}
    mode: Mode = "auto"
    stream: bool = False
    # Seconds of one HTTP request from the first byte sent to the last one read.
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
        """Everything secret."""
        fields = [self.api_key, self.basic_auth, *self.headers.values(), *self.query.values()]
        secrets = [secret.get_secret_value() for secret in fields if secret is not None]
        if self.basic_auth is not None:
            user = base64.b64decode(self.basic_auth.get_secret_value()).decode()
            secrets += [user, *user.split(":", 1)]
        return [*secrets, *(value.rpartition(" ")[2] for value in secrets if " " in value)]


class EndpointFlags(Struct, frozen=True):
    """The call's own settings of the endpoint; `None`: not stated."""

    base_url: str | None = None
    model: str | None = None
    mode: Mode | None = None
    stream: bool | None = None
    request_timeout_s: float | None = None

    def __repr__(self) -> str:
        # The person's values may hold a key.
        return f"{type(self).__name__}(...)"


def read_settings(
    flags: EndpointFlags | None = None, environment: Mapping[str, str] | None = None, file: Path | None = None
) -> EndpointSettings:
    """The settings of this call; defaults are the process's `environment` and the usual `file`.

    Raises:
        InputError: no endpoint or no model is named, or a setting is invalid; the message says which, where and how to
        mend     it.
    """
    stated = _gather(flags, os.environ if environment is None else environment, file)
    values = stated.values()
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
        raise InputError(f"{stated.place(name)}: {place + ': ' if place else ''}{words}") from None


def configured(
    flags: EndpointFlags | None = None, environment: Mapping[str, str] | None = None, file: Path | None = None
) -> bool:
    """Whether an endpoint and a model are configured, so that a language model may be asked.

    Raises:
        InputError: the settings file cannot be read.
    """
    values = _gather(flags, os.environ if environment is None else environment, file).values()
    return "base_url" in values and "model" in values


class _Gathered(Struct, frozen=True):
    """Values by field, each with its source."""

    of: dict[str, tuple[Any, str]]

    def values(self) -> dict[str, Any]:
        return {name: value for name, (value, _) in self.of.items()}

    def place(self, name: str) -> str:
        return self.of[name][1] if name in self.of else f"endpoint setting {name}"


def _fields_of_files() -> set[str]:
    """The fields that a file may state: none that holds a secret but headers, whose values name variables."""
    fields = EndpointSettings.model_fields.items()
    return {"headers", *(name for name, field in fields if "Secret" not in repr(field.annotation))}


def _gather(flags: EndpointFlags | None, environment: Mapping[str, str], file: Path | None) -> _Gathered:
    stated: dict[str, tuple[Any, str]] = {}
    file_fields, source = read_settings_file(environment, file, _fields_of_files())
    for name, value in file_fields.items():
        stated[name] = (value, f"{source}: {name}")
    for name, variable in VARIABLES.items():
        text = environment.get(variable, "").strip()
        if text:
            stated[name] = (_headers(text, variable) if name == "headers" else text, f"${variable}")
    prices = {
        name: text for name, variable in PRICE_VARIABLES.items() if (text := environment.get(variable, "").strip())
    }
    if prices:
        before = stated["prices"][0] if "prices" in stated else {}
        stated["prices"] = ({**before, **prices} if isinstance(before, dict) else prices, "$SHARDWRIGHT_LLM_USD_PER_…")
    for name, value in asdict(flags or EndpointFlags()).items():
        if value is not None:
            stated[name] = (value, f"the option for {name}")
    if "api_key" in stated and "base_url" not in stated:
        stated["base_url"] = (OPENAI_URL, "the usual endpoint")
    return _Gathered(stated)


def _headers(text: str, variable: str) -> dict[str, str]:
    """Headers from `Name: value` lines, or from comma-separated pairs on one line."""
    parts = text.splitlines() if "\n" in text else text.split(",")
    pairs = [re.split(r"[:=]", part, maxsplit=1) for part in parts if part.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"${variable}: not of the form Name=value, Name=value")
    return {name.strip(): value.strip() for name, value in pairs}
