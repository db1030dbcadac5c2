"""Endpoint settings: which source wins, what is refused, and with which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.agent.model.settings import PRICE_VARIABLES, EndpointFlags, EndpointSettings, configured, read_settings
from shardwright.tools.errors import InputError

URL = "http://localhost:8000/v1"
BASE = {"OPENAI_BASE_URL": URL, "SHARDWRIGHT_LLM_MODEL": "m"}


@pytest.fixture(autouse=True)
def _no_file_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def read(environment: dict[str, str], flags: EndpointFlags | None = None, file: Path | None = None) -> EndpointSettings:
    """Settings from these sources only."""
    return read_settings(flags, environment, file)


def file_of(tmp_path: Path, text: str) -> Path:
    """A settings file."""
    path = tmp_path / "own.toml"
    path.write_text(text)
    return path


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, '[endpoint]\nbase_url = "http://file/v1"\nmodel = "file"\nmode = "text"\nstream = true\n')
    assert read({}, None, path).model == "file"
    environment = {"SHARDWRIGHT_CONFIG": str(path)}
    assert read(environment).base_url == "http://file/v1"
    both = {**environment, "SHARDWRIGHT_LLM_MODEL": "env", "SHARDWRIGHT_LLM_MODE": "schema"}
    merged = read(both, EndpointFlags(model="flag"))
    assert (merged.base_url, merged.model, merged.mode, merged.stream) == ("http://file/v1", "flag", "schema", True)


def test_the_usual_file_is_read_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    folder = Path(click.get_app_dir("shardwright"))
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'[endpoint]\nbase_url = "{URL}"\nmodel = "usual"\n')
    assert read({}).model == "usual"


def test_every_variable_is_read() -> None:
    settings = read(
        {
            **BASE,
            "OPENAI_API_KEY": " sk-1234567 \n",
            "SHARDWRIGHT_LLM_MODE": "schema",
            "SHARDWRIGHT_LLM_STREAM": "1",
            "SHARDWRIGHT_LLM_HEADERS": "X-A: b, X-C=d",
            "SHARDWRIGHT_LLM_TIMEOUT_S": "7.5",
            "SHARDWRIGHT_LLM_ATTEMPTS": "2",
            "SHARDWRIGHT_LLM_MAX_ANSWER_BYTES": "20000",
            "SHARDWRIGHT_LLM_USD_PER_MILLION_INPUT": "0.5",
            "SHARDWRIGHT_LLM_USD_PER_MILLION_OUTPUT": "2",
        }
    )
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-1234567"
    assert {name: value.get_secret_value() for name, value in settings.headers.items()} == {"X-A": "b", "X-C": "d"}
    assert (settings.mode, settings.stream, settings.request_timeout_s) == ("schema", True, 7.5)
    assert (settings.transport_attempts, settings.max_answer_bytes) == (2, 20_000)
    assert settings.prices is not None
    assert (settings.prices.usd_per_million_input, settings.prices.usd_per_million_output) == (0.5, 2)


def test_secrets_in_a_file_are_named_by_their_variables(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        f'[endpoint]\nbase_url = "{URL}"\nmodel = "m"\napi_key_env = "MINE"\nheaders = {{ X-Team = "red" }}\n'
        'headers_env = { X-Api-Key = "OTHER" }\nprices = { usd_per_million_input = 1, usd_per_million_output = 2 }\n',
    )
    settings = read({"MINE": "sk-mine-1", "OTHER": "other-1"}, None, path)
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-mine-1"
    assert {name: value.get_secret_value() for name, value in settings.headers.items()} == {
        "X-Team": "red",
        "X-Api-Key": "other-1",
    }


def test_a_url_that_is_shown_has_neither_user_nor_query() -> None:
    settings = read({**BASE, "OPENAI_BASE_URL": "https://me:secret@host:8443/v1/?api-version=2024-06&sig=abc#x"})
    assert settings.base_url == "https://host:8443/v1"
    assert {name: value.get_secret_value() for name, value in settings.query.items()} == {
        "api-version": "2024-06",
        "sig": "abc",
    }
    assert {"me", "secret", "me:secret", "abc"} <= set(settings.secrets())


@pytest.mark.parametrize(
    ("environment", "is_configured"),
    [
        ({}, False),
        ({"OPENAI_BASE_URL": URL}, False),
        ({"SHARDWRIGHT_LLM_MODEL": "m"}, False),
        ({"OPENAI_API_KEY": "sk-1234567"}, False),
        ({"OPENAI_API_KEY": "sk-1234567", "SHARDWRIGHT_LLM_MODEL": "m"}, True),
        ({**BASE, "OPENAI_BASE_URL": " "}, False),
        (BASE, True),
    ],
)
def test_an_endpoint_is_configured_where_it_and_a_model_are_named(
    environment: dict[str, str], is_configured: bool
) -> None:
    assert configured(None, environment) == is_configured
    if not is_configured:
        with pytest.raises(InputError, match=r"OPENAI_BASE_URL|--llm-model"):
            read(environment)


def test_a_key_without_a_place_is_for_openai() -> None:
    assert read({"OPENAI_API_KEY": "sk-1234567"}, EndpointFlags(model="m")).base_url == "https://api.openai.com/v1"


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"OPENAI_BASE_URL": "localhost:8000"}, r"\$OPENAI_BASE_URL: not a URL"),
    ({"OPENAI_BASE_URL": "http://"}, r"\$OPENAI_BASE_URL: not a URL"),
    ({"OPENAI_BASE_URL": "http://host:port/v1"}, r"\$OPENAI_BASE_URL: not a URL"),
    ({"OPENAI_BASE_URL": "file:///etc/passwd"}, r"\$OPENAI_BASE_URL: not a URL of http"),
    ({"OPENAI_BASE_URL": f"{URL}/chat/completions"}, r"\$OPENAI_BASE_URL: leave out /chat/completions"),
    ({"SHARDWRIGHT_LLM_MODE": "grammar"}, r"\$SHARDWRIGHT_LLM_MODE: .*'auto', 'tools', 'schema' or 'text'"),
    ({"SHARDWRIGHT_LLM_ATTEMPTS": "0"}, r"\$SHARDWRIGHT_LLM_ATTEMPTS: .*greater than or equal to 1"),
    ({"SHARDWRIGHT_LLM_TIMEOUT_S": "soon"}, r"\$SHARDWRIGHT_LLM_TIMEOUT_S: .*number"),
    ({"SHARDWRIGHT_LLM_TIMEOUT_S": "nan"}, r"\$SHARDWRIGHT_LLM_TIMEOUT_S: "),
    ({"SHARDWRIGHT_LLM_STREAM": "perhaps"}, r"\$SHARDWRIGHT_LLM_STREAM: .*boolean"),
    ({"SHARDWRIGHT_LLM_HEADERS": "X-A"}, r"\$SHARDWRIGHT_LLM_HEADERS: not of the form"),
    ({"SHARDWRIGHT_LLM_HEADERS": "X A: b"}, r"\$SHARDWRIGHT_LLM_HEADERS: .*HTTP header"),
    ({"SHARDWRIGHT_LLM_USD_PER_MILLION_INPUT": "1"}, r"USD_PER_.*usd_per_million_output: Field required"),
    ({"OPENAI_API_KEY": "sk-\u00e4\u00f6"}, r"\$OPENAI_API_KEY: .*copy the key again"),
    ({"SHARDWRIGHT_CONFIG": "/no/such/file.toml"}, r"/no/such/file.toml: cannot be read"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_a_setting_that_cannot_be_is_refused_by_its_name(change: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read({**BASE, **change})
    assert "\n" not in str(caught.value)


REFUSED_FILES: list[tuple[str, str]] = [
    ("endpoint = 3", r"own\.toml: 'endpoint' cannot be read"),
    ("[endpoints]\nx = 1", r"own\.toml: 'endpoints' cannot be read"),
    ("[endpoint]\nx = 1", r"unknown setting 'x' .* there are api_key_env, base_url"),
    ("[endpoint]\napi_key = 'sk-1'", r"a key does not belong in a file: .*api_key_env"),
    ("[endpoint]\napi_key_env = 'UNSET'", r"api_key_env: the environment has no variable UNSET"),
    ("[endpoint]\napi_key_env = 3", r"api_key_env: not the name of a variable"),
    ("[endpoint.headers]\nAuthorization = 'x'", r"the header 'Authorization' may hold a key"),
    ("[endpoint]\nheaders = 'x'", r"headers is no table"),
    ("[endpoint]\nheaders_env = 'x'", r"headers_env is no table"),
    ("[endpoint]\nbase_url = 'http://me:pw@h/v1'", r"base_url holds a password"),
    ("[endpoint]\nbase_url = 'http://h/v1?api_key=3'", r"base_url holds a password or a key"),
    ("[endpoint]\nstream = 7", r"own\.toml: stream: "),
    ("[endpoint]\nprices = 7", r"own\.toml: prices: "),
    ("[endpoint", r"not TOML"),
    ("a = " + "[" * 9000, r"not TOML"),
    ("#" * 70_000, r"larger than"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED_FILES)
def test_a_file_that_cannot_be_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read(BASE if "stream" in text or "prices" in text else {}, EndpointFlags(model="m"), file_of(tmp_path, text))
    assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize("field", ["api_key", "headers", "query", "basic_auth"])
def test_no_secret_is_printed_with_the_settings(field: str) -> None:
    value: Any = {"X": "canary-77"} if field in ("headers", "query") else "canary-77"
    settings = EndpointSettings.model_validate({"base_url": URL, "model": "m", field: value})
    assert "canary-77" not in f"{settings!r} {settings} {settings.model_dump_json()}"


def test_a_setting_of_a_wrong_type_is_refused_without_its_value() -> None:
    with pytest.raises(ValueError, match="api_key") as caught:
        EndpointSettings.model_validate({"base_url": URL, "model": "m", "api_key": ["canary-77"]})
    assert "canary-77" not in str(caught.value)


def test_a_url_that_the_http_library_alone_refuses_is_refused_in_one_line() -> None:
    from shardwright.agent.model.connection import own_client

    with pytest.raises(InputError, match="base_url: ") as refused:
        own_client(read({**BASE, "OPENAI_BASE_URL": "http://1271111111111.0.0.1/v1"}))
    assert "\n" not in str(refused.value)


def test_the_price_that_a_limit_on_money_needs_is_named_by_its_variable_and_its_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in PRICE_VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    call = [
        "plan",
        "Llama-3.2-1B on 2 L4",
        "--proposer",
        "llm",
        "--llm-url",
        "http://127.0.0.1:9/v1",
        "--llm-model",
        "m",
    ]
    assert run([*call, "--max-usd", "0.5"]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "$SHARDWRIGHT_LLM_USD_PER_MILLION_INPUT" in line
    assert "$SHARDWRIGHT_CONFIG" in line and "prices = { usd_per_million_input" in line
