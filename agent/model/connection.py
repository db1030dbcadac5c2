"""The `openai` SDK with its own features switched off: one request, raw bytes, under a deadline and a limit.

Retries, parsing and waiting are done elsewhere, each in one place. Redirects are not followed: they would carry
headers, keys among them, to another host. Errors leave here as `FaultError`, without secrets.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.parse import unquote
from urllib.request import getproxies

import openai
from openai import DefaultHttpxClient

from ...tools.errors import InputError
from .deadline import Deadline
from .faults import MAX_READ, FaultError, from_status, unreadable
from .redaction import Redactor
from .settings import EndpointSettings
from .worker import Line

# HTTP libraries of the SDK; errors while an answer is read are theirs, not the SDK's.
_HTTP_LIBRARIES = ("httpx2", "httpx")
# Most bytes read of an error's body; its message is at the beginning.
MAX_ERROR_BYTES = 65_536
_NO_KEY = "no key is configured"
# Headers of every request that hold no secret.
_PUBLIC_HEADERS = {"accept", "content-type", "user-agent"}


@lru_cache(maxsize=1)
def _trusted(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """The TLS context for the certificates that these variables name, cached: loading takes long."""
    library = next(base for base in DefaultHttpxClient.__mro__ if base.__name__ == "Client").__module__
    return import_module(library.partition(".")[0]).create_ssl_context()


class BoundedHttp(DefaultHttpxClient):
    """An HTTP client that reads only the beginning of errors; the SDK itself reads to the end, which may never come.

    `authorization` replaces the SDK's header of that name, which requires a key; empty sends none, `None` keeps the
    SDK's.
    """

    def __init__(self, authorization: str | None) -> None:
        trusted = _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        super().__init__(follow_redirects=False, verify=trusted)
        self._authorization = authorization

    def send(self, request: Any, **options: Any) -> Any:
        """Send `request`; the body of an error is cut."""
        if self._authorization is not None:
            request.headers.pop("Authorization", None)
        if self._authorization:
            request.headers["Authorization"] = self._authorization
        response = super().send(request, **options)
        if response.status_code < 300 or response.is_closed:
            return response
        data = b""
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) >= MAX_ERROR_BYTES:
                break
        response.close()
        kept = {name: value for name, value in response.headers.items() if name.lower() in ("retry-after", "location")}
        return type(response)(response.status_code, headers=kept, content=data[:MAX_ERROR_BYTES], request=request)


def own_client(settings: EndpointSettings, http: Callable[[str], BoundedHttp] = BoundedHttp) -> openai.OpenAI:
    """An SDK client for `settings`; `http` makes its HTTP client from an `Authorization` header."""
    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    named = next((value for name, value in headers.items() if name.lower() == "authorization"), "")
    if settings.basic_auth is not None:
        named = f"Basic {settings.basic_auth.get_secret_value()}"
    elif settings.api_key is not None and not named:
        named = f"Bearer {settings.api_key.get_secret_value()}"
    client = http(named)
    try:
        return openai.OpenAI(
            base_url=settings.base_url,
            api_key=_NO_KEY,
            default_headers=headers,
            default_query={name: value.get_secret_value() for name, value in settings.query.items()},
            max_retries=0,
            http_client=client,
        )
    except _http_errors("InvalidURL") as error:  # stricter than what the settings were read with
        raise InputError(f"base_url: {error}") from None


def checked_client(client: object) -> openai.OpenAI:
    """`client`, made by the user, if it is usable here.

    Raises:
        InputError: it is asynchronous, or no such client.
    """
    if isinstance(client, openai.AsyncOpenAI):
        raise InputError("client: an AsyncOpenAI cannot be used here: give an openai.OpenAI")
    if not isinstance(client, openai.OpenAI):
        raise InputError(f"client: {type(client).__name__} is not an openai.OpenAI")
    return client


def secrets_of(client: openai.OpenAI) -> list[str]:
    """Everything secret that `client` sends: key, headers, and parts of its URL."""
    url = client.base_url
    headers = {
        name: str(value)
        for name, value in client.default_headers.items()
        if isinstance(value, str) and name.lower() not in _PUBLIC_HEADERS and not name.lower().startswith("x-stainless")
    }
    secrets = [part for value in headers.values() for part in (value, value.rpartition(" ")[2])]
    secrets += [url.username, url.password, *url.params.values(), *(str(q) for q in client.default_query.values())]
    key = client.api_key
    return [*secrets, *_proxy_secrets(), *([key] if isinstance(key, str) and key != _NO_KEY else [])]


def _proxy_secrets() -> list[str]:
    """Users and passwords of the environment's proxies, which requests go through."""
    places = [proxy.rpartition("@")[0].rpartition("/")[2] for proxy in getproxies().values() if "@" in proxy]
    return [part for place in places for part in (place, *unquote(place).split(":", 1))]


def _has_default_http(client: openai.OpenAI) -> bool:
    """Whether the SDK made the HTTP client of `client`, not its user.

    The SDK has no public way to tell; if in doubt, the user made it.
    """
    default = getattr(sys.modules.get("openai._base_client"), "SyncHttpxClientWrapper", None)
    return default is not None and type(getattr(client, "_client", None)) is default


class Connection:
    """One endpoint; a connection of ours can be dropped and is made anew when needed.

    A user's client is used through a connection of ours too, unless it has the user's own HTTP client (proxies,
    certificates): then it is used as it is, and an abandoned request ends when the server next sends a part of the
    body, or the connection ends.
    """

    def __init__(self, settings: EndpointSettings, client: openai.OpenAI | None) -> None:
        self._settings = settings
        self._user_client = client
        self._client = self._new_client()
        self.redactor = Redactor([*settings.secrets(), *secrets_of(self._client)])

    def _new_client(self) -> openai.OpenAI:
        """A client whose connection is ours, if possible; else the user's."""
        client = self._user_client
        if client is None:
            return own_client(self._settings)
        return client.with_options(http_client=BoundedHttp(None)) if _has_default_http(client) else client

    def drop(self) -> None:
        """End the requests under way. A user's client is not closed: it may be in other use."""
        if self._client is not self._user_client:
            abandoned, self._client = self._client, self._new_client()
            abandoned.close()

    def chat(self, body: Mapping[str, Any], line: Line, deadline: Deadline, take: Callable[[bytes], bool]) -> str:
        """Request a completion; passes chunks to `take` until it has enough. Returns the content type.

        Raises:
            FaultError: no answer, or one over the limit.
        """
        with self._faults(deadline):
            completions = self._options(deadline).chat.completions.with_streaming_response
            with completions.create(**body) as response:
                self._read(response, line, take)
                return response.headers.get("content-type", "")

    def models(self, line: Line, deadline: Deadline) -> bytes:
        """The body of the list of models.

        Raises:
            FaultError: no answer, or one over the limit.
        """
        data = bytearray()

        def take(chunk: bytes) -> bool:
            data.extend(chunk)
            return False

        with self._faults(deadline), self._options(deadline).models.with_streaming_response.list() as response:
            self._read(response, line, take)
        return bytes(data)

    def _options(self, deadline: Deadline) -> openai.OpenAI:
        return self._client.with_options(max_retries=0, timeout=max(deadline.left_s(), 0.001))

    def _read(self, response: Any, line: Line, take: Callable[[bytes], bool]) -> None:
        read, most = 0, self._settings.max_answer_bytes
        for chunk in response.iter_bytes():
            read += len(chunk)
            if read > most:
                raise FaultError("too_large", f"the answer is larger than {most:,} bytes", may_retry=False)
            if take(chunk) or line.is_dropped:
                return

    @contextmanager
    def _faults(self, deadline: Deadline) -> Iterator[None]:
        """Turn errors of the SDK and its HTTP library into faults without secrets."""
        fault: FaultError
        try:
            yield
            return
        except FaultError:
            raise
        except openai.APIStatusError as error:
            body = error.response.text[:MAX_ERROR_BYTES]
            fault = from_status(error.status_code, body, _headers(error), self.redactor)
        except (openai.APITimeoutError, *_http_errors("TimeoutException")):
            fault = FaultError("timeout", "no answer in time", may_retry=True)
        except (openai.APIConnectionError, *_http_errors("TransportError")) as error:
            fault = self._broken(error.__cause__ or error, deadline)
        except (openai.OpenAIError, *_http_errors("HTTPError", "StreamError", "InvalidURL"), ValueError) as error:
            fault = unreadable(f"{type(error).__name__}: {self.redactor.text(str(error))[:MAX_READ]}")
        raise fault from None

    def _broken(self, error: BaseException, deadline: Deadline) -> FaultError:
        if deadline.is_over():
            return FaultError("timeout", "no answer in time", may_retry=True)
        words = " ".join(self.redactor.text(str(error) or type(error).__name__).split())[:200]
        return FaultError("unreachable", f"the connection failed: {words}", may_retry=True)


def _headers(error: openai.APIStatusError) -> dict[str, str]:
    return {name.lower(): value for name, value in error.response.headers.items()}


def _http_errors(*names: str) -> tuple[type[Exception], ...]:
    return tuple(
        getattr(sys.modules[module], name) for module in _HTTP_LIBRARIES if module in sys.modules for name in names
    )
