"""The page and its files, out of the package, and the policy that a browser holds them to."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from ...tools.show.page import page_hashes
from .refusals import no_route

# A name and nothing that leads elsewhere.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9]+)+")
_TYPES = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml", "png": "image/png", "ico": "image/x-icon", "json": "application/json",
}  # fmt: skip


@cache
def _policy() -> str:
    """Nothing but our own files; script and style of a plan's page (`show --html`), which is shown in a frame of it."""
    style, script = (f"'{digest}'" for digest in page_hashes())
    return (
        f"default-src 'none'; script-src 'self' {script}; style-src 'self' {style}; img-src 'self' data: blob:; "
        "connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )


def add_page(app: FastAPI) -> None:
    """The routes of the page."""

    async def page(request: Request) -> Response:
        del request
        return _file("index.html")

    async def static(request: Request) -> Response:
        return _file(request.path_params["name"])

    for path, endpoint in (("/", page), ("/static/{name}", static)):
        app.add_api_route(path, endpoint, methods=["GET", "HEAD"], include_in_schema=False)


def _file(name: str) -> Response:
    """A file of the page.

    Raises:
        RefusalError: there is none of that name.
    """
    kind = _TYPES.get(name.rpartition(".")[2])
    if kind is None or not _NAME.fullmatch(name):
        raise no_route(404)
    try:
        data = files(__name__.rpartition(".")[0]).joinpath("page", name).read_bytes()
    except OSError:
        raise no_route(404) from None
    return Response(
        data, headers={"Content-Security-Policy": _policy(), "Cache-Control": "no-cache", "Content-Type": kind}
    )
