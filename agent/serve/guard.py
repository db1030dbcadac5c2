"""Who may ask, decided before any route: by name of the host, origin of the page, token, and kind of content.

A page of a stranger may send requests to this machine from the browser of whoever looks at it. It cannot under a name
that is not ours (a name that it made point here), nor without saying where it comes from, nor as JSON without being
allowed to first, which nobody is.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import RefusalError
from .settings import Settings

# Paths that need no token: the page that asks for one, and whether the server lives.
_OPEN_PATHS = ("/", "/favicon.ico", "/api/v1/health")
_OPEN_FOLDER = "/static/"
_READS = ("GET", "HEAD", "OPTIONS")
_PLAIN = ("", "identity")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# The policy of answers that are no page.
_NO_PAGE = "default-src 'none'; frame-ancestors 'none'"


class Guard:
    """Passes on requests of those who may ask, and refuses the others in one line."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._token = None if settings.token is None else settings.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RefusalError(400, "input", "only HTTP is spoken here")

        is_begun = False

        async def guarded(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", _NO_PAGE)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, guarded)
        except RefusalError as refusal:
            if is_begun:
                raise
            await refusal.response(scope["path"])(scope, receive, guarded)

    def _check(self, scope: Scope) -> None:
        """Check that this request may be answered.

        Raises:
            RefusalError: it may not.
        """
        headers, path = Headers(scope=scope), scope["path"]
        host = _host(headers)
        if not self._is_ours(host):
            raise RefusalError(
                403,
                "forbidden",
                f"this server is not asked as {host[:100]!r}; start it with --allow-host to allow that",
            )
        is_open = path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)
        if not (is_open and scope["method"] in _READS):
            _check_origin(headers)
            self._check_token(headers)
        if scope["method"] not in _READS:
            _check_content(headers, scope["method"])

    def _is_ours(self, host: str) -> bool:
        if host in ("localhost", *self._settings.names):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        # No name was resolved, so none can have been made to point here.
        return address.is_loopback or not self._settings.is_loopback

    def _check_token(self, headers: Mapping[str, str]) -> None:
        if self._token is None:
            return
        kind, _, shown = headers.get("authorization", "").partition(" ")
        # Compared in full, whatever was shown, so that the time it takes reveals nothing.
        is_right = hmac.compare_digest(shown.strip().encode("latin-1", "replace"), self._token)
        if kind.lower() != "bearer" or not is_right:
            raise RefusalError(401, "unauthorized", "send the server's token: Authorization: Bearer TOKEN")


def _host(headers: Headers) -> str:
    """The name in the Host header, without its port.

    Raises:
        RefusalError: there is not exactly one, or it is none.
    """
    stated = headers.getlist("host")
    try:
        name = urlsplit(f"//{stated[0]}").hostname if len(stated) == 1 else None
    except ValueError:
        name = None
    if not name:
        raise RefusalError(403, "forbidden", "one Host header that names this server is expected")
    return name.rstrip(".")


def _check_origin(headers: Headers) -> None:
    """Check that no page of another origin asks.

    Raises:
        RefusalError: one does.
    """
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        raise RefusalError(403, "forbidden", "pages of other sites may not ask this server")
    origin = headers.get("origin")
    if origin is not None and urlsplit_host(origin) != headers["host"].lower():
        raise RefusalError(403, "forbidden", "pages of other origins may not ask this server")


def urlsplit_host(origin: str) -> str | None:
    """Host and port of an origin; `None` if it has none, as that of a sandboxed page."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ("http", "https") else None


def _check_content(headers: Headers, method: str) -> None:
    """Check that what is sent is plain JSON: a form of another page cannot send that.

    Raises:
        RefusalError: it is not.
    """
    if headers.get("content-encoding", "").lower() not in _PLAIN:
        raise RefusalError(415, "input", "send the body as it is: compressed ones are not read")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (method == "DELETE" and not kind):
        return
    raise RefusalError(415, "input", "send JSON, and say so: Content-Type: application/json")
